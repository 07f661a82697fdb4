#!/usr/bin/env bash
# Text: the held-out part, the byte pairs it is compared with, and samples that are safe to show.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

text_of 5003 >text
run "${small[@]}" --text text --steps 5 --checkpoint trained
expect_output '4503 bytes to train on, 500 held out'
expect_output '^held-out loss [0-9]\.[0-9]{4} nats a byte; a table of byte pairs has [0-9]\.[0-9]{4}$'
(($(grep -c '^--- sample [123], temperature 0.8$' out.txt) == 3)) || fail "samples: $(cat out.txt)"

# The table of byte pairs, counted by other means.
printed=$(sed -nE 's/^held-out .* pairs has (.*)$/\1/p' out.txt)
counted=$(od -An -v -tu1 -w1 text | awk '
  { byte[NR] = $1 }
  END {
    split_at = NR - int(NR / 10)
    for (i = 1; i < split_at; ++i) { ++pairs[byte[i], byte[i + 1]]; ++total[byte[i]] }
    for (i = split_at + 1; i < NR; ++i) loss -= log((pairs[byte[i], byte[i + 1]] + 1 / 256) / (total[byte[i]] + 1))
    printf "%.4f", loss / (NR - split_at - 1)
  }')
[[ $printed == "$counted" ]] || fail "byte pairs: $printed, but counted $counted"

# The held-out loss is that of the model alone, however it is cut into batches; an untrained one knows nothing.
run --resume trained --no-checkpoint
held_out=$(grep '^held-out' out.txt)
for batch in 1 3 500; do
  run --resume trained --no-checkpoint --batch "$batch"
  [[ $(grep '^held-out' out.txt) == "$held_out" ]] || fail "batches of $batch: $(grep '^held-out' out.txt)"
done
run "${small[@]}" --text text --steps 0 --no-checkpoint
loss=$(sed -nE 's/^held-out loss ([0-9.]+) .*/\1/p' out.txt)
awk -v loss="$loss" 'BEGIN { exit !(loss > 5 && loss < 6.5) }' || fail "an untrained model has $loss, about log 256 = 5.5"

# Prompts, and the likeliest continuation.
run --resume trained --no-checkpoint --prompt 'the lazy dog' --temperature 0
expect_output '^the lazy dog$'
(($(grep -c '^--- sample' out.txt) == 1)) || fail "the likeliest continuation is one"
cp out.txt likeliest.txt
run --resume trained --no-checkpoint --prompt 'the lazy dog' --temperature 0.0001
same <(sed -n '/^--- sample 1/{n;p}' out.txt) <(sed -n '/^--- sample 1/{n;p}' likeliest.txt)

# A shortest text: the held-out tenth is just long enough for one sequence.
text_of 90 >shortest
run "${small[@]}" --text shortest --steps 1 --no-checkpoint
text_of 89 >too_short
expect_code 2 "$program" "${small[@]}" --text too_short --steps 1 --no-checkpoint

# A pipe is a text, too.
text_of 5003 | "$program" "${small[@]}" --text /dev/stdin --steps 1 --no-checkpoint >out.txt
expect_output '4503 bytes to train on'

# Any bytes can be learned, and what is shown of them is harmless: no control characters, and valid UTF-8.
head -c 30000 /dev/urandom >noise
run "${small[@]}" --text noise --steps 2 --no-checkpoint --temperature 100
iconv -f UTF-8 -t UTF-8 out.txt >/dev/null || fail "not valid UTF-8"
! LC_ALL=C grep -q $'[\001-\010\013-\037\177]' out.txt || fail "control characters: $(cat -v out.txt)"
run --resume trained --no-checkpoint --prompt $'naïve\ttab\r\nline \r \033[2J \302\233 \377 \355\240\200 €'
expect_output $'^naïve\ttab\r$'
expect_output '^line \\x0d \\x1b\[2J \\xc2\\x9b \\xff \\xed\\xa0\\x80 €$'
