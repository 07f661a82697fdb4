"""The processes that are timed, each of which runs steps when told to; see serve.h."""
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def say(text):
    print(text, file=sys.stderr, flush=True)


def environment():
    """Without what tells OpenBLAS to be another processor's: it would slow us and the peer."""
    return {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}


class Runner:
    """A process that runs steps when told to, see serve.h."""

    def __init__(self, name, command):
        self.name, self.times = name, []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment())
        self.ready = self.read()["ready"]

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name}: ended with code {self.process.wait()}")
        return json.loads(line)

    def turn(self, steps):
        print(steps, file=self.process.stdin, flush=True)
        self.times += self.read()

    def end(self):
        self.process.stdin.close()
        result = self.read()
        self.process.wait()
        return result

    def median(self):
        return statistics.median(self.times)

    def quartiles(self):
        cut = statistics.quantiles(self.times, n=4)
        return cut[0], cut[2]
