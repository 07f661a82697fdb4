"""How many lines of autograd, nn and optim the programs of a --coverage build have run: coverage.py BUILD_DIR LEAST

Prints a line for each file below LEAST per cent, with the lines that never ran, and the total. Exit code 1 if that is
below LEAST. A line counts once, and as run if any compiled copy of it (a template's, a vector width's) has run.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GCOV = os.environ.get("GCOV", "gcov")


def read_counts(data_file):
    """Yields (file, line, whether it ran) of one object file."""
    command = [GCOV, "--json-format", "--stdout", str(data_file)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=data_file.parent).stdout
    rows = []
    for report in map(json.loads, said.splitlines()):
        for entry in report["files"]:
            path = pathlib.Path(report["current_working_directory"], entry["file"]).resolve()
            if not path.is_relative_to(ROOT):
                continue
            name = str(path.relative_to(ROOT))
            if name.startswith(("autograd/", "nn/", "optim/")):
                rows += [(name, line["line_number"], line["count"] > 0) for line in entry["lines"]]
    return rows


def ranges(numbers):
    """[3, 4, 5, 9] as '3-5 9'."""
    parts = []
    for n in sorted(numbers):
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def main():
    build, least = pathlib.Path(sys.argv[1]).resolve(), float(sys.argv[2])
    lines = collections.defaultdict(dict)
    # The notes, not the data: a file of which nothing ran has no data, and counts all the same.
    notes = sorted(build.rglob("*.gcno"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for rows in pool.map(read_counts, notes):
            for name, number, ran in rows:
                lines[name][number] = lines[name].get(number, False) or ran
    sources = {str(p.relative_to(ROOT)) for room in ("autograd", "nn", "optim") for p in (ROOT / room).rglob("*.cpp")}
    missing = sources - set(lines)
    if missing:
        sys.exit("not built for coverage: " + " ".join(sorted(missing)))
    run_all = total_all = 0
    for name, counts in sorted(lines.items()):
        run, total = sum(counts.values()), len(counts)
        run_all, total_all = run_all + run, total_all + total
        if 100 * run < least * total:
            print(f"{100 * run / total:5.1f} % of {total:4} {name}: {ranges(n for n, ran in counts.items() if not ran)}")
    print(f"coverage of autograd, nn and optim: {100 * run_all / total_all:.2f} % of {total_all} lines")
    return 0 if 100 * run_all >= least * total_all else 1


if __name__ == "__main__":
    sys.exit(main())
