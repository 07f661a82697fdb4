"""What training over MPI costs: measured on this machine, and by a model for many. Called by tests/bench/mpi.

The model: a ring all-reduce of S bytes over P machines takes 2 (P - 1) messages one after the other, each of S / P
bytes: t = 2 (P - 1) (latency + S / P / bandwidth) (Thakur, Rabenseifner, Gropp 2005, section 4). It hides behind
backward when t is not longer than backward, taken as two thirds of a step; the time of a step is taken to grow with
the rows, so that the rows a machine needs follow from the time of one row measured here.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

STEPS = {"tiny": 60, "char": 150, "gpt2": 6}
ROWS = {"tiny": 32, "char": 4, "gpt2": 4}
LINKS = {"1 Gbit/s": (50e-6, 125e6), "10 Gbit/s": (20e-6, 1.25e9), "100 Gbit/s": (5e-6, 12.5e9)}  # latency s, byte/s
MACHINES = [2, 4, 8, 16, 32, 64, 128, 256]


def measure(program, mpirun, workload, ranks):
    command = [str(ranks) if part == "2" and previous in ("-n", "-np") else part
               for previous, part in zip([""] + mpirun, mpirun)]
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    out = subprocess.run([*command, program, workload, str(STEPS[workload])], env=env, stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    return json.loads(out)


def main():
    parser = argparse.ArgumentParser(
        prog="tests/bench/mpi", description="Times steps shared by 1 and 2 ranks of one thread each, and shows what a "
        "model says for more machines. Let nothing else run meanwhile.")
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("mpirun", help=argparse.SUPPRESS)
    parser.add_argument("--workload", action="append", choices=list(STEPS), help="may be given several times (default: all)")
    args = parser.parse_args()

    print(f"{'workload':<10}{'ranks':>6}{'ms a step':>11}{'in hooks':>10}{'waiting':>10}{'share':>8}{'speed-up':>10}")
    alone, size = {}, {}
    for workload in args.workload or STEPS:
        for ranks in (1, 2):
            seen = measure(args.program, args.mpirun.split(), workload, ranks)
            ms = statistics.median(seen["ms"])
            alone.setdefault(workload, ms)
            size[workload] = seen["bytes"]
            mpi = seen["hooks_ms"] + seen["waiting_ms"]
            print(f"{workload:<10}{ranks:>6}{ms:>11.2f}{seen['hooks_ms']:>10.2f}{seen['waiting_ms']:>10.2f}"
                  f"{mpi / ms:>8.1%}{alone[workload] / ms:>10.2f}", flush=True)

    for workload, ms in alone.items():
        backward = ms / 1e3 / ROWS[workload] * 2 / 3  # seconds a row, one thread
        print(f"\n{workload}, {size[workload] / 1e6:.1f} MB of gradients, by the model: ms of one all-reduce, and the rows "
              "a machine needs (one thread) to hide it behind backward")
        print(f"{'machines':>9}" + "".join(f"{name:>22}" for name in LINKS))
        for machines in MACHINES:
            line = f"{machines:>9}"
            for latency, bandwidth in LINKS.values():
                t = 2 * (machines - 1) * (latency + size[workload] / machines / bandwidth)
                line += f"{t * 1e3:>12.2f}{-(-t // backward):>6.0f} rows"
            print(line)


main()
