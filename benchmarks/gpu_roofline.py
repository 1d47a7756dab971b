#!/usr/bin/env python3
"""Measures a CUDA device's limits: a copy, and products in float32, TF32 and bfloat16. Prints one line of JSON.

The sizes are those of a large product and of the feed-forward of 30 models at 80 tokens. Times are medians by CUDA
events.
"""
from __future__ import annotations

import json
import statistics
from collections.abc import Callable

import torch

ROUNDS = 20


def seconds(work: Callable[[], object]) -> float:
    for _ in range(3):
        work()
    times = []
    for _ in range(ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) / 1e3)
    return statistics.median(times)


def product_rate(shape: tuple[int, int, int, int], dtype: torch.dtype, tf32: bool) -> float:
    """Returns the operations per second of [models, rows, inner] x [models, inner, columns]."""
    models, rows, inner, columns = shape
    torch.backends.cuda.matmul.allow_tf32 = tf32
    left = torch.randn(models, rows, inner, device="cuda", dtype=dtype)
    right = torch.randn(models, inner, columns, device="cuda", dtype=dtype)
    return 2.0 * models * rows * inner * columns / seconds(lambda: left @ right)


def main() -> None:
    if not torch.cuda.is_available():
        print("skipped: no CUDA device")
        return
    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)
    result: dict[str, object] = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "copy_bytes_per_second": 2.0 * source.nbytes / seconds(lambda: target.copy_(source))}
    for name, shape in {"8192x8192x8192": (1, 8192, 8192, 8192), "30x10240x64x256": (30, 10240, 64, 256)}.items():
        for label, dtype, tf32 in [("float32", torch.float32, False), ("tf32", torch.float32, True),
                                   ("bfloat16", torch.bfloat16, False)]:
            result[f"{name}_{label}_flop_per_second"] = product_rate(shape, dtype, tf32)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
