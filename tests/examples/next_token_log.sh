#!/usr/bin/env bash
# The log: its header, a row a step with all digits, and the cut back to the checkpoint's step on resume.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

run "${small[@]}" --steps 12 --checkpoint whole --log whole.csv
[[ $(head -n 1 whole.csv) == step,loss,grad_norm,tokens_per_s ]] || fail "header: $(head -n 1 whole.csv)"
[[ $(tail -n +2 whole.csv | cut -d, -f1) == "$(seq 12)" ]] || fail "not one row a step"
rows=$(tail -n +2 whole.csv | grep -Ecx '[0-9]+,[0-9.]{8,},[0-9.]{8,},[0-9]+')
((rows == 12)) || fail "only $rows rows are a step, two numbers with all digits, and a rate: $(cat whole.csv)"

# Step 1 is the loss before the first update: the learning rate does not matter to it, but does to step 2.
run "${small[@]}" --steps 2 --no-checkpoint --log other.csv --lr 0.1
[[ $(sed -n 2p other.csv | cut -d, -f2) == "$(sed -n 2p whole.csv | cut -d, -f2)" ]] || fail "step 1 depends on --lr"
[[ $(sed -n 3p other.csv | cut -d, -f2) != "$(sed -n 3p whole.csv | cut -d, -f2)" ]] || fail "step 2 ignores --lr"

# A new run starts a new log.
run "${small[@]}" --steps 3 --no-checkpoint --log other.csv
same_losses other.csv <(head -n 4 whole.csv)

# check_cut NAME: resumed at step 5 with the log NAME, as some earlier run left it, it ends like one that was left alone.
check_cut() {
  cp five resumed
  run --resume resumed --steps 12 --log "$1"
  same_losses "$1" whole.csv
}
run "${small[@]}" --steps 5 --checkpoint five --log five.csv
cp whole.csv further.csv
check_cut further.csv
(head -n 9 whole.csv && printf '9,3.9') >torn.csv
check_cut torn.csv
(head -n 6 whole.csv && printf '6,3.9123,1.25,10') >torn_at_once.csv
check_cut torn_at_once.csv
(head -n 6 whole.csv && printf 'what is this\n7,1,1,1\n') >garbled.csv
check_cut garbled.csv

# Rows that are not there cannot be made up: torn before the checkpoint's step, or no log at all.
(head -n 4 whole.csv && printf '4,3.9') >short.csv
cp five resumed
run --resume resumed --steps 12 --log short.csv
[[ $(tail -n +2 short.csv | cut -d, -f1) == "$(seq 3; seq 6 12)" ]] || fail "rows of short.csv: $(cat short.csv)"
cp five resumed
run --resume resumed --steps 12 --log new.csv
[[ $(tail -n +2 new.csv | cut -d, -f1) == "$(seq 6 12)" ]] || fail "rows of new.csv: $(cat new.csv)"

# A log that is not ours stays as it is, when starting and when resuming.
printf 'my,own,table\n1,2,3\n' >foreign.csv
cp foreign.csv kept.csv
expect_code 2 "$program" "${small[@]}" --no-checkpoint --log foreign.csv
expect_code 2 "$program" --resume five --steps 12 --log foreign.csv
same foreign.csv kept.csv
