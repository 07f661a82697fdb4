#!/usr/bin/env bash
# The reference run: PyTorch 1.13 at depth 12 with seed 0 begins at a loss of 4.1307 and has 0.0537 after 300 steps; and
# the default run has learned the rule. Optimised builds only: it takes half a minute of two processors.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

run --depth 12 --seed 0 --no-checkpoint --log log.csv
expect_output '^50 of 50 right$'
loss() { awk -F, -v step="$1" '$1 == step { print $2 }' log.csv; }
awk -v loss="$(loss 1)" 'BEGIN { exit !(loss > 4.1306 && loss < 4.1308) }' || fail "loss at step 1: $(loss 1)"
awk -v loss="$(loss 300)" 'BEGIN { exit !(loss > 0.0537 * 0.95 && loss < 0.0537 * 1.05) }' ||
  fail "loss at step 300: $(loss 300)"

run
[[ $(tail -n 1 out.txt) == '50 of 50 right' ]] || fail "the last line of the default run: $(tail -n 1 out.txt)"
[[ -s next_token.safetensors ]] || fail "no checkpoint"
