#!/usr/bin/env bash
# What is printed: help, plain lines, one line on a terminal; and what happens when something cannot be written.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

# Every option is in the help, which fits a terminal.
run --help
for option in text temperature prompt depth d-model heads batch length steps lr warmup clip seed threads norm order \
  nan-check no-residual checkpoint checkpoint-every no-checkpoint resume log help; do
  expect_output "^ *(-h,)?--$option( |\$)"
done
((99 >= $(wc -L <out.txt))) || fail "the help is too wide"
cp out.txt help.txt
run -h
same out.txt help.txt

# Plain lines: step, loss, gradient norm, speed, time left; the first step, the last, and about twenty between.
run "${small[@]}" --steps 100 --no-checkpoint
(($(grep -Ec '^step [0-9]+/100  loss [0-9.]+  grad norm [0-9.]+  [0-9]+ tokens/s  [0-9]+s left$' out.txt) == 21)) ||
  fail "progress lines: $(cat out.txt)"
expect_output '^step 1/100 '
expect_output '^step 100/100 .* 0s left$'
expect_output '^7 -> [0-9]+( [0-9]+){49}$'
expect_output '^[0-9]+ of 50 right$'
! grep -q $'[\r\033]' out.txt || fail "control characters in plain output"

# A number that is not finite is noted once, with its step, and training goes on.
run "${small[@]}" --norm none --lr 1e6 --steps 50 --no-checkpoint --log nan.csv
first=$(grep -nE 'nan|inf' nan.csv | head -n 1 | cut -d: -f1)
[[ -n $first ]] || fail "nothing became NaN: $(tail -n 1 nan.csv)"
(($(grep -c '; going on$' out.txt) == 1)) || fail "not noted once: $(cat out.txt)"
expect_output "^step $((first - 1)): the loss is [a-z0-9.]+, the gradient norm [a-z0-9.]+; going on\$"
has_lines nan.csv 51 || fail "training did not go on"
! grep -q -e -nan nan.csv out.txt || fail "a NaN has a sign"
text_of 5000 >text
run "${small[@]}" --norm none --lr 1e6 --warmup 0 --steps 50 --no-checkpoint --text text
expect_output '^held-out loss nan '

# Or, on request, it ends the run and is traced to the operation and the layer.
expect_code 1 "$program" "${small[@]}" --norm none --lr 1e6 --warmup 0 --steps 50 --no-checkpoint --nan-check
expect_output '^next_token: nan_check: [a-z_]+ in [a-z_.0-9]+ gave (NaN|infinity): output [0-9], float32 \[.*finite: \[' err.txt
run "${small[@]}" --steps 10 --checkpoint plain
run "${small[@]}" --steps 10 --checkpoint watched --nan-check
same plain watched

# An output that fails is an error, after saving.
last_step() { tail -n 1 "$1" | cut -d, -f1; }
full_output() { "$program" "$@" >/dev/full; }
closed_output() { "$program" "$@" >&-; }
expect_code 1 full_output --help
expect_output '^next_token: the output cannot be written$' err.txt
expect_code 1 full_output "${small[@]}" --steps 1000000 --checkpoint full --log full.csv
expect_output '^next_token: the output cannot be written$' err.txt
run --resume full --steps $(($(last_step full.csv) + 1))
expect_output "^going on after step $(last_step full.csv)\$"
expect_code 2 closed_output "${small[@]}" --steps 10 --checkpoint closed
expect_output '^next_token: the standard output is closed$' err.txt
[[ ! -e closed ]] || fail "a checkpoint although the output is closed"
code=0
"$program" "${small[@]}" --steps 20000 --checkpoint pipe --log pipe.csv 2>err.txt | head -n 2 >out.txt || code=$?
((code == 1)) || fail "exit code $code when nobody reads the output"
expect_output '^next_token: the output cannot be written$' err.txt
run --resume pipe --steps $(($(last_step pipe.csv) + 1))
# Closed streams must not be taken by the files that are written.
"$program" "${small[@]}" --steps 10 --checkpoint whole --log whole.csv >out.txt
"$program" "${small[@]}" --steps 10 --checkpoint streams --log streams.csv >out.txt 2>&- <&-
same whole streams
same_losses whole.csv streams.csv

# A file that fails while training is an error, too: the log by a limit on its size, the checkpoint when its folder goes.
limited() { (ulimit -f 1 && exec "$program" "$@"); }
expect_code 1 limited "${small[@]}" --steps 1000000 --no-checkpoint --log limited.csv
expect_output '^next_token: limited.csv: the log cannot be written: File too large$' err.txt
expect_code 2 limited "${small[@]}" --steps 10 --checkpoint limited
expect_output '^next_token: write_safetensors: "limited": cannot write it: File too large$' err.txt
[[ ! -e limited ]] || fail "half a checkpoint"
mkdir going
start going/checkpoint "${small[@]}" --steps 1000000 --checkpoint-every 10
wait_until 20 has_lines going/checkpoint.csv 12
mv going gone
ends_with 1
expect_output '^next_token: write_safetensors: "going/checkpoint": cannot open the folder' gone/checkpoint.err

# On a terminal one line is written over, and cut to the width; a terminal that cannot do that gets plain lines.
if script --version 2>/dev/null | grep -q util-linux; then
  command=$(printf '%q ' "$program" "${small[@]}" --steps 300 --no-checkpoint)
  expect_code 0 env TERM=xterm script -qec "stty cols 40; $command" terminal.txt
  lines=$(tr -d '\n' <terminal.txt | tr '\r' '\n' | grep -c $'^step [0-9]*/300 .*\033\\[K')
  ((lines >= 2)) || fail "no line that is written over: $(cat -v terminal.txt)"
  tr '\r' '\n' <terminal.txt | sed 's/\x1b.*//' | awk '/^step/ && length > 39 { exit 1 }' || fail "a line that wraps"
  grep -q $'step 300/300 .*\033\\[K\r$' terminal.txt || fail "no last step: $(cat -v terminal.txt)"
  expect_code 0 env TERM=dumb script -qec "$command" dumb.txt
  ! grep -q $'\033' dumb.txt || fail "control characters on a dumb terminal"
  expect_output $'^step 300/300 .* left\r$' dumb.txt
fi
