#!/usr/bin/env python3
"""The training step of benchmarks/language_model/training_step in PyTorch, as its users write it.

The decoder of decimal addition (25M parameters in its blocks): RMSNorm before and after attention and GeGLU, no biases,
causal scaled_dot_product_attention, AdamW, clipping to norm 1. Prints one line of JSON.

  python3 benchmarks/language_model/pytorch_step.py --encoding rope --mode sdpa --length 128
"""
import argparse
import json
import math
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 116
SIZES = {"1M": (2, 4, 192), "2M": (2, 4, 256), "5M": (4, 4, 256), "25M": (6, 8, 512), "268M": (16, 16, 1024)}


def rotate(features, sin, cos):
    even, odd = features[..., 0::2], features[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)


class Fire(nn.Module):
    """One module for all blocks. Its term is [heads, n, n], with minus infinity after the query."""

    def __init__(self, heads):
        super().__init__()
        self.c, self.multiplier = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(1.0))
        self.mlp = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, heads))

    def forward(self, n):
        places = torch.arange(n, dtype=torch.float32)
        distances = (places[:, None] - places[None, :]).abs()
        farthest = torch.maximum(places[:, None], (self.multiplier * 512).abs())
        share = torch.log((self.c * distances).abs() + 1) / (torch.log((self.c * farthest).abs() + 1) + 1e-6)
        term = self.mlp(share.unsqueeze(-1)).permute(2, 0, 1)
        return term.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 8 * width, bias=False), nn.Linear(4 * width, width, bias=False)
        self.norms = nn.ModuleList(nn.RMSNorm(width, eps=1e-6) for _ in range(4))

    def attention(self, h, angles, term):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.inputs(h).chunk(3, -1))
        if angles is not None:
            q, k = rotate(q, *angles), rotate(k, *angles)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=term, is_causal=term is None)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def forward(self, h, angles, term):
        h = h + self.norms[1](self.attention(self.norms[0](h), angles, term))
        gate, value = self.up(self.norms[2](h)).chunk(2, -1)
        return h + self.norms[3](self.down(functional.gelu(gate) * value))


class Decoder(nn.Module):
    def __init__(self, encoding, blocks, heads, width):
        super().__init__()
        self.encoding, self.width, self.head = encoding, width, width // heads
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.output = nn.RMSNorm(width, eps=1e-6), nn.Linear(width, VOCABULARY, bias=False)
        self.fire = Fire(heads) if encoding == "fire" else None

    def forward(self, tokens):
        h = self.embedding(tokens) * math.sqrt(self.width)
        n, angles, term = tokens.shape[1], None, None
        if self.encoding == "rope":
            turns = torch.arange(n)[:, None] * 10000.0 ** (-torch.arange(0, self.head, 2) / self.head)
            angles = turns.sin(), turns.cos()
        elif self.encoding == "fire":
            term = self.fire(n)
        for block in self.blocks:
            h = block(h, angles, term)
        return self.output(self.norm(h))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoding", default="rope", choices=["none", "rope", "fire"])
    parser.add_argument("--mode", default="sdpa", choices=["sdpa", "compile"])
    parser.add_argument("--size", default="25M", choices=SIZES)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Decoder(options.encoding, *SIZES[options.size])
    forward = torch.compile(model) if options.mode == "compile" else model
    matrices = [p for name, p in model.named_parameters() if p.dim() >= 2 and not name.startswith("fire")]
    others = [p for name, p in model.named_parameters() if p.dim() < 2 or name.startswith("fire")]
    adamw = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                              lr=3e-4, fused=True)
    wall, cpu = [], []
    for step in range(2 + options.steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        text = torch.randint(0, VOCABULARY, (options.tokens // options.length, options.length + 1))
        logits = forward(text[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        adamw.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        if step >= 2:
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - cpu_start)
    median = statistics.median(wall)
    print(json.dumps({
        "program": f"pytorch {torch.__version__} {options.mode}", "encoding": options.encoding, "size": options.size,
        "length": options.length, "threads": torch.get_num_threads(), "step_seconds_median": median,
        "step_seconds_min": min(wall), "cpu_seconds_median": statistics.median(cpu),
        "tokens_per_second": text[:, 1:].numel() / median, "loss": loss.item()}))


if __name__ == "__main__":
    main()
