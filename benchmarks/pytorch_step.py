#!/usr/bin/env python3
"""The training step of benchmarks/training_step in PyTorch, as its users write it.

Reverse string, batch 128, 5 blocks of 8 heads and d_model 64 with layer norm behind each residual, clipping to norm 1,
Adam; randomized_NAME: positions drawn from 0 to 2047. Prints one line of JSON.

  python3 benchmarks/pytorch_step.py --encoding randomized_relative --mode eager --length 40
"""
import argparse
import json
import math
import random
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

from ensemble_benchmark import length_range

WIDTH, HEADS, BLOCKS, BATCH, MAX_POSITION = 64, 8, 5, 128, 2048
HEAD = WIDTH // HEADS


def frequencies(size, device):
    return 10000.0 ** (-torch.arange(0, size, 2, device=device) / size)


def sinusoids(positions):
    angles = positions.unsqueeze(-1) * frequencies(WIDTH, positions.device)
    return torch.cat([angles.sin(), angles.cos()], -1)


def rotate(features, positions):
    angles = positions.unsqueeze(-1) * frequencies(HEAD, positions.device)
    sin, cos = angles.sin(), angles.cos()
    even, odd = features[..., 0::2], features[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, encoding, fused):
        super().__init__()
        self.encoding, self.fused = encoding, fused
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        if encoding == "relative":
            self.projection = nn.Linear(WIDTH, WIDTH, bias=False)
            self.content_bias = nn.Parameter(0.02 * torch.randn(HEADS, 1, HEAD))
            self.position_bias = nn.Parameter(0.02 * torch.randn(HEADS, 1, HEAD))

    def attention(self, h, positions):
        sequences, n, _ = h.shape
        q, k, v = (f(h).view(sequences, n, HEADS, HEAD).transpose(1, 2) for f in (self.query, self.key, self.value))
        term = None
        distances = positions[None, :] - positions[:, None]
        if self.encoding == "rope":
            q, k = rotate(q, positions), rotate(k, positions)
        elif self.encoding == "alibi":
            slopes = 2.0 ** -torch.arange(1, HEADS + 1, device=h.device)
            term = (-slopes[:, None, None] * distances.abs()).unsqueeze(0)
        elif self.encoding == "relative":
            table = self.projection(sinusoids(distances)).view(n, n, HEADS, HEAD)
            term = torch.einsum("bhid,ijhd->bhij", q + self.position_bias, table) / math.sqrt(HEAD)
            q = q + self.content_bias
        if self.fused:
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=term)
        else:
            logits = q @ k.transpose(-1, -2) / math.sqrt(HEAD)
            mixed = torch.softmax(logits if term is None else logits + term, -1) @ v
        return self.output(mixed.transpose(1, 2).reshape(sequences, n, WIDTH))

    def forward(self, h, positions):
        h = self.attention_norm(h + self.attention(h, positions))
        return self.feed_forward_norm(h + self.down(functional.relu(self.up(h))))


class Encoder(nn.Module):
    def __init__(self, encoding, fused):
        super().__init__()
        self.encoding = encoding
        self.embedding = nn.Embedding(3, WIDTH)
        self.blocks = nn.ModuleList(Block(encoding, fused) for _ in range(BLOCKS))
        self.output = nn.Linear(WIDTH, 2)

    def forward(self, tokens, positions):
        h = self.embedding(tokens) * math.sqrt(WIDTH)
        if self.encoding == "sin_cos":
            h = h + sinusoids(positions)
        for block in self.blocks:
            h = block(h, positions)
        return self.output(h[:, tokens.shape[1] // 2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    encodings = ["none", "sin_cos", "rope", "alibi", "relative"]
    parser.add_argument("--encoding", default="randomized_relative",
                        choices=encodings + [f"randomized_{name}" for name in encodings[1:]])
    parser.add_argument("--mode", default="eager", choices=["eager", "sdpa", "compile"])
    parser.add_argument("--length", type=length_range, default=(40, 40),
                        help="input length, half of the tokens: 40, or 1..40 to draw each step's length")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"],
                        help="precision of products (autocast)")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    device = options.device
    shortest, longest = options.length
    # Compiling for each length would take longer than the measurement.
    dynamic = None if shortest == longest else True
    name = options.encoding.removeprefix("randomized_")
    model = Encoder(name, options.mode != "eager").to(device)
    forward = torch.compile(model, dynamic=dynamic) if options.mode == "compile" else model
    adam = torch.optim.Adam(model.parameters(), lr=3e-4, fused=options.mode != "eager")
    wall, cpu = [], []
    warm_up = 3 if shortest == longest else 20
    for step in range(warm_up + options.steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        length = random.randint(shortest, longest)
        text = torch.randint(0, 2, (BATCH, length)).to(device)
        tokens = 2 * length
        positions = torch.arange(tokens) if name == options.encoding else torch.randperm(MAX_POSITION)[:tokens].sort().values
        with torch.autocast(device, torch.bfloat16, enabled=options.precision == "bfloat16"):
            logits = forward(torch.cat([text, torch.full_like(text, 2)], 1), positions.to(device).float())
        loss = functional.cross_entropy(logits.float().flatten(0, 1), text.flip(1).flatten())
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        if device == "cuda":
            torch.cuda.synchronize()
        if step >= warm_up:
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - cpu_start)
    print(json.dumps({
        "program": f"pytorch {torch.__version__} {options.mode}", "encoding": options.encoding, "length": longest,
        "device": device, "precision": options.precision, "threads": torch.get_num_threads(),
        "step_seconds_median": statistics.median(wall), "step_seconds_mean": statistics.mean(wall),
        "step_seconds_min": min(wall), "cpu_seconds_median": statistics.median(cpu),
        "cpu_seconds_mean": statistics.mean(cpu), "shortest": shortest, "loss": loss.item()}))


if __name__ == "__main__":
    main()
