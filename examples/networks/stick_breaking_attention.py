"""Stick-breaking attention: each key takes its share of what nearer keys have left.

For query i and key j < i, with z_ij = q_i · k_j / √d:

    a_ij = σ(z_ij) (1 - σ(z_i,j+1)) ... (1 - σ(z_i,i-1))        o_i = sum of a_ij v_j

There is no softmax, and no encoding of positions: nearer keys come first. The weights of a query add up to at most 1.

Paper: Tan et al. 2024 (arXiv 2410.17980), section 2.

Chosen here: a token does not see itself, as in the authors' program; with `attend_current` it does. `remainder` adds
what is left of the stick times v_i to the output, as the tests of that program do. Products are sums of logarithms.
Norms are LayerNorms before layers, without a norm after heads; feed-forward layers are four times as wide, with GELU.
Masked keys have σ = 0.
"""

import torch
from torch.nn import functional


def stick_breaking_attention(q, k, v, visible):
    """Outputs of heads and what is left: q, k, v [batch, heads, tokens, d]; visible has rows of queries."""
    logits = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    left = functional.logsigmoid(-logits) * visible
    nearer = left.flip(-1).cumsum(-1).flip(-1) - left
    weights = torch.exp(functional.logsigmoid(logits) + nearer) * visible
    return weights @ v, torch.exp(left.sum(-1))


class Block(torch.nn.Module):
    def __init__(self, width, heads, attend_current, remainder):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.attend_current, self.remainder = attend_current, remainder
        self.out = torch.nn.Linear(width, width, bias=False)
        self.feed_forward = torch.nn.Sequential(
            torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, features, visible):
        inputs = self.norm(features)
        q, k, v = self.qkv(inputs).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        read, left = stick_breaking_attention(q, k, v, visible if self.attend_current else visible.tril(-1))
        if self.remainder:
            read = read + left[..., None] * v
        features = features + self.out(read.transpose(1, 2).flatten(2))
        return features + self.feed_forward(features)


class StickBreaking(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=64, heads=4, blocks=2, attend_current=False, remainder=False):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, attend_current, remainder) for _ in range(blocks))
        self.out = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, outputs))

    def forward(self, tokens, positions, mask):
        features = self.embedding(tokens)
        earlier = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).tril()
        visible = earlier & mask[:, None, None, :]
        for block in self.blocks:
            features = block(features, visible)
        return self.out(features)
