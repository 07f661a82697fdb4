#!/usr/bin/env bash
# The facts come out inside their ranges, each alone as among the others, the same each time. With the argument "quick"
# only those that take no time.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

# got WHAT: the number that the program tells of it.
got() { sed -nE "s/^    $1 +expected .* got ([^ ]+) +inside\$/\1/p" all.txt | head -n 1; }
# told WHAT EXPRESSION: what is told of it makes the expression true, in which it is x.
told() {
  local x
  x=$(got "$1")
  [[ -n $x ]] || fail "nothing is told of: $1"
  awk -v x="$x" "BEGIN { exit !($2) }" || fail "$1: $x"
}

run --list
cp out.txt list.txt
(($(wc -l <list.txt) == 9)) || fail "not 9 facts"

if [[ ${2-} == quick ]]; then
  names=(layer_norm_gradient step_size)
  run --only layer_norm_gradient --only step_size
else
  mapfile -t names < <(cut -d' ' -f1 list.txt)
  run
  expect_output '^9 facts, [0-9]+ numbers: [0-9]+ inside their range, 0 outside$'
  ! grep -q 'OUTSIDE' out.txt || fail "$(grep 'OUTSIDE' out.txt)"
  (($(grep -c ' inside$' out.txt) == $(sed -nE '$s/.* ([0-9]+) numbers.*/\1/p' out.txt))) || fail "the numbers' count"
fi
cp out.txt all.txt

# The ranges again, as read from the page rather than judged by the program.
told 'largest \|sum of dx over a row\|' 'x <= 1e-12'
told 'largest \|dx \. x_hat\| of a row' 'x <= 1e-12'
told 'largest \|dx\(2x\) - dx\(x\) \/ 2\|' 'x <= 1e-12'
told 'the smallest of them' 'x <= 1e-8'
if [[ ${2-} != quick ]]; then
  told 'post-norm: slope .*' 'x >= -0.15 && x <= 0.15'
  told 'the last of these' 'x >= 2.5'
  told 'smallest factor from one to the next: it always grows' 'x > 1'
  told 'post-norm: .*geometric mean of 100 seeds' 'x > 1.2'
  told 'pre-norm: mean of 6 seeds' 'x < 0.6'
  for depth in 2 4 8 16; do
    told "pre-norm: mean square of the stream, L = $depth" "x > 1 + $depth / 2 && x < 1 + 3 * $depth / 2"
  done
  told 'post-norm: \|change of the output\|\^2, L = 16 over L = 2' 'x >= 5'
  told 'DeepNorm: the same' 'x <= 1'
  told '\|sum of the shares - 1\|, largest of the seeds' 'x <= 1e-12'
  told 'share within 8 branches, smallest of the seeds' 'x >= 0.9'
  # Of warm-up nothing is asked but to be told: six losses a line.
  (($(grep -cE '^    (pre|post)-norm, with(out)? warm-up +([0-9.]+ ){6} learned [0-6] of 6$' all.txt) == 4)) ||
    fail "the lines of warm-up: $(grep 'warm-up' all.txt)"
fi

# One at a time: what it prints in the midst of the others, on one processor too. (Not so training: after 200 steps the
# order in which threads add shows.)
for name in "${names[@]}"; do
  place=(taskset -c 0)
  [[ $name != warm_up ]] || place=()
  expect_code 0 "${place[@]}" "$program" --only "$name"
  expect_output "^$name: "
  expect_output '^1 facts?, [0-9]+ numbers: [0-9]+ inside their range, 0 outside$'
  sed '$d' out.txt >one.txt
  while IFS= read -r line; do
    grep -Fxq -- "$line" all.txt || fail "$name alone prints: $line"
  done <one.txt
done

run --help
((99 >= $(wc -L <out.txt))) || fail "the help is too wide"
expect_code 2 "$program" --only nothing
expect_output "^facts: there is no fact 'nothing'; --list lists them\$" err.txt
expect_code 2 "$program" --nothing
expect_output '^facts: .*--help lists the options$' err.txt
full_output() { "$program" --only layer_norm_gradient >/dev/full; }
expect_code 1 full_output
expect_output '^facts: the output cannot be written$' err.txt
