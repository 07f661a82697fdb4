#!/usr/bin/env bash
# next_token_full_disk.sh PROGRAM: on a file system with room for one checkpoint but not for the next one beside it, the
# run ends with an error, the old checkpoint stays whole and nothing else is left; with more room it goes on as if nothing
# had happened. The file system is made in memory, in a namespace of its own; where the system allows none, a limit on
# the size of files stands in for it.
program=$(readlink -f "$1")
if [[ -z ${PRENORM_OWN_NAMESPACE-} ]]; then
  for way in "unshare --mount" "unshare --mount --map-root-user"; do
    # shellcheck disable=SC2086 # words
    if $way mount -t tmpfs -o size=64k none /mnt 2>/dev/null; then
      PRENORM_OWN_NAMESPACE=1 exec $way "$0" "$program"
    fi
  done
  export PRENORM_OWN_NAMESPACE=none
fi
# shellcheck source=tests/examples/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

trap 'umount "$folder/disk" 2>/dev/null || true; cleanup' EXIT

options=("${small[@]}" --d-model 64 --steps 20 --checkpoint-every 5)
run "${options[@]}" --checkpoint whole --log whole.csv
size=$(stat -c %s whole)
mkdir disk
if [[ $PRENORM_OWN_NAMESPACE != none ]]; then
  mount -t tmpfs -o "size=$((size + size / 2))" none disk
  expect_code 1 "$program" "${options[@]}" --checkpoint disk/parts --log parts.csv # the first save is that of step 0
  expect_output 'next_token: write_safetensors: "disk/parts": cannot write it: No space left on device' err.txt
  has_lines parts.csv 6 || fail "it ended before the second save: $(cat parts.csv)"
  mount -o "remount,size=$((size * 3))" disk
else
  echo "no file system of its own can be made here: instead of a full one, a limit on the size of files"
  run "${options[@]}" --steps 0 --checkpoint disk/parts
  cp disk/parts start
  limited() { (ulimit -f $((size / 2048)) && exec "$program" "$@"); }
  expect_code 2 limited --resume disk/parts --steps 20 --checkpoint-every 5 --log parts.csv
  expect_output 'next_token: write_safetensors: "disk/parts": cannot write it: File too large' err.txt
  same disk/parts start
fi
[[ $(ls -A disk) == parts ]] || fail "left on the disk: $(ls -A disk)"

rm parts.csv
run --resume disk/parts --steps 20 --checkpoint-every 5 --log parts.csv
same disk/parts whole
same_losses parts.csv whole.csv
echo "a checkpoint of $size bytes stayed whole"
