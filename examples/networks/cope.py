"""CoPE: positions that count only the tokens which a query's gates let through.

For query i and key j, of which j ≤ i are visible:

    g_ij = σ(q_i · k_j / √d)        p_ij = min(g_ij + ... + g_ii, positions - 1)
    a_ij = softmax_j((q_i · k_j + q_i · e[p_ij]) / √d)

e is a table of vectors. Between two whole numbers e[p] is their mixture: (1 - w) e[⌊p⌋] + w e[⌈p⌉] with w = p - ⌊p⌋.

Paper: Golovneva et al. 2024 (arXiv 2405.18719), section 4.

Chosen here: the paper leaves √d out; the authors' program divides gates and logits by it, and so does this file. With
`divided: false` the term of the position is not divided, which is the other form of that program. A block's heads
share its table, which starts at zero. No gradient flows through ⌊p⌋ and ⌈p⌉. Norms are LayerNorms before layers;
feed-forward layers are four times as wide, with GELU. Masked keys have the gate 0.
"""

import torch


def cope_attention(q, k, v, table, visible, divided=True):
    """Weights and outputs of heads: q, k, v [batch, heads, tokens, d], table [d, positions]; visible has rows of queries."""
    root = q.shape[-1] ** 0.5
    logits = q @ k.transpose(-1, -2) / root
    gates = torch.sigmoid(logits) * visible
    places = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=table.shape[1] - 1)
    floor = places.floor()
    share = places - floor.detach()
    at_places = q @ table
    low, high = at_places.gather(-1, floor.long()), at_places.gather(-1, places.ceil().long())
    term = (1 - share) * low + share * high
    logits = logits + (term / root if divided else term)
    weights = logits.masked_fill(~visible, torch.finfo(logits.dtype).min).softmax(-1)
    return weights, weights @ v


class Block(torch.nn.Module):
    def __init__(self, width, heads, positions, divided):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.table = torch.nn.Parameter(torch.zeros(width // heads, positions))
        self.divided = divided
        self.out = torch.nn.Linear(width, width, bias=False)
        self.feed_forward = torch.nn.Sequential(
            torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, features, visible):
        inputs = self.norm(features)
        q, k, v = self.qkv(inputs).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        read = cope_attention(q, k, v, self.table, visible, self.divided)[1]
        features = features + self.out(read.transpose(1, 2).flatten(2))
        return features + self.feed_forward(features)


class Cope(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=64, heads=4, blocks=2, positions=64, divided=True):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, positions, divided) for _ in range(blocks))
        self.out = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, outputs))

    def forward(self, tokens, positions, mask):
        features = self.embedding(tokens)
        earlier = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).tril()
        visible = earlier & mask[:, None, None, :]
        for block in self.blocks:
            features = block(features, visible)
        return self.out(features)
