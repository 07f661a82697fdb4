#!/usr/bin/env bash
# 5 steps, saved, loaded and 5 more equal 10 steps bit for bit: checkpoints byte for byte, losses digit for digit.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

# check_resume NAME OPTIONS...
check_resume() {
  local name=$1
  shift
  run "$@" --steps 10 --checkpoint "$name.whole" --log "$name.whole.csv"
  run "$@" --steps 5 --checkpoint "$name.parts" --log "$name.parts.csv"
  run --resume "$name.parts" --steps 10 --log "$name.parts.csv"
  expect_output '^going on after step 5$'
  same "$name.whole" "$name.parts"
  same_losses "$name.whole.csv" "$name.parts.csv"
}

text_of 5000 >text
check_resume rule "${small[@]}"
check_resume text "${small[@]}" --text text
check_resume two_threads "${small[@]}" --threads 2 --batch 64 --length 32
check_resume other_options "${small[@]}" --norm rms --order post --no-residual --clip 0.5 --warmup 7 --lr 0.01 --seed 3

# The number of threads may decide the last bits, but a run with it repeats.
for threads in 1 2; do
  options=(--threads "$threads" --depth 2 --batch 32 --steps 4)
  run "${options[@]}" --checkpoint once --log once.csv
  run "${options[@]}" --checkpoint again --log again.csv
  same once again
  same_losses once.csv again.csv
done

# Without --steps it goes on to the number that the run was started with, and in more than one part.
run "${small[@]}" --steps 10 --checkpoint whole --log whole.csv
start parts "${small[@]}" --steps 1000000 --checkpoint-every 2
wait_until 20 has_lines parts.csv 8
kill -KILL "$pid"
ends_with 137
run --resume parts --steps 1000 --no-checkpoint
expect_output '^step 1000/1000 '
run "${small[@]}" --steps 3 --checkpoint parts --log parts.csv
run --resume parts --steps 7 --log parts.csv
run --resume parts --steps 10 --log parts.csv --checkpoint third
same whole third
same_losses whole.csv parts.csv

# A finished run shows its result again, and stays as it is.
cp text.whole before
run --resume text.whole --no-checkpoint
expect_output 'a larger --steps trains on'
grep -A 99 '^held-out' out.txt >first
run --resume text.whole
grep -A 99 '^held-out' out.txt >second
same first second
same text.whole before

# The text is found from another folder, and elsewhere when told where; another text is refused.
mkdir elsewhere
(cd elsewhere && run --resume ../text.whole --steps 11 --no-checkpoint)
mv text elsewhere/moved
expect_code 2 "$program" --resume text.whole --steps 11
expect_output '--text tells where it is now' err.txt
run --resume text.whole --steps 11 --text elsewhere/moved --no-checkpoint
echo more >>elsewhere/moved
expect_code 2 "$program" --resume text.whole --steps 11 --text elsewhere/moved
expect_output 'not the text that text.whole was trained on' err.txt

# Options of the model that agree are welcome, others are refused by name; those of the training may change.
run --resume rule.whole --steps 11 --depth 1 --heads 2 --norm standard --lr 0.5 --batch 3 --seed 9 --no-checkpoint
for option in '--depth 2' '--d-model 16' '--heads 1' '--length 9' '--norm none' '--order post' --no-residual \
  '--text elsewhere/moved'; do
  # shellcheck disable=SC2086 # an option and its value
  expect_code 2 "$program" --resume rule.whole --steps 11 $option
  expect_output "^next_token: $option does not agree with rule.whole|^next_token: --text does not agree" err.txt
done

# An earlier checkpoint is not lost by starting another run under its name.
cp rule.whole kept
run "${small[@]}" --steps 1 --checkpoint rule.whole
same rule.whole.old kept
