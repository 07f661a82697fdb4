# Sourced by the tests of next_token on several ranks, after the path of the program has been given to common.sh.
# shellcheck shell=bash
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"

launcher=$(readlink -f "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../mpirun")
export OMPI_MCA_odls_base_sigkill_timeout=0 # ends ranks at once where a test does not look at how they end

# ranks N OPTIONS...: the program on N ranks, which must end well.
ranks() {
  local n=$1
  shift
  expect_code 0 "$launcher" "$n" "$program" "$@"
}

# start_ranks N NAME OPTIONS...: in the background, with mpirun as $pid, and files of that name.
start_ranks() {
  local n=$1 name=$2
  shift 2
  rm -f "$name" "$name.csv"
  "$launcher" "$n" "$program" "$@" --checkpoint "$name" --log "$name.csv" >"$name.out" 2>"$name.err" </dev/null &
  pid=$!
}

# send SIGNAL RANK: to the process of that rank.
send() {
  local process
  process=$(pgrep -P "$pid" -f "^$program" | sort -n | sed -n "$(($2 + 1))p")
  [[ $process ]] || fail "there is no process of rank $2"
  kill -"$1" "$process"
}
