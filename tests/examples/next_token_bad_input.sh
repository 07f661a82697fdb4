#!/usr/bin/env bash
# Bad input gets one clear sentence and exit code 2, and changes no file.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

# refused SENTENCE OPTIONS...: SENTENCE is a regular expression that the complaint matches.
refused() {
  local sentence=$1
  shift
  expect_code 2 "$program" "$@"
  (($(wc -l <err.txt) == 1)) || fail "expected one line for: $* ($(cat err.txt))"
  expect_output "^next_token: .*$sentence" err.txt
  [[ ! -s out.txt ]] || fail "output in spite of a refusal: $* ($(cat out.txt))"
}

text_of 5000 >text
head -c 300 text >short
: >empty
mkdir directory
run "${small[@]}" --steps 2 --checkpoint good
run "${small[@]}" --steps 2 --checkpoint good_text --text text
cp good kept

# The command line.
refused "unknown option '--foo'" --foo
refused "unknown option '--foo=3'" --foo=3
refused "unknown option '-x'" -x
refused "unexpected argument 'extra'" extra
refused '--steps: expected a value' --steps
refused '--text: expected a value, got --steps' --text --steps 3
refused '--no-residual takes no value' --no-residual=3
for option in steps batch length lr warmup clip seed threads depth d-model heads checkpoint-every; do
  refused "--$option '-1': expected a (whole )?number from [01] to " "--$option" -1
  refused "--$option 'many': expected a (whole )?number" "--$option" many
  refused "--$option '': expected a (whole )?number" "--$option" ''
done
for option in batch length threads d-model heads checkpoint-every; do
  refused "--$option '0': expected a whole number from 1" "--$option" 0
done
for option in steps batch length depth d-model heads; do
  refused "--$option '1.5': expected a whole number" "--$option" 1.5
  refused "--$option '99999999999999999999': expected a whole number" "--$option" 99999999999999999999
done
for value in nan inf 1e999 0x10 '1 '; do refused "--lr '$value': expected a number" --lr "$value"; done
refused "--norm 'batch': expected unbiased, standard, rms or none" --norm batch
refused "--order 'middle': expected pre or post" --order middle
refused '--d-model 10 is not a multiple of --heads 4' --d-model 10
refused '--norm unbiased needs a --d-model of at least 2' --norm unbiased --d-model 1 --heads 1
refused 'more than this machine has' --d-model 1000000
refused 'more than this machine has' --batch 1000000000
refused '--checkpoint and --no-checkpoint exclude each other' --checkpoint file --no-checkpoint

# The text.
refused 'missing: cannot be read: No such file' --text missing
refused "--text '': expected the path of a file" --text ''
refused 'empty: the text is empty' --text empty
refused 'short: a text of 300 bytes is too short' --text short
refused 'a text of 5000 bytes is too short' --text text --length 500
refused 'directory: is a folder' --text directory
refused '/dev/zero: is not a file' --text /dev/zero
refused '/dev/null: is not a file' --text /dev/null
refused '--prompt goes with --text' --prompt x
refused '--temperature goes with --text' --temperature 1
refused "--prompt '': expected text" --text text --prompt ''
refused "--temperature '-1': expected a number from 0 to 100" --text text --temperature -1

# Checkpoints to resume.
head -c 1000 good >truncated
head -c "$(($(wc -c <good) - 1))" good >shorter
(cat good && echo) >longer
head -c 4000 /dev/urandom >noise
sed 's/option\.depth/option.derth/' good >foreign
sed 's/"option\.depth":"1"/"option.depth":"x"/' good >unreadable
sed 's/"option\.d-model":"8"/"option.d-model":"6"/' good >inconsistent
sed 's/"option\.heads":"2"/"option.heads":"0"/' good >zero
sed 's/"step":"2"/"step":"Z"/' good >no_step
for file in missing empty truncated shorter longer noise text directory /dev/null /dev/zero; do
  refused "read_safetensors: \"$file\": " --resume "$file"
done
for file in foreign unreadable zero no_step; do
  refused "$file: not a checkpoint of next_token: " --resume "$file"
done
refused 'inconsistent: ' --resume inconsistent
refused "--resume '': expected the path of a file" --resume ''
refused 'does not agree with good' --resume good --depth 2
refused 'does not agree with good' --resume good --text text
refused '--prompt goes with --text' --resume good --prompt x

# Files to write. The program may run as a user who may write anything, so permissions are not looked at here.
refused 'cannot open the folder' --checkpoint nowhere/file
refused 'expected the name of a file' --checkpoint directory/
refused 'there is something else of that name, not a regular file' --checkpoint directory
refused 'there is something else of that name, not a regular file' --checkpoint /dev/null
refused 'text: is there already and is not a checkpoint' --checkpoint text
refused "--checkpoint '': expected" --checkpoint ''
refused 'nowhere/log: the log cannot be written' --log nowhere/log
refused 'directory: the log cannot be written' --log directory
refused 'text: not a log of next_token' --log text
refused '/dev/full: the log cannot be written: No space left' --log /dev/full --no-checkpoint
refused '--log and --text are the same file' --log text --text ./text
refused '--log and --resume are the same file' --log good --resume good
refused '--checkpoint and --log are the same file' --checkpoint new --log "$PWD/new"
refused '--checkpoint and --text are the same file' --checkpoint text --text text

# All this has written nothing and destroyed nothing.
same good kept
text_of 5000 | cmp -s - text || fail "the text was changed"
[[ -c /dev/null && -c /dev/full && -c /dev/zero ]] || fail "a device was destroyed"
for file in next_token.safetensors file new; do
  [[ ! -e $file ]] || fail "$file was written"
done
run "${small[@]}" --steps 1 --no-checkpoint --log /dev/null
