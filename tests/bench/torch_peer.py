#!/usr/bin/env python3
"""The workloads of workloads.h in PyTorch, to be timed beside ours.

  torch_peer.py WORKLOAD[:SIZES] THREADS plain|tuned|compiled

plain is written out as in the lessons; tuned uses PyTorch's own fused LayerNorm, attention and optimiser and its grouped
gradient norm where the formula allows; compiled is tuned and torch.compile. Talks as serve.h says.
"""
import json
import math
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class StdNorm(nn.Module):
    def __init__(self, n, eps=1e-6):
        super().__init__()
        self.a_2, self.b_2, self.eps = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n)), eps

    def forward(self, x):
        return self.a_2 * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + self.eps) + self.b_2


class PlainNorm(nn.Module):
    def __init__(self, n, eps=1e-5):
        super().__init__()
        self.gamma, self.beta, self.eps = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n)), eps

    def forward(self, x):
        var = x.var(-1, keepdim=True, unbiased=False)
        return self.gamma * (x - x.mean(-1, keepdim=True)) / torch.sqrt(var + self.eps) + self.beta


class PlainRMSNorm(nn.Module):
    def __init__(self, n, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(n)), eps

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, d, heads, causal, tuned):
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.heads, self.causal, self.tuned = heads, causal, tuned

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if self.tuned and hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
            if self.causal:
                s = s.masked_fill(~torch.tril(torch.ones(T, T)).bool(), float("-inf"))
            y = s.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    def __init__(self, d, heads, d_ff, norm, act, causal, tuned):
        super().__init__()
        self.n1, self.n2 = norm(d), norm(d)
        self.attn = Attention(d, heads, causal, tuned)
        self.w1, self.w2, self.act = nn.Linear(d, d_ff), nn.Linear(d_ff, d), act

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.w2(self.act(self.w1(self.n2(x))))


class LM(nn.Module):
    def __init__(self, V, d, heads, L, max_len, norm, tuned, tied=False):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, d), nn.Embedding(max_len, d)
        self.blocks = nn.Sequential(*[Block(d, heads, 4 * d, norm, F.gelu, True, tuned) for _ in range(L)])
        self.n, self.head = norm(d), nn.Linear(d, V, bias=not tied)
        if tied:
            self.head.weight = self.tok.weight

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1)))
        return self.head(self.n(self.blocks(x)))


def language_model(V, d, heads, L, B, T, optimiser, tuned, compiled, tied=False):
    model = LM(V, d, heads, L, max(T, 64), nn.LayerNorm if tuned or tied else PlainNorm, tuned, tied)
    opt = optimiser(model.parameters())
    run = torch.compile(model) if compiled else model

    def step():
        start = torch.randint(0, V, (B, 1))
        seq = (start + torch.arange(T + 1)) % V
        loss = F.cross_entropy(run(seq[:, :-1]).reshape(-1, V), seq[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        if not tied:
            if tuned:
                torch.nn.utils.clip_grad_norm_(model.parameters(), math.inf)
            else:
                sum(p.grad.norm() ** 2 for p in model.parameters() if p.grad is not None).sqrt()
        opt.step()
        return loss.item()

    return step


def forward_backward(module, shape, compiled):
    x, dy = torch.randn(shape, requires_grad=True), torch.randn(shape)
    run = torch.compile(module) if compiled else module

    def step():
        module.zero_grad()
        x.grad = None
        run(x).backward(dy)

    return step


LANGUAGE_MODELS = {
    "tiny": {"V": 50, "d": 64, "heads": 4, "L": 12, "B": 32, "T": 32},
    "char": {"V": 97, "d": 128, "heads": 4, "L": 4, "B": 4, "T": 64},
    "gpt2": {"V": 50257, "d": 768, "heads": 12, "L": 12, "B": 4, "T": 64},
}


def make_step(workload, tuned, compiled):
    fused = {"fused": True} if tuned and int(torch.__version__.split(".")[0]) >= 2 else {}
    adam = lambda p: torch.optim.Adam(p, lr=3e-4, **fused)
    adamw = lambda p: torch.optim.AdamW(p, lr=1e-4, **fused)
    name, _, sizes = workload.partition(":")
    if name in LANGUAGE_MODELS:
        size = dict(LANGUAGE_MODELS[name])
        if sizes:
            size.update(zip(("L", "B", "T"), map(int, sizes.split("x"))))
        tied = name == "gpt2"
        return language_model(**size, optimiser=adamw if tied else adam, tuned=tuned, compiled=compiled, tied=tied)
    norm_shape = (32, 100, 768)
    rms = nn.RMSNorm(768, 1e-6) if tuned and hasattr(nn, "RMSNorm") else PlainRMSNorm(768)
    return {
        "encoder": lambda: forward_backward(
            nn.Sequential(*[Block(512, 8, 2048, StdNorm, F.relu, False, tuned) for _ in range(6)], StdNorm(512)),
            (8, 32, 512), compiled),
        "layer_norm_std": lambda: forward_backward(StdNorm(768), norm_shape, compiled),
        "layer_norm": lambda: forward_backward(nn.LayerNorm(768) if tuned else PlainNorm(768), norm_shape, compiled),
        "rms_norm": lambda: forward_backward(rms, norm_shape, compiled),
    }[workload]()


def main():
    if len(sys.argv) != 4 or sys.argv[3] not in ("plain", "tuned", "compiled"):
        sys.exit(__doc__)
    workload, threads, form = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    step = make_step(workload, form != "plain", form == "compiled")
    first = last = step()
    for _ in range(2):
        last = step()
    print(json.dumps({"ready": f"PyTorch {torch.__version__} {form}"}), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            last = step()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(times), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"peak_mib": peak, "first_loss": first, "last_loss": last}), flush=True)


main()
