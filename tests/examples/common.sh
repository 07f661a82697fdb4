# Sourced by the tests of the example programs. A test is called with the program's path; it runs in a folder of its own,
# which is gone afterwards, ends with 0 if all is well and else says what is not.
# shellcheck shell=bash
set -euo pipefail

(($# >= 1)) || { echo "usage: $0 PROGRAM [...]" >&2; exit 2; }
program=$(readlink -f "$1")
[[ -x $program ]] || { echo "$0: no program $1" >&2; exit 2; }
folder=$(mktemp -d)
pid= # of the program in the background, if there is one
cleanup() {
  [[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder"

# A model that is small enough for hundreds of steps a second, with sanitizers too.
# shellcheck disable=SC2034 # for the tests
small=(--depth 1 --d-model 8 --heads 2 --batch 2 --length 8 --threads 1)

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# expect_code CODE COMMAND...: runs it with its output in out.txt and err.txt.
expect_code() {
  local expected=$1 code=0
  shift
  "$@" >out.txt 2>err.txt </dev/null || code=$?
  ((code == expected)) || fail "expected exit code $expected, got $code, of: $* ($(tail -n 3 err.txt))"
}

# start NAME OPTIONS...: the program in the background, as $pid, with files of that name.
start() {
  local name=$1
  shift
  rm -f "$name" "$name.csv"
  "$program" "$@" --checkpoint "$name" --log "$name.csv" >"$name.out" 2>"$name.err" </dev/null &
  pid=$!
}

# ends_with CODE: the program in the background does, within half a minute.
ends_with() {
  local code=0
  wait_until 30 ended
  wait "$pid" 2>/dev/null || code=$?
  pid=
  ((code == $1)) || fail "expected exit code $1, got $code"
}
ended() { ! kill -0 "$pid"; }

run() { expect_code 0 "$program" "$@"; }

# expect_output PATTERN [FILE]: a line of the last command's output matches the extended regular expression.
expect_output() {
  grep -Eq -- "$1" "${2:-out.txt}" || fail "no line '$1' in: $(tail -n 5 "${2:-out.txt}")"
}

# same A B: both files hold the same bytes.
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

# What a log says of the training: all but the speed.
losses() { cut -d, -f1-3 "$1"; }
same_losses() { diff <(losses "$1") <(losses "$2") >/dev/null || fail "$1 and $2 have other losses"; }

# wait_until SECONDS COMMAND...: until it succeeds.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || fail "waited in vain for: $*"
    sleep 0.02
  done
}

# has_lines FILE N: the file is there and has at least N lines.
has_lines() { [[ -f $1 ]] && (($(wc -l <"$1") >= $2)); }

# A text of N bytes that a small model can learn something of.
text_of() {
  local line='the quick brown fox jumps over the lazy dog, and the dog sleeps on. '
  awk -v line="$line" 'BEGIN { for (i = 0; i < 100000; ++i) printf "%d %s\n", i, line }' | head -c "$1" || true
}
