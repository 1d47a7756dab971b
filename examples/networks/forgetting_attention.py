"""Forgetting attention: softmax attention that a gate of each token fades.

For query i and key j, of which j ≤ i are visible, with a gate f_t = σ(w · x_t + b) for each head and token:

    a_ij = softmax_j(q_i · k_j / √d + log f_{j+1} + ... + log f_i)

The key's own gate does not count, that of the query does. The sum is a difference of running sums.

Paper: Lin et al. 2025 (arXiv 2503.02130), section 3. There is no encoding of positions.

Chosen here: the block is that of a plain decoder, without the output gates, norms and shifts of the paper's "Pro"
block; b starts as torch starts a linear layer. Norms are LayerNorms before layers; feed-forward layers are four times
as wide, with GELU. Masked tokens stand before or after a sequence, where their gates are in no sum.
"""

import torch
from torch.nn import functional


def forgetting_attention(q, k, v, gate_logits, visible):
    """Outputs of heads: q, k, v [batch, heads, tokens, d], gate_logits [batch, heads, tokens]; visible: rows of queries."""
    until = functional.logsigmoid(gate_logits).cumsum(-1)
    logits = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + until[..., :, None] - until[..., None, :]
    return logits.masked_fill(~visible, torch.finfo(logits.dtype).min).softmax(-1) @ v


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.gate = torch.nn.Linear(width, heads)
        self.out = torch.nn.Linear(width, width, bias=False)
        self.feed_forward = torch.nn.Sequential(
            torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, features, visible):
        inputs = self.norm(features)
        q, k, v = self.qkv(inputs).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        read = forgetting_attention(q, k, v, self.gate(inputs).transpose(1, 2), visible)
        features = features + self.out(read.transpose(1, 2).flatten(2))
        return features + self.feed_forward(features)


class Forgetting(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=64, heads=4, blocks=2):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.out = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, outputs))

    def forward(self, tokens, positions, mask):
        features = self.embedding(tokens)
        earlier = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).tril()
        visible = earlier & mask[:, None, None, :]
        for block in self.blocks:
            features = block(features, visible)
        return self.out(features)
