#!/usr/bin/env bash
# Every row of README.md's table of faults names a test that is there.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
rows=0
while IFS='|' read -r _ _ _ file name _; do
  file=${file//[\` ]/} name=${name# } name=${name% }
  [[ $file == *_test.cpp ]] || continue
  rows=$((rows + 1))
  [[ -e $file ]] || { echo "there is no tests/$file"; exit 1; }
  [[ $name == "("* ]] || grep -qF "\"$name\"" "$file" || { echo "tests/$file has no case \"$name\""; exit 1; }
done < <(sed -n '/^## Faults/,$p' README.md)
((rows >= 80)) || { echo "only $rows rows"; exit 1; }
echo "$rows rows"
