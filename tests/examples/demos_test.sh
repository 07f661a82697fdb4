#!/usr/bin/env bash
# All demonstrations print what must come out, and each can be shown alone.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

run
expect_output '^[0-9]+ demonstrations, [0-9]+ numbers: [0-9]+ equal, 0 different$'
! grep -q 'DIFFERENT' out.txt || fail "a number differs: $(grep 'DIFFERENT' out.txt)"
cp out.txt all.txt
# Numbers that everybody expects, as they are printed.
for number in '0\.59 4\.22 2\.29' '1\.069 1\.069 1\.069' '4\.59e-02' '1\.50e\+00' '18,915,328' '\[1, 6, 512\]' \
  '\[2, 10, 512\]' '\[2, 16, 50\]' 'NaN NaN 0\.00 0\.00'; do
  expect_output "  expected $number +got $number +equal\$"
done

# The same each time; the threads make no difference to what is printed.
run
same out.txt all.txt
expect_code 0 taskset -c 0 "$program"
same out.txt all.txt

# One at a time: what it prints in the midst of the others.
run --list
cp out.txt list.txt
while read -r name _; do
  run --only "$name"
  expect_output "^$name: "
  expect_output '^1 demonstrations, [0-9]+ numbers: [0-9]+ equal, 0 different$'
  sed '$d' out.txt >one.txt
  while IFS= read -r line; do
    grep -Fxq -- "$line" all.txt || fail "$name alone prints: $line"
  done <one.txt
done <list.txt
(($(wc -l <list.txt) == $(grep -Ec '^[a-z0-9_]+: ' all.txt))) || fail "the list is not complete"
run --only layer_norm --only eps
expect_output '^2 demonstrations'

run --help
((99 >= $(wc -L <out.txt))) || fail "the help is too wide"
expect_code 2 "$program" --only nothing
expect_output "^demos: there is no demonstration 'nothing'; --list lists them\$" err.txt
expect_code 2 "$program" --nothing
expect_output '^demos: .*--help lists the options$' err.txt
full_output() { "$program" --only layer_norm >/dev/full; }
expect_code 1 full_output
expect_output '^demos: the output cannot be written$' err.txt
