#!/usr/bin/env bash
# The report: its numbers are the run's, watching changes nothing, and it is whole whenever the run ends.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

run "${small[@]}" --steps 12 --checkpoint plain --log plain.csv
run "${small[@]}" --steps 12 --checkpoint watched --log watched.csv --report run.html
same_losses watched.csv plain.csv
cmp plain watched || fail "the checkpoint of a watched run is another"

for title in "Loss and norm of the whole gradient" "Norm of the gradient, by layer" "Spread of the stream" "Attention"; do
  grep -q "<figcaption>$title" run.html || fail "no figure: $title"
done
grep -q 'steps 1 to 12 of 12' run.html || fail "it does not say which steps"
! grep -Eqi 'nan|https?:|<script|<link [^>]*href="[^d]' run.html || fail "something strange in the report"
(($(wc -c <run.html) < 1000000)) || fail "it is large: $(wc -c <run.html) bytes"

# numbers TITLE: the table behind a figure, a row a line, cells with tabs between.
numbers() { awk -v title="$1" '/<figcaption>/ { on = index($0, title) } on && /^<tr><td>/' run.html |
  sed -E 's|</td><td>|\t|g; s|</?t[rd]>||g'; }

# The loss of step 1, and the layers' norms, which make up the norm of the whole.
loss=$(sed -n 2p plain.csv | cut -d, -f2) norm=$(sed -n 2p plain.csv | cut -d, -f3)
numbers "Loss and norm" | awk -F'\t' -v loss="$loss" -v norm="$norm" '
  $1 == 1 { seen = 1; if (($2 - loss) ^ 2 > 1e-6 * loss ^ 2 || ($3 - norm) ^ 2 > 1e-6 * norm ^ 2) exit 1 }
  END { exit !seen }' || fail "step 1 is not loss $loss, norm $norm: $(numbers "Loss and norm" | head -n 1)"
numbers "Norm of the gradient" | awk -F'\t' -v norm="$norm" '
  { sum += $2 ^ 2 } END { exit (sqrt(sum) - norm) ^ 2 > 1e-6 * norm ^ 2 }' ||
  fail "the norms by layer do not make up $norm: $(numbers "Norm of the gradient")"
# Each query's weights add up to 1; the first looks at itself alone.
numbers Attention | awk -F'\t' '$1 == 0 { ++maps; if ($2 != 1) exit 1 } END { exit !maps }' || fail "attention: $(numbers Attention)"

# Going on from a checkpoint, it tells of the steps since.
run "${small[@]}" --steps 5 --checkpoint five --report run.html
run --resume five --steps 12 --report run.html
grep -q 'steps 6 to 12 of 12, those since it went on from a checkpoint' run.html || fail "resumed: wrong steps"

# What cannot be written is known before the work.
expect_code 2 "$program" "${small[@]}" --steps 3 --no-checkpoint --report no-such-folder/run.html
expect_output 'no-such-folder/run.html' err.txt
expect_code 2 "$program" "${small[@]}" --steps 3 --report x --log x
expect_output 'same file' err.txt

# Stopped by a signal, it tells of what was done.
start stopped "${small[@]}" --steps 1000000 --report stopped.html
begun() { [[ $(wc -l <stopped.csv 2>/dev/null) -gt 5 ]]; }
wait_until 30 begun
kill -TERM "$pid"
ends_with 143
grep -q '</html>' stopped.html || fail "the report of a stopped run is not whole"
steps=$(grep -oE 'steps 1 to [0-9]+' stopped.html | grep -oE '[0-9]+$')
((steps == $(wc -l <stopped.csv) - 1)) || fail "the report of a stopped run ends at step $steps"
