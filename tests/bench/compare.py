"""Times our workloads beside their bound and, where there is one, PyTorch. Called by tests/bench/run.

Each is a process of its own; they take turns, a few steps at a time, so that whatever else the machine does meets all
of them alike. Ratios are of medians.
"""
import argparse
import json
import pathlib
import subprocess

from runner import HERE, Runner, say

WORKLOADS = ["tiny", "char", "encoder", "gpt2", "layer_norm_std", "layer_norm", "rms_norm"]
FORMS = ["plain", "tuned", "compiled"]
# Steps a turn: a turn takes 0.1 to 0.5 s.
TURN = {"tiny": 5, "char": 10, "encoder": 2, "gpt2": 1, "layer_norm_std": 10, "layer_norm": 10, "rms_norm": 10}


def ping_pong(programs):
    return int(subprocess.run([programs / "ping_pong"], capture_output=True, text=True, check=True).stdout)


def row(args, programs, workload, threads):
    say(f"{workload}, {threads} thread{'s' * (threads > 1)} ...")
    common = [workload, str(threads)]
    runners = {"ours": Runner("ours", [programs / "step", *common])}
    for how in ["split"] if "norm" in workload else ["blas", "split"]:
        runners[how] = Runner(how, [programs / "bound", *common, how])
    for form in FORMS if args.peer else []:
        runners[form] = Runner(form, [args.peer, HERE / "torch_peer.py", *common, form])
    apart = [ping_pong(programs)]
    for _ in range(args.turns):
        for runner in runners.values():
            runner.turn(TURN[workload])
    apart.append(ping_pong(programs))
    ends = {name: runner.end() for name, runner in runners.items()}

    medians = {name: runner.median() for name, runner in runners.items()}
    result = {"workload": workload, "threads": threads, "ours_ms": medians["ours"],
              "bound_ms": min(medians[how] for how in ("blas", "split") if how in medians),
              "bound_parts_ms": {how: medians[how] for how in ("blas", "split") if how in medians},
              "peer": runners["tuned"].ready.replace(" tuned", "") if args.peer else None,
              "peer_ms": {form: medians[form] for form in FORMS if form in medians},
              "spread": {name: runner.quartiles() for name, runner in runners.items()},
              "first_loss": ends["ours"]["first_loss"], "last_loss": ends["ours"]["last_loss"],
              "peer_first_loss": {form: ends[form]["first_loss"] for form in FORMS if form in ends},
              "peer_last_loss": {form: ends[form]["last_loss"] for form in FORMS if form in ends},
              "peak_mib": ends["ours"]["peak_mib"],
              "peer_peak_mib": {form: ends[form]["peak_mib"] for form in FORMS if form in ends},
              "ping_pong_ns": apart}
    return result


def text(result):
    low, high = result["spread"]["ours"]
    line = (f"{result['workload']:<15}{result['threads']:>3}{result['ours_ms']:>10.2f}{low:>9.2f} ..{high:>8.2f}"
            f"{result['bound_ms']:>10.2f}{result['ours_ms'] / result['bound_ms']:>8.2f}")
    peer = result["peer_ms"]
    if peer:
        best = min(peer, key=peer.get)
        line += "".join(f"{peer[form]:>10.2f}" for form in FORMS) + f"{peer[best] / result['ours_ms']:>8.2f}"
    line += f"{result['peak_mib']:>7}"
    if peer:
        line += f"{min(result['peer_peak_mib'].values()):>7}"
    line += f"  {result['ping_pong_ns'][0]}, {result['ping_pong_ns'][1]}"
    if result["first_loss"] is not None:
        line += f"  loss {result['first_loss']:.5f} .. {result['last_loss']:.5f}"
        if peer:
            gap = max(abs(result["last_loss"] - loss) for loss in result["peer_last_loss"].values())
            line += f" (peer: within {gap:.1g})"
    return line


def head(peer):
    line = f"{'workload':<15}{'thr':>3}{'ours ms':>10}{'quartiles':>19}{'bound':>10}{'o/b':>8}"
    if peer:
        line += "".join(f"{form:>10}" for form in FORMS) + f"{'p/o':>8}"
    return line + f"{'MiB':>7}" + (f"{'peer':>7}" if peer else "") + "  ping-pong ns"


def main():
    parser = argparse.ArgumentParser(
        prog="tests/bench/run", description="Times our workloads beside their matrix products or memory traffic (the "
        "bound) and beside PyTorch, taking turns. Let nothing else run meanwhile.")
    parser.add_argument("programs", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--threads", default="1,2", help="numbers of threads, by commas (default: %(default)s)")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="may be given several times (default: all)")
    parser.add_argument("--peer", metavar="PYTHON", help="a Python that has PyTorch (default: no peer)")
    parser.add_argument("--json", metavar="FILE", help="the rows, as JSON")
    parser.add_argument("--turns", type=int, default=9, help="turns that each takes (default: %(default)s)")
    args = parser.parse_args()
    try:
        threads = [int(n) for n in args.threads.split(",")]
    except ValueError:
        parser.error(f"--threads: {args.threads}: expected numbers with commas between")

    rows = []
    for workload in args.workload or WORKLOADS:
        for n in threads:
            rows.append(row(args, args.programs, workload, n))
            if len(rows) == 1:
                print(head(args.peer))
            print(text(rows[-1]), flush=True)
            if args.json:
                pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    if args.peer:
        print(f"\nplain, tuned, compiled: {rows[0]['peer']}. o/b: ours / bound. p/o: the best of the peer's three / ours.")
    by = {(r["workload"], r["threads"]): r["ours_ms"] for r in rows}
    for n in threads:
        if ("layer_norm", n) in by and ("rms_norm", n) in by:
            print(f"RMSNorm / LayerNorm, {n} thread{'s' * (n > 1)}: {by['rms_norm', n] / by['layer_norm', n]:.2f}")


main()
