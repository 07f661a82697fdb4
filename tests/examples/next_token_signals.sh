#!/usr/bin/env bash
# SIGINT, SIGTERM and SIGHUP end the program cleanly: it saves, says how to go on, and exits with 128 + signal.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

long=("${small[@]}" --steps 1000000)
for signal in INT TERM HUP; do
  start "$signal" "${long[@]}"
  wait_until 20 has_lines "$signal.csv" 12
  kill -"$signal" "$pid"
  ends_with $((128 + $(kill -l "$signal")))
  expect_output "^stopped after step [0-9]+ of 1000000; go on with --resume $signal --log $signal.csv\$" "$signal.out"
  [[ ! -s $signal.err ]] || fail "complaints: $(cat "$signal.err")"
  # Nothing was lost: the checkpoint is of the very last step.
  last=$(tail -n 1 "$signal.csv" | cut -d, -f1)
  expect_output "^stopped after step $last " "$signal.out"
  run --resume "$signal" --log "$signal.csv" --steps $((last + 3))
  expect_output "^going on after step $last\$"
  run "${small[@]}" --steps $((last + 3)) --checkpoint whole --log whole.csv
  same whole "$signal"
  same_losses whole.csv "$signal.csv"
done

# `timeout` sends its signal twice, at about the same time: that is no second request.
expect_code 124 timeout -s INT 2 "$program" "${long[@]}" --checkpoint twice
expect_output '^stopped after step .*--resume twice'

# A second one ends the program at once, in the middle of a step.
start second --depth 100 --batch 64 --length 256 --steps 5
wait_until 20 test -e second.csv
sleep 0.3
kill -INT "$pid"
sleep 0.7
if kill -0 "$pid" 2>/dev/null; then # else this machine makes the step in no time
  kill -INT "$pid"
  ends_with 130
  ! grep -q stopped second.out || fail "the second SIGINT was not needed"
fi

# Under nohup, SIGHUP means nothing.
trap '' HUP
start nohup "${long[@]}"
trap - HUP
wait_until 20 has_lines nohup.csv 3
kill -HUP "$pid"
lines=$(wc -l <nohup.csv)
wait_until 20 has_lines nohup.csv $((lines + 10))
kill -TERM "$pid"
ends_with 143

# While the text is still to come, there is nothing to save.
mkfifo text.fifo
start early --text text.fifo
sleep 0.3
kill -INT "$pid"
ends_with 130
[[ ! -e early ]] || fail "a checkpoint was written before there was a text"

# While the result is computed.
text_of 4000000 >text
start late "${small[@]}" --steps 1 --text text
wait_until 20 grep -q 'held-out loss' late.out
kill -TERM "$pid"
ends_with 143
expect_output '^stopped after step 1 of 1; see the result with --resume late' late.out
