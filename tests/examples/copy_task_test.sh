#!/usr/bin/env bash
# The copy task: with the argument "full" it must be learned, else only begun.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

if [[ ${2-} == full ]]; then
  run
  expect_output '^  1  2  3  4  5  6  7  8  9 10   ->    1  2  3  4  5  6  7  8  9 10   right$'
  expect_output '^21 of 21 right$'
  exit
fi

# Too few steps: it says what is wrong, and exits so.
expect_code 1 "$program" --steps 3 --threads 1
expect_output '^step 1/3  loss [0-9.]+  learning rate 0\.000[0-9]+  [0-9]+s left$'
expect_output '^step 3/3 .* 0s left$'
expect_output '^  1  2  3  4  5  6  7  8  9 10   ->  .*   WRONG$'
expect_output '^[0-9]+ of 21 right$'
(($(grep -c -- '->' out.txt) == 21)) || fail "not 21 sequences"
! grep -q $'[\r\033]' out.txt || fail "control characters in plain output"

# The same seed gives the same, another seed something else.
without_times() { sed -E 's/  [0-9]+s left$//' out.txt; }
without_times >first.txt
expect_code 1 "$program" --steps 3 --threads 1
without_times >second.txt
same first.txt second.txt
expect_code 1 "$program" --steps 3 --threads 1 --seed 1
without_times >other.txt
! cmp -s first.txt other.txt || fail "two seeds give the same"

run --help
((99 >= $(wc -L <out.txt))) || fail "the help is too wide"
for mistake in '--steps 0' '--threads 0' '--seed x' '--nothing'; do
  read -ra arguments <<<"$mistake"
  expect_code 2 "$program" "${arguments[@]}"
  expect_output '^copy_task: ' err.txt
done
full_output() { "$program" --steps 1 --threads 1 >/dev/full; }
expect_code 1 full_output
expect_output '^copy_task: the output cannot be written$' err.txt
