#!/usr/bin/env python3
"""The training step of P models at once in PyTorch, as its users write ensembles.

The model is that of pytorch_step.py. `stack_module_state` stacks the parameters of P models, `functional_call` and `vmap`
run them on samples and positions of their own, each model's gradient is clipped by its own norm, and Adam updates the
stacked parameters (fused; capturable on a GPU). Adam works element by element, so the stacked update is each model's.

On a GPU, each length's whole step is recorded as a CUDA graph when the length first comes up: forward, backward,
clipping and Adam. Samples and positions are drawn on the device, outside the graph.

Modes: eager; compile and max-autotune give forward, backward and clipping to torch.compile, once for each length, because
vmap of a linear layer cannot be compiled for dynamic lengths (PyTorch 2.11). Attention is plain operators, which the
compiler may fuse: vmap has no rule for scaled_dot_product_attention with a mask that needs a gradient.

  benchmarks/pytorch_ensemble_step.py --device cuda --mode max-autotune --packs 1 10 30 --lengths 20 40 1..40 \\
      --precision float32 bfloat16

Prints a line of JSON for each case. ensemble_steps_test.py compares its steps with those of single models.
"""
from __future__ import annotations

from collections.abc import Callable

import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

import ensemble_benchmark
from ensemble_benchmark import BATCH, CLIP_NORM, LEARNING_RATE, MAX_POSITION, Case, Losses
from pytorch_step import Encoder

Tensors = dict[str, torch.Tensor]


def losses_of(model: torch.nn.Module, precision: str) -> Callable[[Tensors, torch.Tensor, torch.Tensor], torch.Tensor]:
    """Returns a function of stacked parameters [P, ...], texts [P, B, n] and positions [P, 2 n] that computes losses
    [P].
    """

    def loss(parameters: Tensors, text: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        tokens = torch.cat([text, torch.full_like(text, 2)], 1)
        logits = functional_call(model, parameters, (tokens, positions))
        logits = logits.to(positions.dtype)  # from bfloat16
        return functional.cross_entropy(logits.flatten(0, 1), text.flip(1).flatten())

    def losses(parameters: Tensors, text: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        # A cache of converted weights would belong to a single recording.
        with torch.autocast(text.device.type, torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False):
            result: torch.Tensor = vmap(loss)(parameters, text, positions)
            return result

    return losses


def clip_each(gradients: list[torch.Tensor]) -> list[torch.Tensor]:
    """Scales each model's gradient to a norm of at most CLIP_NORM, like nn.utils.clip_grad_norm_."""
    norms = torch.stack([gradient.square().flatten(1).sum(1) for gradient in gradients]).sum(0).sqrt()
    scales = (CLIP_NORM / (norms + 1e-6)).clamp(max=1.0)
    # Fused Adam expects a gradient in its parameter's memory layout, and vmap leaves some
    # transposed.
    return [(gradient * scales.view(-1, *[1] * (gradient.dim() - 1))).contiguous() for gradient in gradients]


class Ensemble:
    """P models that train together. Calling it starts a step at a length with fresh samples."""

    def __init__(self, models: list[Encoder], case: Case) -> None:
        self.case = case
        parameters, _ = stack_module_state(models)
        self.parameters: Tensors = {name: value.detach().to(case.device).requires_grad_()
                                    for name, value in parameters.items()}
        # Only the structure is used: functional_call supplies the parameters.
        self.losses = losses_of(models[0].to("meta"), case.precision)
        self.clip = clip_each
        if case.mode in ("compile", "max-autotune"):
            # The whole step is recorded here, so the compiler must not record parts of it.
            mode = "max-autotune-no-cudagraphs" if case.mode == "max-autotune" else None
            torch._dynamo.config.recompile_limit = case.longest - case.shortest + 2
            self.losses = torch.compile(self.losses, mode=mode, dynamic=False)
            self.clip = torch.compile(clip_each)
        self.adam = torch.optim.Adam(self.parameters.values(), lr=LEARNING_RATE, fused=True,
                                     capturable=case.device == "cuda")
        self.recordings: dict[int, tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor, torch.Tensor]] = {}
        self.pool = torch.cuda.graph_pool_handle() if case.device == "cuda" else None

    def train(self, text: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Makes a step on texts [P, B, n] and positions [P, 2 n]. Returns the losses [P] before the update."""
        losses = self.losses(self.parameters, text, positions)
        # A model's parameters affect only its own loss, so the gradient of the sum is each model's
        # gradient.
        gradients = torch.autograd.grad(losses.sum(), list(self.parameters.values()))
        for parameter, gradient in zip(self.parameters.values(), self.clip(list(gradients))):
            parameter.grad = gradient
        self.adam.step()
        return losses.detach()

    def draw(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        case, tokens = self.case, 2 * length
        text = torch.randint(0, 2, (case.pack, BATCH, length), device=case.device)
        if case.randomized:
            drawn = torch.rand(case.pack, MAX_POSITION, device=case.device).argsort(1)[:, :tokens]
            positions = drawn.sort(1).values.float()
        else:
            positions = torch.arange(tokens, device=case.device).float().expand(case.pack, tokens).contiguous()
        return text, positions

    def __call__(self, length: int) -> Losses:
        text, positions = self.draw(length)
        if self.case.device == "cpu":
            return self.train(text, positions).tolist
        if length not in self.recordings:
            self.record(length, text, positions)
        graph, static_text, static_positions, losses = self.recordings[length]
        static_text.copy_(text)
        static_positions.copy_(positions)
        graph.replay()
        # The next replay may overwrite the losses.
        on_host = torch.empty(losses.shape, dtype=losses.dtype, pin_memory=True)
        on_host.copy_(losses, non_blocking=True)
        copied = torch.cuda.Event()
        copied.record()

        def read() -> list[float]:
            copied.synchronize()
            return on_host.tolist()

        return read

    def record(self, length: int, text: torch.Tensor, positions: torch.Tensor) -> None:
        # Compiles and creates Adam's state outside the recordings' memory.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.train(text, positions)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Recordings may share memory: replays never overlap, and losses are copied before the next
        # replay.
        with torch.cuda.graph(graph, pool=self.pool):
            losses = self.train(text, positions)
        self.recordings[length] = graph, text, positions, losses


def build(case: Case) -> Ensemble:
    torch.manual_seed(0)
    torch._dynamo.reset()
    return Ensemble([Encoder(case.encoding, False) for _ in range(case.pack)], case)


def main() -> None:
    options = ensemble_benchmark.parse_options(__doc__, ["eager", "compile", "max-autotune"])
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA device; --device cpu needs none")
    ensemble_benchmark.run(f"pytorch {torch.__version__} ensemble, {options.mode}", options, build)


if __name__ == "__main__":
    main()
