#!/usr/bin/env bash
# The same global batch gives the same result on 1, 2 and 4 ranks as on one process: losses of 50 steps to 1e-5; for a
# number of ranks, the same bits from run to run and through checkpoints. Two ranks learn the tiny task.
# shellcheck disable=SC2016 # scripts for other shells
# shellcheck source=tests/examples/mpi.sh
source "$(dirname "$(readlink -f "$0")")/mpi.sh"

# furthest A.csv B.csv: the largest difference of two losses; both have 50.
furthest() {
  paste -d, <(tail -n +2 "$1") <(tail -n +2 "$2") | awk -F, '
    { d = $2 - $6; if (d < 0) d = -d; if (!(d <= most)) most = d; same_step = $1 == $5 }
    END { if (NR != 50 || !same_step) most = "not of 50 steps"; print most + 0 == most ? sprintf("%.1e", most) : most }'
}

# compare NAME OPTIONS...: the table for 1, 2 and 4 ranks.
compare() {
  local name=$1 n distance
  shift
  run "$@" --steps 50 --threads 1 --checkpoint alone --log alone.csv
  for n in 1 2 4; do
    ranks "$n" "$@" --steps 50 --threads 1 --checkpoint "$name.$n" --log "$name.$n.csv"
    [[ $n == 1 ]] || expect_output ", $n ranks of 1 thread\$"
    (($(grep -c 'step 50/50 ' out.txt) == 1)) || fail "not one last line: $(cat out.txt)"
    [[ ! -s err.txt ]] || fail "complaints: $(cat err.txt)"
    distance=$(furthest alone.csv "$name.$n.csv")
    printf '%-8s %d ranks: losses of 50 steps within %s of one process\n' "$name" "$n" "$distance"
    awk -v d="$distance" 'BEGIN { exit !(d < 1e-5) }' || fail "$name on $n ranks is $distance away from one process"
  done
  same alone "$name.1" # one rank is one process, bit for bit
  ! cmp -s alone "$name.4" || fail "four ranks add up in no other order than one process: is this a comparison?"
}

text_of 20000 >text
compare tiny
compare text --text text --depth 2 --d-model 32 --heads 2 --batch 8 --length 32
compare uneven "${small[@]}" --batch 7 --clip 0.5 --warmup 7 --lr 0.01

# For a number of ranks, bit by bit.
options=(--depth 2 --batch 7 --threads 1)
for n in 2 4; do
  ranks "$n" "${options[@]}" --steps 12 --checkpoint whole --log whole.csv
  ranks "$n" "${options[@]}" --steps 12 --checkpoint again --log again.csv
  same whole again
  same_losses whole.csv again.csv
  # Only rank 0 needs the checkpoint and the text: the others look for them in another folder.
  ranks "$n" "${options[@]}" --steps 5 --checkpoint parts --log parts.csv
  mkdir "elsewhere.$n"
  expect_code 0 "$launcher" "$n" bash -c '
    [[ $OMPI_COMM_WORLD_RANK == 0 ]] || cd "$1"
    exec "${@:2}"' _ "elsewhere.$n" "$program" --resume parts --steps 12 --log parts.csv
  expect_output '^going on after step 5$'
  same whole parts
  same_losses whole.csv parts.csv
  [[ -z $(ls "elsewhere.$n") ]] || fail "a rank wrote files: $(ls "elsewhere.$n")"
done
expect_code 0 "$launcher" 2 bash -c '
  [[ $OMPI_COMM_WORLD_RANK == 0 ]] || cd "$1"
  exec "${@:2}"' _ elsewhere.2 "$program" "${small[@]}" --text text --steps 2 --no-checkpoint

# A run may go on with another number of ranks, and with one process.
ranks 2 "${options[@]}" --steps 5 --checkpoint parts --log parts.csv
ranks 4 --resume parts --steps 8 --log parts.csv
run --resume parts --steps 50 --log parts.csv
run "${options[@]}" --steps 50 --checkpoint whole --log whole.csv
distance=$(furthest whole.csv parts.csv)
awk -v d="$distance" 'BEGIN { exit !(d < 1e-5) }' || fail "2, 4 and 1 ranks one after the other: $distance away"

# Two ranks learn the rule.
ranks 2
[[ $(tail -n 1 out.txt) == '50 of 50 right' ]] || fail "the last line: $(tail -n 1 out.txt)"
grep -E ' ranks of |^step 300/300|right$' out.txt
