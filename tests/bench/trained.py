"""From the start of the program to a trained model, beside PyTorch. Called by tests/bench/run trained.

Ours is the command a user gives: it also asks the model what it has learned and writes a checkpoint, which the peer does
not. Peer and ours take turns, each a new process every time.
"""
import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time

from runner import HERE, environment, say

STEPS, WARM_UP = 300, 3  # the peer's three steps before it is ready count as well


def ours(programs, threads):
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        said = subprocess.run([programs / "next_token", "--depth", "8", "--steps", str(STEPS), "--threads", str(threads)],
                              cwd=folder, env=environment(), check=True, capture_output=True, text=True).stdout
        return time.perf_counter() - start, said.strip().splitlines()[-1]


def peer(python, threads, form):
    start = time.perf_counter()
    subprocess.run([python, HERE / "torch_peer.py", "tiny:8x32x32", str(threads), form], env=environment(), check=True,
                   capture_output=True, text=True, input=f"{STEPS - WARM_UP}\n")
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(
        prog="tests/bench/run trained", description="Times the whole process of the tiny task, depth 8 and 300 steps, "
        "beside the same in PyTorch. Let nothing else run meanwhile.")
    parser.add_argument("programs", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--peer", metavar="PYTHON", help="a Python that has PyTorch (default: no peer)")
    parser.add_argument("--runs", type=int, default=3, help="(default: %(default)s)")
    args = parser.parse_args()

    forms = ["plain", "tuned", "compiled"] if args.peer else []
    times = {name: [] for name in ["ours", *forms]}
    for run in range(args.runs):
        say(f"run {run + 1} of {args.runs} ...")
        seconds, said = ours(args.programs.parent.parent / "examples", args.threads)
        times["ours"].append(seconds)
        for form in forms:
            times[form].append(peer(args.peer, args.threads, form))
    for name, seconds in times.items():
        print(f"{name:<10}{statistics.median(seconds):>8.2f} s   ({min(seconds):.2f} .. {max(seconds):.2f})"
              + (f"   {said}" if name == "ours" else ""))
    if forms:
        best = min(statistics.median(times[form]) for form in forms)
        print(f"the best of the peer's three / ours: {best / statistics.median(times['ours']):.2f}")


main()
