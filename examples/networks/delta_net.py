"""DeltaNet: linear attention whose state is written by the delta rule.

Each head keeps a matrix S of a number for each pair of a key's and a value's coordinate, zero at the start, and reads
it after writing:

    S_t = (I - β_t k_t k_tᵀ) S_{t-1} + β_t k_t v_tᵀ        o_t = S_tᵀ q_t / √d

Keys have length 1, so the step multiplies what is stored along k_t by 1 - β_t. With β = σ(.) this eigenvalue is in
[0, 1]; with `negative_eigenvalues`, β = 2 σ(.) and it is in [-1, 1], which is what parity needs.

Papers: Schlag et al. 2021 (arXiv 2102.11174) for the rule; Yang et al. 2024 (2406.06484) for the layer: SiLU, keys
and queries of length 1, short convolutions, a norm after each head; Grazzi et al. 2024 (2411.12537) for negative
eigenvalues.

Chosen here: the steps are computed together. With u_t = β_t (v_t - S_{t-1}ᵀ k_t), S_t is the sum of k_s u_sᵀ, and the
u_t are the solution of a triangular system. Queries are divided by √d, as in the authors' programs. Norms before
layers are LayerNorms, those after heads have no bias; feed-forward layers are four times as wide, with GELU. Masked
tokens, which may stand before or after a sequence, are zeros to the convolution, so they write nothing.
"""

import torch
from torch.nn import functional


def delta_rule(q, k, v, beta):
    """Outputs of heads: q and k are [batch, heads, tokens, d], v [batch, heads, tokens, e], beta [batch, heads, tokens]."""
    overlaps = beta[..., None] * torch.tril(k @ k.transpose(-1, -2), diagonal=-1)
    system = overlaps + torch.eye(k.shape[-2], dtype=k.dtype, device=k.device)
    written = torch.linalg.solve_triangular(system, beta[..., None] * v, upper=False)
    return torch.tril(q @ k.transpose(-1, -2)) @ written / q.shape[-1] ** 0.5


class Layer(torch.nn.Module):
    def __init__(self, width, heads, convolution, negative_eigenvalues):
        super().__init__()
        self.heads = heads
        self.largest_beta = 2 if negative_eigenvalues else 1
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.convolution = torch.nn.Conv1d(3 * width, 3 * width, convolution, groups=3 * width, bias=False)
        self.beta = torch.nn.Linear(width, heads)
        self.scale = torch.nn.Parameter(torch.ones(width // heads))
        self.out = torch.nn.Linear(width, width, bias=False)

    def forward(self, features, mask):
        batch, n, width = features.shape
        inputs = self.qkv(features * mask[..., None]).transpose(1, 2)
        inputs = functional.pad(inputs, (self.convolution.kernel_size[0] - 1, 0))
        mixed = functional.silu(self.convolution(inputs)).view(batch, 3, self.heads, width // self.heads, n)
        q, k, v = mixed.transpose(-1, -2).unbind(1)
        beta = self.largest_beta * torch.sigmoid(self.beta(features))
        read = delta_rule(functional.normalize(q, dim=-1), functional.normalize(k, dim=-1), v, beta.transpose(1, 2))
        read = read * torch.rsqrt(read.square().mean(-1, keepdim=True) + 1e-5) * self.scale
        return self.out(read.transpose(1, 2).reshape(batch, n, width))


class DeltaNet(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=64, heads=4, blocks=2, convolution=4, negative_eigenvalues=True):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.layers = torch.nn.ModuleList(Layer(width, heads, convolution, negative_eigenvalues) for _ in range(blocks))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(blocks))
        self.feed_forward = torch.nn.ModuleList(
            torch.nn.Sequential(
                torch.nn.LayerNorm(width),
                torch.nn.Linear(width, 4 * width),
                torch.nn.GELU(),
                torch.nn.Linear(4 * width, width),
            )
            for _ in range(blocks)
        )
        self.out = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, outputs))

    def forward(self, tokens, positions, mask):
        features = self.embedding(tokens)
        for norm, layer, feed_forward in zip(self.norms, self.layers, self.feed_forward):
            features = features + layer(norm(features), mask)
            features = features + feed_forward(features)
        return self.out(features)
