"""Compares the ensembles' steps with those of single models, which PyTorch trains one after another.

  PYTHON benchmarks/ensemble_steps_test.py

PYTHON must have torch; without jax the JAX cases are skipped. With Bazel, set LENGTHWISE_PEER_PYTHON to PYTHON.
"""
from __future__ import annotations

import importlib.util
import unittest
import unittest.mock
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import pytorch_ensemble_step
from ensemble_benchmark import CLIP_NORM, ENCODINGS, LEARNING_RATE, Case
from pytorch_step import Encoder

MODELS, BATCH, LENGTHS = 3, 4, [5, 3, 5]
# float64 rounding is far below this, the effect of a wrong formula far above.
TOLERANCE = 1e-9
# For float32. Adam divides a gradient by its magnitude. A gradient near 0 keeps few digits, so its
# parameter is known only to within one step.
FLOAT32_LOSS, FLOAT32_PARAMETER = 1e-5, LEARNING_RATE
# Scales of the models' last features, chosen so that the first model's gradients are not clipped
# and the others' are.
FEATURE_SCALES = [0.1, 1.0, 8.0]


def case_of(encoding: str, precision: str = "float64", mode: str = "eager") -> Case:
    return Case(encoding, encoding != "none", "cpu", precision, mode, MODELS, min(LENGTHS), max(LENGTHS))


def samples(dtype: torch.dtype) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Texts [P, B, n] and positions [P, 2 n] of each step, different for every model."""
    torch.manual_seed(1)
    return [(torch.randint(0, 2, (MODELS, BATCH, n)),
             torch.stack([torch.randperm(2048)[: 2 * n].sort().values for _ in range(MODELS)]).to(dtype))
            for n in LENGTHS]


def single_models(encoding: str) -> list[Encoder]:
    torch.manual_seed(0)
    models = [Encoder(encoding, False) for _ in range(MODELS)]
    with torch.no_grad():
        for model, scale in zip(models, FEATURE_SCALES):
            model.get_parameter(f"blocks.{len(model.blocks) - 1}.feed_forward_norm.weight").mul_(scale)
    return models


def train_singly(models: list[Encoder], dtype: torch.dtype) -> tuple[torch.Tensor, list[float]]:
    """Trains the models in place. Returns losses [steps, P] and all norms of gradients."""
    losses, norms = [], []
    optimizers = [torch.optim.Adam(model.parameters(), lr=LEARNING_RATE) for model in models]
    for text, positions in samples(dtype):
        row = []
        for i, model in enumerate(models):
            logits = model(torch.cat([text[i], torch.full_like(text[i], 2)], 1), positions[i])
            loss = functional.cross_entropy(logits.flatten(0, 1), text[i].flip(1).flatten())
            optimizers[i].zero_grad()
            loss.backward()
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM).item())
            optimizers[i].step()
            row.append(loss.item())
        losses.append(row)
    return torch.tensor(losses), norms


class EnsembleStepsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)  # The problems are small; threads would wait for each other.

    def assert_equal_to_single_models(self, encoding: str, losses: torch.Tensor, parameters: dict[str, torch.Tensor],
                                      of_losses: float = TOLERANCE, of_parameters: float = TOLERANCE) -> None:
        models = single_models(encoding)
        expected, norms = train_singly(models, torch.get_default_dtype())
        self.assertTrue(min(norms) < CLIP_NORM < max(norms), f"some gradients are to be clipped, not all: {norms}")
        torch.testing.assert_close(losses, expected, rtol=0, atol=of_losses)
        for i, model in enumerate(models):
            self.assertEqual(set(parameters), {name for name, _ in model.named_parameters()})
            for name, value in model.named_parameters():
                with self.subTest(model=i, parameter=name):
                    torch.testing.assert_close(parameters[name][i], value.detach(), rtol=0, atol=of_parameters)

    def pytorch(self, case: Case) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        ensemble = pytorch_ensemble_step.Ensemble(single_models(case.encoding), case)
        losses = [ensemble.train(text, positions) for text, positions in samples(torch.get_default_dtype())]
        return torch.stack(losses), {name: value.detach() for name, value in ensemble.parameters.items()}

    def test_pytorch_ensemble_is_its_models(self) -> None:
        for encoding in ENCODINGS:
            with self.subTest(encoding=encoding):
                self.assert_equal_to_single_models(encoding, *self.pytorch(case_of(encoding)))

    # Compiling five blocks for a CPU takes minutes.
    @unittest.mock.patch("pytorch_step.BLOCKS", 1)
    def test_compiled_pytorch_ensemble_is_its_models(self) -> None:
        self.assert_equal_to_single_models("relative", *self.pytorch(case_of("relative", mode="compile")))

    def test_float32_losses_agree_to_1e_5(self) -> None:
        torch.set_default_dtype(torch.float32)
        losses, parameters = self.pytorch(case_of("relative", "float32"))
        self.assert_equal_to_single_models("relative", losses, parameters, FLOAT32_LOSS, FLOAT32_PARAMETER)

    @unittest.skipIf(importlib.util.find_spec("jax") is None, "this Python has no jax")
    def test_jax_ensemble_is_its_models(self) -> None:
        import jax
        import jax.numpy as jnp

        import jax_ensemble_step

        jax.config.update("jax_enable_x64", True)
        for encoding in ENCODINGS:
            with self.subTest(encoding=encoding):
                stacked, _ = torch.func.stack_module_state(single_models(encoding))
                parameters: dict[str, Any] = {name: jnp.asarray(value.detach().numpy())
                                              for name, value in stacked.items()}
                ensemble = jax_ensemble_step.Ensemble(parameters, case_of(encoding))
                losses = [torch.tensor(ensemble.train(jnp.asarray(text.numpy()), jnp.asarray(positions.numpy())).tolist())
                          for text, positions in samples(torch.float64)]
                trained = {name: torch.tensor(value.tolist()) for name, value in ensemble.parameters.items()}
                self.assert_equal_to_single_models(encoding, torch.stack(losses), trained)


if __name__ == "__main__":
    unittest.main()
