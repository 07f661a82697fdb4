#!/usr/bin/env bash
# 300 KB of real text, the licences that Debian ships: a held-out loss of at most 2.1 nats a byte, at least 0.3 below a
# table of byte pairs. Optimised builds only: it takes minutes of two processors.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

cat /usr/share/common-licenses/* >text 2>/dev/null || true
if (($(wc -c <text) < 200000)); then
  echo "skipped: this system has not enough licence texts"
  exit 77
fi
run --text text --no-checkpoint
line=$(grep '^held-out' out.txt)
echo "$line"
read -r loss pairs < <(sed -nE 's/^held-out loss ([0-9.]+) .* pairs has ([0-9.]+)$/\1 \2/p' out.txt)
awk -v loss="$loss" -v pairs="$pairs" 'BEGIN { exit !(loss <= 2.1 && loss <= pairs - 0.3) }' || fail "$line"
