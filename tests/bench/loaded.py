"""What a step takes while another process keeps one core busy. Called by tests/bench/run loaded.

The busy process and the quiet take turns. It stays on one core, and the system may move our threads about.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

from runner import Runner, say

BUSY = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"


def main():
    parser = argparse.ArgumentParser(
        prog="tests/bench/run loaded", description="Times steps alone and beside a process that keeps one core busy. "
        "Let nothing else run meanwhile.")
    parser.add_argument("programs", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="(default: all, here %(default)s)")
    parser.add_argument("--workload", action="append", help="may be given several times (default: tiny, char, layer_norm)")
    parser.add_argument("--turns", type=int, default=15, help="turns that each takes, of 10 steps (default: %(default)s)")
    args = parser.parse_args()

    print(f"{'workload':<15}{'alone ms':>10}{'loaded':>10}{'ratio':>8}{'worst step alone':>19}{'loaded':>10}")
    for workload in args.workload or ["tiny", "char", "layer_norm"]:
        say(f"{workload} ...")
        runner = Runner(workload, [args.programs / "step", workload, str(args.threads)])
        times = {"alone": [], "loaded": []}
        for _ in range(args.turns):
            for how, kept in times.items():
                busy = subprocess.Popen([sys.executable, "-c", BUSY]) if how == "loaded" else None
                runner.times = []
                runner.turn(10)
                kept += runner.times
                if busy:
                    busy.kill()
                    busy.wait()
        runner.end()
        alone, loaded = (statistics.median(kept) for kept in times.values())
        print(f"{workload:<15}{alone:>10.2f}{loaded:>10.2f}{loaded / alone:>8.2f}{max(times['alone']):>19.2f}"
              f"{max(times['loaded']):>10.2f}", flush=True)


main()
