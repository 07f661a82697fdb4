"""How time and memory of a training step grow with depth, batch and length. Called by tests/bench/run growth.

Each size is a process of its own; they take turns, so that whatever else the machine does meets all of them alike.
Times are medians. The straight line is least squares of relative errors.
"""
import argparse
import pathlib

from runner import Runner, say

# What grows, the sizes (depth, B, T), and what a step's time should be linear in. Each T has the same number of tokens:
# the scores of attention are T numbers a token and head, all else of a token does not know T.
SERIES = [
    ("depth", [(n, 32, 32) for n in (3, 6, 12, 24, 48)], lambda depth, B, T: depth),
    ("batch", [(12, n, 32) for n in (8, 16, 32, 64, 128)], lambda depth, B, T: B),
    ("length", [(4, 2048 // n, n) for n in (32, 64, 128, 256, 512, 1024)], lambda depth, B, T: T),
]


def line(points):
    """a, b of y = a + b x, with the least sum of squares of (a + b x) / y - 1."""
    w = [1 / y ** 2 for _, y in points]
    total, mean_x = sum(w), sum(wi * x for wi, (x, _) in zip(w, points)) / sum(w)
    mean_y = sum(wi * y for wi, (_, y) in zip(w, points)) / total
    b = (sum(wi * (x - mean_x) * (y - mean_y) for wi, (x, y) in zip(w, points))
         / sum(wi * (x - mean_x) ** 2 for wi, (x, _) in zip(w, points)))
    return mean_y - b * mean_x, b


def main():
    parser = argparse.ArgumentParser(
        prog="tests/bench/run growth", description="Shows how time and memory of a training step grow with depth, batch "
        "and length, for TinyLM with d 64 and 4 heads. Let nothing else run meanwhile.")
    parser.add_argument("programs", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--turns", type=int, default=7, help="turns that each takes, of 3 steps (default: %(default)s)")
    args = parser.parse_args()

    for name, sizes, grows in SERIES:
        say(f"{name} ...")
        runners = [Runner(f"depth {d}, B {B}, T {T}",
                          [args.programs / "step", f"tiny:{d}x{B}x{T}", str(args.threads)]) for d, B, T in sizes]
        for _ in range(args.turns):
            for runner in runners:
                runner.turn(3)
        points = [(grows(*size), runner.median()) for size, runner in zip(sizes, runners)]
        a, b = line(points)
        print(f"{name}: {a:.3g} ms + {b:.3g} ms x {name if name != 'length' else 'T, at 2048 tokens'}")
        print(f"{'depth':>6}{'B':>5}{'T':>6}{'ms':>10}{'off the line':>15}{'us a token':>12}{'us a token, block':>20}{'MiB':>7}")
        for (depth, B, T), (x, ms), runner in zip(sizes, points, runners):
            us = 1e3 * ms / (B * T)
            print(f"{depth:>6}{B:>5}{T:>6}{ms:>10.2f}{100 * (ms / (a + b * x) - 1):>+13.1f} %{us:>12.2f}{us / depth:>20.3f}"
                  f"{runner.end()['peak_mib']:>7}")
        print(flush=True)


main()
