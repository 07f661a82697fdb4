#!/usr/bin/env bash
# The ablation in small: table, sentences, files, what is noted; with the argument "reference" the rows of depth 4 at the
# default settings, which must be inside their ranges.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

if [[ ${2-} == reference ]]; then
  run --depths 4 --threads 2
  expect_output '^4 of 4 runs are inside their ranges$'
  expect_output '^ +4 +yes +standard +4\.0559 +4\.0559 +0\.06[0-9]{2} +0\.0632 '
  expect_output '^ +4 +yes +none +4\.3094 +4\.3094 +0\.000[0-9] +0\.0008 '
  exit
fi

tiny=(--batch 2 --length 4 --d-model 8 --heads 2 --threads 1)

# A row a run, with the files.
run "${tiny[@]}" --depths 1,2 --steps 5 --curves unwatched.csv
run "${tiny[@]}" --depths 1,2 --steps 5 --csv table.csv --curves curves.csv --svg figure.svg --report report.html
cmp unwatched.csv curves.csv || fail "watching for a report changes the runs"
(($(grep -c '<figcaption>Norm of the gradient, by layer' report.html) == 8)) || fail "not a heat-map a run"
(($(grep -c '<figcaption>Attention' report.html) == 8)) || fail "not attention of each run"
grep -qF "$(grep -E '^ +2 +no +none ' out.txt)" report.html || fail "the report's table is not the printed one"
! grep -Eqi 'https?://[^w]|<script' report.html || fail "the report is not on its own"
expect_output '^run 4/8  depth 1, neither residual nor norm: loss [0-9.]+ to [0-9.]+ in [0-9]+s, [0-9]+s left$'
(($(grep -Ec '^ +[12] +(yes|no) +(standard|none) ( +[0-9.]+){5} +- ( *[0-9.]+) +-$' out.txt) == 8)) ||
  fail "no table of 8 rows: $(cat out.txt)"
expect_output '^(Least stable: .* by the largest jump of the loss|Stable throughout)'
expect_output '^Ended above half the loss of guessing \(log 50 = 3\.9120\): '
expect_output '^(Against expectation|As expected)'
! grep -q 'PyTorch\|inside their ranges\|OUT OF RANGE' out.txt || fail "judged although the settings are others"
! grep -q $'[\r\033]' out.txt || fail "control characters in plain output"
(($(wc -l <table.csv) == 9 && $(wc -l <curves.csv) == 8 * 5 + 1)) || fail "rows are missing in the files"
[[ $(head -n 1 curves.csv) == depth,residual,norm,order,seed,step,loss,grad_norm ]] || fail "the curves' header"
# The table's first and last loss are those of the curves.
awk -F, 'NR > 1 && $6 == 1 { print $7 }' curves.csv >first.txt
awk -F, 'NR > 1 && $6 == 5 { print $7 }' curves.csv >last.txt
cut -d, -f6 table.csv | sed 1d | diff - first.txt >/dev/null || fail "first losses differ"
cut -d, -f7 table.csv | sed 1d | diff - last.txt >/dev/null || fail "last losses differ"

# The picture is well-formed: two curves a run and one a legend entry, nothing from elsewhere, no stray numbers.
grep -q '^<svg xmlns=' figure.svg || fail "no picture"
(($(grep -c '<polyline' figure.svg) == 2 * 8 + 4)) || fail "not all curves are drawn"
! grep -qi 'nan\|inf"\|href\|url(' figure.svg || fail "something strange in the picture"
if command -v python3 >/dev/null; then
  python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' figure.svg || fail "the picture is no XML"
fi

# The same seed gives the same numbers, another seed others; each run starts from its seed, whatever came before.
run "${tiny[@]}" --depths 1,2 --steps 5 --curves again.csv
same curves.csv again.csv
run "${tiny[@]}" --depths 2 --residual no --norm none --steps 5 --seeds 1,0 --curves seeds.csv
grep ',none,pre,0,' seeds.csv | diff - <(grep '^2,no,none,pre,0,' curves.csv) >/dev/null || fail "seed 0 differs"
! diff <(grep ',pre,0,' seeds.csv | cut -d, -f7) <(grep ',pre,1,' seeds.csv | cut -d, -f7) >/dev/null ||
  fail "two seeds give the same"

# Further rows: norms and orders. Without a norm there is no order.
run "${tiny[@]}" --depths 1 --residual yes --norm standard,unbiased,rms,none --order pre,post --steps 2
(($(grep -c '^run [0-9]/7 ' out.txt) == 7)) || fail "not 7 rows: $(cat out.txt)"
expect_output '^run 4/7  depth 1, residual and unbiased post-norm: '
expect_output '^depth +residual +norm +order '

# Warm-up starts slowly, clipping bounds what the optimiser sees but not what is told.
run "${tiny[@]}" --depths 1 --residual yes --norm none --steps 20 --lr 0.01 --curves plain.csv
run "${tiny[@]}" --depths 1 --residual yes --norm none --steps 20 --lr 0.01 --warmup 10 --curves warm.csv
run "${tiny[@]}" --depths 1 --residual yes --norm none --steps 20 --lr 0.01 --clip 1e-3 --curves clip.csv
for other in warm.csv clip.csv; do
  diff <(sed -n 2p plain.csv) <(sed -n 2p $other) >/dev/null || fail "$other begins elsewhere"
  ! diff plain.csv $other >/dev/null || fail "$other changes nothing"
done

# A run that meets NaN goes on to the end, and its step is noted; with clipping as well.
for clip in 0 1; do
  run "${tiny[@]}" --depths 1 --norm none --residual yes --lr 1e8 --steps 20 --clip $clip --csv nan.csv --curves nans.csv \
    --svg nan.svg
  first=$(awk -F, 'NR > 1 && ($7 !~ /^[0-9]/ || $8 !~ /^[0-9]/) { print $6; exit }' nans.csv)
  [[ -n $first ]] || fail "nothing became NaN"
  expect_output "^Least stable: residual without norm, whose loss or gradient was not finite at depth 1, step $first\\.\$"
  [[ $(tail -n 1 nan.csv | cut -d, -f14) == "$first" ]] || fail "the step of the first NaN"
  (($(wc -l <nans.csv) == 21)) || fail "training did not go on"
  ! grep -qe '-nan' nan.csv nans.csv out.txt || fail "a NaN has a sign"
  ! grep -qi 'nan' nan.svg || fail "a NaN in the picture"
done

# Ctrl-C: the runs that were finished are told.
"$program" "${tiny[@]}" --depths 1,1000 --residual yes --norm standard --steps 300 --csv part.csv >stop.out 2>stop.err \
  </dev/null &
pid=$!
wait_until 30 grep -q '^run 1/2' stop.out
kill -INT "$pid"
ends_with 130
expect_output '^run 2/2 .*: stopped$' stop.out
expect_output '^ +1 +yes +standard ' stop.out
has_lines part.csv 2 || fail "no table of the run that was finished"

# Mistakes are said before anything runs.
run --help
((99 >= $(wc -L <out.txt))) || fail "the help is too wide"
for mistake in '--depths 0' '--depths x' '--norm layer' '--residual maybe' '--order mid' '--heads 7' '--steps 0' \
  '--threads 0' '--csv /nowhere/table.csv' '--nothing'; do
  read -ra arguments <<<"$mistake"
  expect_code 2 "$program" "${arguments[@]}"
  expect_output '^ablation: ' err.txt
  [[ ! -s out.txt ]] || fail "something ran in spite of $mistake"
done
full_output() { "$program" "${tiny[@]}" --depths 1 --steps 2 >/dev/full; }
expect_code 1 full_output
expect_output '^ablation: the output cannot be written$' err.txt
