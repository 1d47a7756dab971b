"""Mamba: a state space model whose steps depend on the input.

Each channel x of a layer has N states h, zero at the start. Step size Δ_t, B_t and C_t are linear in the layer's
input:

    h_t = exp(Δ_t A) h_{t-1} + B̄_t x_t        y_t = C_tᵀ h_t + D x_t

Paper: Gu and Dao 2023 (arXiv 2312.00752), equations 2 and 4, Algorithm 2 and Figure 3 for the block: a gate beside a
causal convolution and the state space, without a feed-forward layer. A is diagonal and negative, so no eigenvalue
exp(ΔA) is below 0.

Chosen here: B̄_t = Δ_t B_t, as the authors' program has it; `zero_order_hold` has the paper's equation 4, B̄_t = A⁻¹
(exp(Δ_t A) - 1) B_t. A starts at -1, ..., -N and softplus of Δ's bias evenly in the logarithm of 0.001 to 0.1. The
scan takes one token after another. Norms are LayerNorms. A masked token has Δ = 0, which keeps the state, and
convolutions see zeros in its place.
"""

import math

import torch
from torch.nn import functional


def selective_scan(x, delta, a, b, c, d, zero_order_hold=False):
    """x and delta are [batch, tokens, channels], a [channels, N], b and c [batch, tokens, N], d [channels]."""
    state = x.new_zeros(x.shape[0], *a.shape)
    outputs = []
    for x_t, delta_t, b_t, c_t in zip(x.unbind(1), delta.unbind(1), b.unbind(1), c.unbind(1)):
        exponent = delta_t[..., None] * a
        size = torch.expm1(exponent) / a if zero_order_hold else delta_t[..., None]
        state = torch.exp(exponent) * state + size * b_t[:, None] * x_t[..., None]
        outputs.append((state * c_t[:, None]).sum(-1) + d * x_t)
    return torch.stack(outputs, 1)


class Layer(torch.nn.Module):
    def __init__(self, width, states, expand, convolution, zero_order_hold):
        super().__init__()
        channels = expand * width
        self.sizes = [math.ceil(width / 16), states, states]
        self.zero_order_hold = zero_order_hold
        self.norm = torch.nn.LayerNorm(width)
        self.inputs = torch.nn.Linear(width, 2 * channels, bias=False)
        self.convolution = torch.nn.Conv1d(channels, channels, convolution, groups=channels)
        self.selection = torch.nn.Linear(channels, sum(self.sizes), bias=False)
        self.delta = torch.nn.Linear(self.sizes[0], channels)
        start = torch.exp(math.log(0.001) + torch.rand(channels) * math.log(100))
        self.delta.bias.data = torch.log(torch.expm1(start))
        self.log_a = torch.nn.Parameter(torch.log(torch.arange(1.0, states + 1)).repeat(channels, 1))
        self.d = torch.nn.Parameter(torch.ones(channels))
        self.out = torch.nn.Linear(channels, width, bias=False)

    def forward(self, features, mask):
        x, gate = self.inputs(self.norm(features) * mask[..., None]).chunk(2, -1)
        x = functional.pad(x.transpose(1, 2), (self.convolution.kernel_size[0] - 1, 0))
        x = functional.silu(self.convolution(x)).transpose(1, 2)
        delta, b, c = self.selection(x).split(self.sizes, -1)
        delta = functional.softplus(self.delta(delta)) * mask[..., None]
        y = selective_scan(x, delta, -torch.exp(self.log_a), b, c, self.d, self.zero_order_hold)
        return features + self.out(y * functional.silu(gate))


class Mamba(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=64, blocks=2, states=16, expand=2, convolution=4, zero_order_hold=False):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.layers = torch.nn.ModuleList(Layer(width, states, expand, convolution, zero_order_hold) for _ in range(blocks))
        self.out = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, outputs))

    def forward(self, tokens, positions, mask):
        features = self.embedding(tokens)
        for layer in self.layers:
            features = layer(features, mask)
        return self.out(features)
