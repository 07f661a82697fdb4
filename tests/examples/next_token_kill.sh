#!/usr/bin/env bash
# next_token_kill.sh PROGRAM [N]: N times killed with SIGKILL at a random moment and resumed, a run ends on the same
# losses and the same checkpoint, byte for byte, as one that was left alone. It saves every other step, so that many
# kills fall into a save; what such a one leaves behind is gone after the next save.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"
wanted=${2:-10}

options=("${small[@]}" --steps 400 --checkpoint-every 2)
begin=${EPOCHREALTIME/[^0-9]/}
run "${options[@]}" --checkpoint whole --log whole.csv
micros=$((${EPOCHREALTIME/[^0-9]/} - begin))

# Anything from the start of the program to a third of the way further on.
random_wait() {
  local wait=$(((RANDOM * 32768 + RANDOM) % (micros / 3 + 20000)))
  sleep "$((wait / 1000000)).$(printf '%06d' $((wait % 1000000)))"
}

# go_on: starts the run, or resumes it where a checkpoint is there.
go_on() {
  if [[ -e parts ]]; then
    exec "$program" --resume parts --checkpoint-every 2 --log parts.csv
  else
    exec "$program" "${options[@]}" --checkpoint parts --log parts.csv
  fi
}

compare() {
  same whole parts
  same_losses whole.csv parts.csv
}

left_behind() { find . -name '.parts.*.tmp'; }

kills=0
while ((kills < wanted)); do
  go_on >out.txt 2>err.txt &
  pid=$!
  random_wait
  kill -KILL "$pid" 2>/dev/null || true
  code=0
  wait "$pid" 2>/dev/null || code=$?
  pid=
  case $code in
    137)
      kills=$((kills + 1))
      (($(left_behind | wc -l) <= 1)) || fail "more is left behind than of one kill: $(ls -A)"
      left_behind >>in_save.txt
      ;;
    0) compare && rm parts parts.csv ;; # it was done before: from the start again
    *) fail "exit code $code after $kills kills: $(cat err.txt)" ;;
  esac
done
(go_on) >out.txt 2>err.txt || fail "cannot go on after $kills kills: $(cat err.txt)"
compare
[[ -z $(left_behind) ]] || fail "left behind: $(ls -A)"
echo "killed $kills times, $(sort -u in_save.txt | wc -l) of them in the middle of a save"
