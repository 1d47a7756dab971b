"""The built-in encoder with sin_cos in plain PyTorch, for tests. Its parameters have the same names."""

import math

import torch
from torch.nn.functional import layer_norm


class Net(torch.nn.Module):
    def __init__(self, vocabulary, outputs, d=16, d_ff=64, blocks=1):
        super().__init__()
        self.blocks_applied = blocks
        shapes = {"embedding": (vocabulary, d)}
        for block in range(blocks):
            attention, feed_forward = f"blocks.{block}.attention.", f"blocks.{block}.feed_forward."
            shapes |= {attention + name: (d, d) for name in ("query", "key", "value", "output")}
            shapes |= {feed_forward + "up": (d, d_ff), feed_forward + "up_bias": (d_ff,)}
            shapes |= {feed_forward + "down": (d_ff, d), feed_forward + "down_bias": (d,)}
            shapes |= {f"{layer}norm.{name}": (d,) for layer in (attention, feed_forward) for name in ("scale", "offset")}
        shapes |= {"output": (d, outputs), "output_bias": (outputs,)}
        for name, shape in shapes.items():
            *path, last = name.split(".")
            module = self
            for part in path:
                if part not in module._modules:
                    module.add_module(part, torch.nn.Module())
                module = module._modules[part]
            setattr(module, last, torch.nn.Parameter(torch.zeros(shape)))

    def forward(self, tokens, positions, attention_bias=None):
        p = dict(self.named_parameters())
        d = p["embedding"].shape[1]
        h = p["embedding"][tokens] * math.sqrt(d)
        if attention_bias is None:
            frequencies = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
            angles = positions.unsqueeze(-1) * frequencies
            h = h + torch.cat([angles.sin(), angles.cos()], -1).to(h.dtype)
            attention_bias = 0
        for block in range(self.blocks_applied):
            h = self.block(h, {n.split(".", 2)[2]: v for n, v in p.items() if n.startswith(f"blocks.{block}.")}, attention_bias)
        return h @ p["output"] + p["output_bias"]

    @staticmethod
    def block(h, p, bias):
        d = h.shape[-1]

        def norm(x, layer):
            return layer_norm(x, x.shape[-1:], p[layer + ".norm.scale"], p[layer + ".norm.offset"])

        def heads(name):
            return (h @ p["attention." + name]).unflatten(-1, (2, d // 2)).transpose(-2, -3)

        weights = (heads("query") @ heads("key").transpose(-1, -2) / math.sqrt(d // 2) + bias).softmax(-1)
        h = norm(h + (weights @ heads("value")).transpose(-2, -3).flatten(-2) @ p["attention.output"], "attention")
        hidden = (h @ p["feed_forward.up"] + p["feed_forward.up_bias"]).relu()
        return norm(h + hidden @ p["feed_forward.down"] + p["feed_forward.down_bias"], "feed_forward")
