#!/usr/bin/env python3
"""Draws pictures/NAME.svg for each lesson from what the lesson prints.

    examples/lessons/pictures.py [FOLDER]

FOLDER holds the built lessons; without it they are built first. Only Python's own library is used.
"""
import math
import re
import subprocess
import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Okabe and Ito's colours, which are told apart by everybody.
BLUE, ORANGE, GREEN, RED, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9"
GREY, BLACK = "#666666", "#222222"
NUMBER = r"(-?[0-9][0-9.]*(?:e[+-]?[0-9]+)?)"


def mix(colour, share):
    """From white at 0 to the colour at 1."""
    parts = [int(colour[i:i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in parts)


class Picture:
    def __init__(self, title, height):
        self.width, self.height = 480, height
        self.parts = []
        self.text(12, 20, title, bold=True)

    def text(self, x, y, text, colour=BLACK, anchor="start", size=12, bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" '
                          f'text-anchor="{anchor}"{weight}>{escape(text)}</text>')

    def rect(self, x, y, width, height, colour, stroke="none"):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                          f'fill="{colour}" stroke="{stroke}"/>')

    def line(self, points, colour, width=2):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')

    def curve(self, points, colour):
        self.line(points, colour)
        for x, y in points:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')

    def arrow(self, x0, y0, x1, y1, colour):
        along = math.atan2(y1 - y0, x1 - x0)
        head = [(x1 - 7 * math.cos(along + turn), y1 - 7 * math.sin(along + turn)) for turn in (0.45, -0.45)]
        self.line([(x0, y0), (x1, y1)], colour, 1.5)
        self.line([head[0], (x1, y1), head[1]], colour, 1.5)

    def box(self, x, y, label, width=64):
        self.rect(x, y, width, 26, "#ffffff", BLUE)
        self.text(x + width / 2, y + 17, label, anchor="middle")

    def bar(self, x, y, length, colour, label=""):
        self.rect(x, y, max(length, 1), 14, colour)
        self.text(x + length + 6, y + 11, label, size=11)

    def column(self, x, y, height, width, colour):
        """Up from y, or down where the height is negative."""
        self.rect(x, y - max(height, 0), width, max(abs(height), 1), colour)

    def tiles(self, x, y, rows, size, digits=None):
        """A matrix: blue for negative, orange for positive, the paler the smaller; what is exactly 0 is white."""
        most = max(abs(v) for row in rows for v in row)
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                left, top = x + j * size, y + i * size
                colour = mix(ORANGE if value > 0 else BLUE, 0.08 + 0.72 * abs(value) / most)
                self.rect(left, top, size, size, "#ffffff" if value == 0 else colour, "#cccccc")
                text = "0" if value == 0 else "" if digits is None else f"{value:.{digits}f}"
                self.text(left + size / 2, top + size / 2 + 4, text, GREY if value == 0 else BLACK, "middle", 10)

    def write(self, path):
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" font-family="sans-serif">\n'
            f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>\n' + "\n".join(self.parts) +
            "\n</svg>\n", encoding="utf-8")


# --- what a lesson printed
def rows(out, label):
    """The matrix that is printed behind a label of 26 columns; its further lines have none."""
    result = []
    for line in out.splitlines():
        name, values = line[2:28].strip(), line[28:].split()
        if result and (name or not values):
            break
        if result or name == label:
            result.append([float(v) for v in values])
    return result


def row(out, label):
    return rows(out, label)[0]


def one(out, pattern):
    return float(re.search(pattern, out).group(1))


def every(out, pattern):
    return [tuple(float(v) for v in match) for match in re.findall(pattern, out)]


# --- the pictures
def chain_rule(out):
    p = Picture("Forward computes; backward multiplies", 160)
    values = re.findall(rf"  (?:x|[aby] = \w+\(\w\)) +=? *{NUMBER}", out)[:4]
    local = re.findall(rf"d[aby]/d[xab] = .* = {NUMBER}\n", out)[:3]
    for i, name in enumerate(("x", "a = sin x", "b = exp a", "y = √b")):
        left = 16 + 122 * i
        p.text(left + 41, 44, f"{float(values[i]):.4f}", BLUE, "middle")
        p.box(left, 50, name, 82)
        if i > 0:
            p.arrow(left - 37, 58, left - 3, 58, BLUE)
            p.arrow(left - 3, 69, left - 37, 69, ORANGE)
            p.text(left - 20, 94, f"× {float(local[i - 1]):.4f}", ORANGE, "middle")
    p.text(16, 124, f"gradient {one(out, rf'by backward .* = {NUMBER}'):.12f}", ORANGE)
    p.text(16, 144, f"difference {one(out, rf'by moving x .* = {NUMBER}'):.12f}", GREEN)
    p.text(220, 134, f"the same to {one(out, rf'agree to {NUMBER}'):.0f} digits")
    return p


def fan_out(out):
    p = Picture("Two ways, two parts, one sum", 150)
    for x, y, name in ((16, 62, "x"), (120, 34, "sin"), (120, 92, "exp"), (224, 62, "×")):
        p.box(x, y, name)
    for y, along in ((47, "a"), (105, "b")):
        p.arrow(224, 75, 186, y, ORANGE)
        p.arrow(120, y, 82, 75, ORANGE)
        p.text(96, y + (-8 if y < 75 else 16), f"{one(out, rf'along {along}, .*: +{NUMBER}'):.3f}", ORANGE, "end")
    difference = one(out, rf"with \+= .*difference {NUMBER}")
    for y, label, value, colour in ((36, "with +=  ✓", one(out, rf"with \+= .*dy/dx = {NUMBER}"), GREEN),
                                    (74, "with =  ✗", one(out, rf"with = .*dy/dx = {NUMBER}"), RED),
                                    (112, "by difference", difference, GREY)):
        p.text(316, y, label, colour)
        p.bar(316, y + 4, 32 * value, colour, f"{value:.4f}")
    return p


def tape(out):
    p = Picture("Only the reverse of the tape gives the right number", 186)
    moved = 100 + 110 * one(out, rf"by difference dL/dx = {NUMBER}")
    for i, (order, value, mark) in enumerate(re.findall(rf"in the order (. . .): dL/dx = {NUMBER}   (.)", out)):
        colour = GREEN if mark == "✓" else RED
        p.text(16, 45 + 22 * i, f"{mark}  {order}", colour)
        p.bar(100, 34 + 22 * i, 110 * float(value), colour, f"{float(value):.4f}")
    p.line([(moved, 30), (moved, 166)], GREY, 1)
    p.text(moved, 180, "by difference", GREY, "middle", 11)
    return p


def matmul(out):
    p = Picture("dW = Xᵀ g, dX = g Wᵀ; the bias gets column sums", 190)
    for x, y, title, label in ((16, 44, "g = dL/dY", "g = dL/dY"), (178, 44, "dW = Xᵀ g", "dW, by backward"),
                               (340, 44, "dX = g Wᵀ", "dX, by backward"),
                               (178, 140, "db, sums of g's columns", "db, by backward")):
        p.text(x, y, title)
        p.tiles(x, y + 6, rows(out, label), 34, 2)
    return p


def check(out):
    p = Picture("The error of a difference against its step h: a V", 220)

    def at(h, error):
        return 62 + 35 * -math.log10(h), 30 + 15 * -math.log10(error)

    points = every(out, rf"h = {NUMBER}   {NUMBER}  #")
    for power in range(-10, 0, 2):
        y = at(1, 10.0**power)[1]
        p.text(16, y + 4, f"1e{power}", GREY, size=11)
        p.line([(56, y), (470, y)], "#dddddd", 1)
    for h, _ in points[::2]:
        p.text(at(h, 1)[0], 214, f"h = 1e{round(math.log10(h))}", GREY, "middle", 11)
    p.curve([at(h, error) for h, error in points], BLUE)
    p.text(140, 70, "truncation: h²", ORANGE)
    p.text(360, 150, "rounding: 1/h", RED)
    return p


def cross_entropy(out):
    p = Picture("The gradient of the logits is (p − y) / count", 150)
    for x, title, label in ((16, "p = softmax(z)", "p = softmax(z)"), (176, "y, the targets", "y, the targets"),
                            (340, "dz = (p − y) / 3", "dz, by backward")):
        p.text(x, 44, title)
        p.tiles(x, 50, rows(out, label), 30, 2)
    p.text(151, 100, "−", size=16)
    p.text(310, 100, "→", size=16)
    return p


def layer_norm(out):
    p = Picture("Three routes into x; dx is their sum", 190)
    routes = (("directly", BLUE, "directly"), ("by the mean", ORANGE, "+ through the mean"),
              ("by the variance", SKY, "+ through the variance"), ("dx", BLACK, "dx, by backward"))
    for r, (name, colour, label) in enumerate(routes):
        p.rect(16 + 118 * r, 32, 12, 12, colour)
        p.text(33 + 118 * r, 42, name)
        for feature, value in enumerate(row(out, label)):
            p.column(30 + 116 * feature + 21 * r, 122, 140 * value, 17, colour)
    p.line([(12, 122), (468, 122)], GREY, 1)
    for feature in range(4):
        p.text(70 + 116 * feature, 184, f"feature {feature}", GREY, "middle", 11)
    return p


def fused(out):
    p = Picture("What LayerNorm takes away; half the gradient at 2x", 190)
    for r, (name, label, colour) in enumerate((("g", "g", BLUE), ("− mean part", "- mean part", RED),
                                               ("− x_hat part", "- x_hat part", RED),
                                               ("passes", "= what passes", GREEN))):
        p.text(16, 56 + 38 * r, name)
        for feature, value in enumerate(row(out, label)):
            p.column(110 + 40 * feature, 54 + 38 * r, 34 * value, 30, colour)
    for y, label in ((70, "dx at x"), (140, "dx at 2x")):
        p.text(300, y, label)
        for feature, value in enumerate(row(out, label)):
            p.column(360 + 26 * feature, y, 80 * value, 20, GREEN)
    p.text(300, 184, f"ratio {one(out, rf'ratio of their lengths: {NUMBER}'):.4f}", GREY)
    return p


def residual(out):
    p = Picture("Skip and branch add up; depth 16 with and without the skip", 190)
    for i, (skip, branch) in enumerate(every(out, rf"skip {NUMBER}, branch {NUMBER}")):
        p.text(16, 47 + 21 * i, f"layer {16 - 4 * i}", size=11)
        p.rect(80, 36 + 21 * i, 90 * skip, 14, BLUE)
        p.rect(80 + 90 * skip, 36 + 21 * i, 90 * branch, 14, ORANGE)
    p.text(370, 47, "skip", BLUE)
    p.text(410, 47, "branch", ORANGE)
    for y, label, colour in ((134, "with the skip", GREEN), (162, "without", RED)):
        value = one(out, rf"{label} .*dL/dx\| = {NUMBER}")
        p.text(16, y + 11, label, size=11)
        p.bar(100, y, 70 * value, colour, f"|dL/dx| = {value:.3g}")
    return p


def attention(out):
    p = Picture("No gradient to what comes later: exactly 0", 200)
    blocks = re.findall(r"((?:    output \d +[ 0-9.]+\n){6})", out)
    for x, title, block in ((16, "causal", blocks[0]), (256, "without a mask", blocks[1])):
        p.text(x, 44, title)
        p.tiles(x, 50, [[float(v) for v in line.split()[2:]] for line in block.splitlines()], 23)
    p.text(164, 120, "output down,", GREY, size=11)
    p.text(164, 136, "input across", GREY, size=11)
    return p


def orders(out):
    p = Picture("The last block's gradient against depth, logarithmic", 190)
    for name, colour, slope in zip(("pre", "post"), (BLUE, ORANGE), re.findall(rf"  slope {NUMBER}", out)):
        norms = every(out, rf" {name}-norm, L = +{NUMBER}: .* block {NUMBER} ")
        points = [(60 + 90 * (math.log2(depth) - 1), 86 - 75 * math.log(norm)) for depth, norm in norms]
        p.curve(points, colour)
        p.text(345, points[-1][1] + 4, f"{name}-norm: slope {slope}", colour)
        for x, (depth, _) in zip((x for x, _ in points), norms):
            p.text(x, 182, f"L = {depth:.0f}", GREY, "middle", 11)
    return p


def train(out):
    p = Picture("Gradient norm by block and step; ways before and after", 210)
    for i, (block, shades) in enumerate(re.findall(r"    block (\d) \|(.*)\|", out)):
        p.text(12, 46 + 18 * i, f"block {block}", size=11)
        for j, shade in enumerate(shades):
            p.rect(60 + 8 * j, 33 + 18 * i, 8, 17, mix(RED, " .:-=+*#%@".index(shade) / 9))
    p.text(12, 124, "share of the gradient that crossed k branches", GREY, size=11)
    for when, colour, offset in (("before", BLUE, 0), ("after", ORANGE, 15)):
        shares = re.search(rf"crossed, {when}:\n(.*)\n", out).group(1)
        for k, share in enumerate(re.findall(rf"\d: {NUMBER}", shares)):
            p.column(60 + 44 * k + offset, 186, 50 * float(share), 14, colour)
        p.text(410, 140 + offset, when, colour)
    for k in range(7):
        p.text(75 + 44 * k, 204, str(k), GREY, "middle", 11)
    first, last = every(out, rf"loss {NUMBER} at the first step, {NUMBER} at")[0]
    p.text(468, 20, f"loss {first:.2f} → {last:.2f}", GREEN, "end")
    return p


DRAWINGS = {
    "01_scalar_chain_rule": chain_rule,
    "02_fan_out": fan_out,
    "03_tape": tape,
    "04_matmul_and_broadcasting": matmul,
    "05_trusting_a_check": check,
    "06_softmax_and_cross_entropy": cross_entropy,
    "07_layer_norm": layer_norm,
    "08_fused_layer_norm": fused,
    "09_residual": residual,
    "10_causal_attention": attention,
    "11_pre_and_post_norm": orders,
    "12_train": train,
}


def main():
    (HERE / "pictures").mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        program = [str(Path(sys.argv[1]) / name)] if len(sys.argv) > 1 else [str(ROOT / "examples/run"), f"lessons/{name}"]
        run = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        draw(run.stdout).write(HERE / "pictures" / f"{name}.svg")


if __name__ == "__main__":
    main()
