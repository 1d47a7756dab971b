#!/usr/bin/env python3
"""The training step of P models at once in JAX: jit(vmap(step)), with the buffers of parameters and Adam donated.

The model is that of pytorch_step.py, with the same names of parameters and the same order of operations; Adam and clipping
are PyTorch's formulas. float32 asks for full float32 products ("highest"; JAX's default on a GPU is TF32); bfloat16 rounds
the factors of products to bfloat16, as PyTorch's autocast does. Each length is compiled once.

  benchmarks/jax_ensemble_step.py --device cuda --packs 1 10 30 --lengths 20 40 --precision float32 bfloat16

Prints a line of JSON for each case. ensemble_steps_test.py compares its steps with those of single models.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import ensemble_benchmark
from ensemble_benchmark import BATCH, CLIP_NORM, LEARNING_RATE, MAX_POSITION, Case, Losses

WIDTH, HEADS, BLOCKS = 64, 8, 5
HEAD = WIDTH // HEADS
Array = jax.Array
Arrays = dict[str, Array]


def shapes(encoding: str) -> dict[str, tuple[int, ...]]:
    """The shapes of one model's parameters, by PyTorch's names."""
    result: dict[str, tuple[int, ...]] = {"embedding.weight": (3, WIDTH)}
    for block in (f"blocks.{i}." for i in range(BLOCKS)):
        for name in ("query", "key", "value", "output"):
            result[f"{block}{name}.weight"] = (WIDTH, WIDTH)
        result |= {f"{block}up.weight": (4 * WIDTH, WIDTH), f"{block}up.bias": (4 * WIDTH,),
                   f"{block}down.weight": (WIDTH, 4 * WIDTH), f"{block}down.bias": (WIDTH,)}
        for name in ("attention_norm", "feed_forward_norm"):
            result |= {f"{block}{name}.weight": (WIDTH,), f"{block}{name}.bias": (WIDTH,)}
        if encoding == "relative":
            result |= {f"{block}projection.weight": (WIDTH, WIDTH), f"{block}content_bias": (HEADS, 1, HEAD),
                       f"{block}position_bias": (HEADS, 1, HEAD)}
    return result | {"output.weight": (2, WIDTH), "output.bias": (2,)}


def product(equation: str, left: Array, right: Array, precision: str) -> Array:
    if precision != "bfloat16":
        return jnp.einsum(equation, left, right, precision="highest")
    rounded = (left.astype(jnp.bfloat16), right.astype(jnp.bfloat16))
    return jnp.einsum(equation, *rounded, preferred_element_type=jnp.float32)


def frequencies(size: int, dtype: Any) -> Array:
    return (10000.0 ** (-jnp.arange(0, size, 2) / size)).astype(dtype)


def sinusoids(positions: Array) -> Array:
    angles = positions[..., None] * frequencies(WIDTH, positions.dtype)
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)


def rotate(features: Array, positions: Array) -> Array:
    angles = positions[:, None] * frequencies(HEAD, positions.dtype)
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    even, odd = features[..., 0::2], features[..., 1::2]
    return jnp.stack([even * cos - odd * sin, odd * cos + even * sin], -1).reshape(features.shape)


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centered = x - x.mean(-1, keepdims=True)
    return centered / jnp.sqrt(jnp.square(centered).mean(-1, keepdims=True) + 1e-5) * weight + bias


def attention(p: Arrays, h: Array, positions: Array, encoding: str, precision: str) -> Array:
    """The attention of one model: h [B, n, d_model], positions [n]."""
    multiply = functools.partial(product, precision=precision)
    n = h.shape[1]
    q, k, v = (multiply("bnd,ed->bne", h, p[f"{name}.weight"]).reshape(-1, n, HEADS, HEAD).transpose(0, 2, 1, 3)
               for name in ("query", "key", "value"))
    distances = positions[None, :] - positions[:, None]
    term: Array | float = 0.0
    if encoding == "rope":
        q, k = rotate(q, positions), rotate(k, positions)
    elif encoding == "alibi":
        slopes = 2.0 ** -jnp.arange(1, HEADS + 1)
        term = -slopes[:, None, None].astype(h.dtype) * jnp.abs(distances)
    elif encoding == "relative":
        table = multiply("ijd,ed->ije", sinusoids(distances), p["projection.weight"]).reshape(n, n, HEADS, HEAD)
        term = multiply("bhid,ijhd->bhij", q + p["position_bias"], table) / math.sqrt(HEAD)
        q = q + p["content_bias"]
    logits = multiply("bhid,bhjd->bhij", q, k) / math.sqrt(HEAD) + term
    mixed = multiply("bhij,bhjd->bhid", jax.nn.softmax(logits, -1), v)
    return multiply("bnd,ed->bne", mixed.transpose(0, 2, 1, 3).reshape(-1, n, WIDTH), p["output.weight"])


def loss_of(parameters: Arrays, text: Array, positions: Array, encoding: str, precision: str) -> Array:
    """One model's loss on text [B, n] at positions [2 n]."""
    multiply = functools.partial(product, precision=precision)
    length = text.shape[1]
    h = parameters["embedding.weight"][jnp.concatenate([text, jnp.full_like(text, 2)], 1)] * math.sqrt(WIDTH)
    if encoding == "sin_cos":
        h = h + sinusoids(positions)
    for i in range(BLOCKS):
        prefix = f"blocks.{i}."
        p = {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}
        h = layer_norm(h + attention(p, h, positions, encoding, precision), p["attention_norm.weight"],
                       p["attention_norm.bias"])
        hidden = jax.nn.relu(multiply("bnd,ed->bne", h, p["up.weight"]) + p["up.bias"])
        h = layer_norm(h + multiply("bnd,ed->bne", hidden, p["down.weight"]) + p["down.bias"],
                       p["feed_forward_norm.weight"], p["feed_forward_norm.bias"])
    logits = multiply("bnd,ed->bne", h[:, length:], parameters["output.weight"]) + parameters["output.bias"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits, -1), text[:, ::-1, None], -1)
    return -chosen.mean()


def make_train(encoding: str, precision: str) -> Callable[..., tuple[Arrays, Arrays, Arrays, Array]]:
    """Returns a step of stacked models: (parameters, means, squares, step number, texts [P, B, n], positions [P, 2 n]).
    """

    def train(parameters: Arrays, means: Arrays, squares: Arrays, step: Array, text: Array,
              positions: Array) -> tuple[Arrays, Arrays, Arrays, Array]:
        loss, gradients = jax.value_and_grad(loss_of)(parameters, text, positions, encoding, precision)
        norm = jnp.sqrt(sum(jnp.square(gradient).sum() for gradient in gradients.values()))
        scale = jnp.minimum(CLIP_NORM / (norm + 1e-6), 1.0)
        gradients = {name: gradient * scale for name, gradient in gradients.items()}
        means = {name: 0.9 * means[name] + 0.1 * gradient for name, gradient in gradients.items()}
        squares = {name: 0.999 * squares[name] + 0.001 * gradient * gradient for name, gradient in gradients.items()}
        correction = jnp.sqrt(1 - 0.999**step)
        rate = LEARNING_RATE / (1 - 0.9**step)
        updated = {name: value - rate * means[name] / (jnp.sqrt(squares[name]) / correction + 1e-8)
                   for name, value in parameters.items()}
        return updated, means, squares, loss

    return jax.jit(jax.vmap(train, in_axes=(0, 0, 0, None, 0, 0)), donate_argnums=(0, 1, 2))


class Ensemble:
    """P models that train together. Calling it starts a step at a length with fresh samples."""

    def __init__(self, parameters: Arrays, case: Case) -> None:
        self.case = case
        self.parameters = parameters
        self.means = jax.tree.map(jnp.zeros_like, parameters)
        self.squares = jax.tree.map(jnp.zeros_like, parameters)
        self.steps = 0
        self.compiled = make_train(case.encoding, case.precision)
        self.random = jax.random.key(0)
        self.draw = jax.jit(self.draw_samples, static_argnums=1)

    def train(self, text: Array, positions: Array) -> Array:
        """Makes a step on texts [P, B, n] and positions [P, 2 n]. Returns the losses [P] before the update."""
        self.steps += 1
        number = jnp.asarray(self.steps, positions.dtype)
        self.parameters, self.means, self.squares, losses = self.compiled(
            self.parameters, self.means, self.squares, number, text, positions)
        return losses

    def draw_samples(self, key: Array, length: int) -> tuple[Array, Array]:
        text_key, position_key = jax.random.split(key)
        text = jax.random.randint(text_key, (self.case.pack, BATCH, length), 0, 2)
        if self.case.randomized:
            drawn = jax.random.uniform(position_key, (self.case.pack, MAX_POSITION)).argsort(1)[:, :2 * length]
            positions = jnp.sort(drawn, 1).astype(jnp.float32)
        else:
            positions = jnp.broadcast_to(jnp.arange(2.0 * length), (self.case.pack, 2 * length))
        return text, positions

    def __call__(self, length: int) -> Losses:
        self.random, key = jax.random.split(self.random)
        losses = self.train(*self.draw(key, length))
        return lambda: losses.tolist()


def build(case: Case) -> Ensemble:
    parameters = {}
    for i, (name, shape) in enumerate(shapes(case.encoding).items()):
        # The values of weights do not affect speed. These only keep activations finite.
        noise = jax.random.normal(jax.random.key(i), (case.pack, *shape)) / math.sqrt(shape[-1])
        parameters[name] = jnp.ones((case.pack, *shape)) if "norm.weight" in name else noise
    return Ensemble(parameters, case)


def main() -> None:
    options = ensemble_benchmark.parse_options(__doc__, ["jit"])
    platform = {"cpu": "cpu", "cuda": "gpu"}[options.device]
    try:
        device = jax.devices(platform)[0]
    except RuntimeError as error:
        raise SystemExit(f"JAX finds no device of {options.device}: {error}") from error
    with jax.default_device(device):
        ensemble_benchmark.run(f"jax {jax.__version__} ensemble", options, build)


if __name__ == "__main__":
    main()
