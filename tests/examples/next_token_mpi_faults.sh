#!/usr/bin/env bash
# A rank that dies, throws, or was started with other options ends the job, and is named; signals stop all ranks after
# the same step; --resume goes on from the last whole checkpoint as if nothing had been.
# shellcheck disable=SC2016 # scripts for other shells
# shellcheck source=tests/examples/mpi.sh
source "$(dirname "$(readlink -f "$0")")/mpi.sh"

options=("${small[@]}" --batch 7 --checkpoint-every 5)

# whole N STEP: a run of N ranks that was left alone up to the step.
whole() { ranks "$1" "${options[@]}" --steps "$2" --checkpoint whole --log whole.csv; }

# goes_on N NAME: the run does, and 20 steps further on is what it would have been.
goes_on() {
  ranks "$1" --resume "$2" --steps 1 --no-checkpoint # tells how far it is
  step=$(sed -nE 's/^step ([0-9]+) of 1 is done.*/\1/p' out.txt)
  ((step > 0)) || fail "no whole checkpoint: $(cat out.txt)"
  ranks "$1" --resume "$2" --log "$2.csv" --steps $((step + 20))
  expect_output "^going on after step $step\$"
  whole "$1" $((step + 20))
  same whole "$2"
  same_losses whole.csv "$2.csv"
}

# Killed in the middle, with the patience that users get.
for victim in 0 1; do
  OMPI_MCA_odls_base_sigkill_timeout=2 start_ranks 2 killed "${options[@]}" --steps 1000000
  wait_until 60 has_lines killed.csv 12
  begin=${EPOCHREALTIME/[^0-9]/}
  send KILL "$victim"
  ends_with 137
  seconds=$(((${EPOCHREALTIME/[^0-9]/} - begin) / 1000000))
  ((seconds < 10)) || fail "the job took $seconds s to end"
  expect_output "mpirun noticed that process rank $victim .* exited on signal 9" killed.err
  echo "rank $victim killed: the job ended within $((seconds + 1)) s, exit code 137"
  goes_on 2 killed
  echo "resumed at step $step: checkpoint and losses as of a run left alone"
done
start_ranks 4 killed "${options[@]}" --steps 1000000
wait_until 60 has_lines killed.csv 12
send KILL 3
ends_with 137
goes_on 4 killed

# A signal to mpirun (Ctrl-C), or to any one rank, stops all after the same step. Where mpirun
# is to end the ranks, they get time enough for a step on a busy machine.
for how in 'INT mpirun 1 5' 'USR1 mpirun 138 1' 'TERM 1 143 1' 'INT 0 130 1'; do
  read -r signal whom code patience <<<"$how"
  OMPI_MCA_odls_base_sigkill_timeout=$patience start_ranks 2 stopped "${options[@]}" --steps 1000000
  wait_until 60 has_lines stopped.csv 12
  if [[ $whom == mpirun ]]; then kill -"$signal" "$pid"; else send "$signal" "$whom"; fi
  ends_with "$code"
  last=$(tail -n 1 stopped.csv | cut -d, -f1)
  expect_output "^stopped after step $last of 1000000; go on with --resume stopped --log stopped.csv\$" stopped.out
  goes_on 2 stopped
  ((step == last)) || fail "$how: the checkpoint is of step $step, the log of step $last"
done

# A rank that throws says which it is and why: here it has too little memory.
expect_code 1 "$launcher" 2 bash -c '
  [[ $OMPI_COMM_WORLD_RANK != 1 ]] || ulimit -v 1000000
  exec "$@"' _ "$program" --d-model 256 --batch 256 --threads 1 --steps 2 --no-checkpoint
expect_output '^rank 1 of 2: next_token: storage: no memory for [0-9]+ bytes' err.txt

# What is wrong for all is said once, by rank 0, with the exit code of one process.
refused() {
  local sentence=$1
  shift
  expect_code 2 "$launcher" "$@"
  expect_output "^rank 0 of [24]: next_token: .*$sentence" err.txt
  (($(grep -c '^rank' err.txt) == 1)) || fail "said more than once: $(cat err.txt)"
  [[ ! -s out.txt ]] || fail "output in spite of a refusal: $(cat out.txt)"
}
refused "unknown option '--foo'" 2 "$program" --foo
refused 'missing: cannot be read' 2 "$program" --text missing
refused 'read_safetensors: "missing": ' 2 "$program" --resume missing
refused '--batch 3 has fewer rows than there are ranks \(4\)' 4 "$program" --batch 3
refused "rank 1 has other arguments than rank 0: '0.2', there '0.1'" 2 bash -c 'exec "$@" --lr 0.$((OMPI_COMM_WORLD_RANK + 1))' _ \
  "$program" --steps 1
refused "rank 3 has other arguments than rank 0: nothing, there '--no-residual'" 4 bash -c '
  ((OMPI_COMM_WORLD_RANK == 3)) || set -- "$@" --no-residual
  exec "$@"' _ "$program" --steps 1
[[ ! -e next_token.safetensors ]] || fail "a checkpoint in spite of a refusal"

# Help is said once.
ranks 2 --help
(($(grep -c '^Trains TinyLM' out.txt) == 1)) || fail "help: $(cat out.txt)"
