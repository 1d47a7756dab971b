"""Similarity of vectors and distributions, and correlation of quantities: thin layers over SciPy, which is imported on
use.

Each function names its statistic, and returns None or raises ValueError if it is undefined.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import ArrayLike, NDArray

# Level of confidence intervals.
CONFIDENCE = 0.95
# Relative.
_ROUNDING = 1e-14


def cosine_similarity(first: ArrayLike, second: ArrayLike) -> float:
    """Cosine of the angle between two vectors, -1 to 1. ValueError for different lengths, or if one is zero."""
    one, other = numpy.asarray(first, float).ravel(), numpy.asarray(second, float).ravel()
    if one.size != other.size:
        raise ValueError(f"vectors of {one.size} and {other.size} numbers have no angle")
    # Not BLAS, whose threads wait for each other on busy cores: a notebook's are as many as there are cores.
    norms = numpy.sqrt((one * one).sum()), numpy.sqrt((other * other).sum())
    if min(norms) == 0:
        raise ValueError("a vector of zeros has no direction")
    return float(numpy.clip((one * other).sum() / norms[0] / norms[1], -1, 1))


def jensen_shannon_divergence(first: ArrayLike, second: ArrayLike) -> NDArray[numpy.float64]:
    """Mean Kullback-Leibler divergence of two distributions from their mean, in nats, 0 to log 2; along the last axis.

    (SciPy's jensenshannon is its root.) Weights are normalized. ValueError for different shapes, weights that are negative
    or not finite, and sums of 0.
    """
    import scipy.special

    distributions = []
    for given in (first, second):
        weights = numpy.asarray(given, float)
        sums = weights.sum(axis=-1, keepdims=True)
        if not (numpy.isfinite(weights).all() and (weights >= 0).all() and (sums > 0).all()):
            raise ValueError("the weights of a distribution are finite, not negative, and not all zero")
        distributions.append(weights / sums)
    p, q = distributions
    if p.shape != q.shape:
        raise ValueError(f"distributions over {p.shape} and {q.shape} cannot be compared")
    mean = (p + q) / 2
    distance = (scipy.special.rel_entr(p, mean) + scipy.special.rel_entr(q, mean)).sum(axis=-1) / 2
    divergence: NDArray[numpy.float64] = numpy.maximum(distance, 0)
    return divergence


def share_interval(passed: int, of: int) -> tuple[float, float]:
    """Wilson's interval of a share, at CONFIDENCE. ValueError for none of none."""
    import scipy.stats

    found = scipy.stats.binomtest(passed, of).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def procrustes_distance(a: ArrayLike, b: ArrayLike) -> float:
    """The smallest Frobenius norm of A R - B over the orthogonal matrices R; both are [rows, columns].

    ValueError for different shapes, or a number that is not finite.
    """
    import scipy.linalg

    first, second = numpy.asarray(a, float), numpy.asarray(b, float)
    rotation, _ = scipy.linalg.orthogonal_procrustes(first, second)
    return float(numpy.linalg.norm(first @ rotation - second))


@dataclass(frozen=True)
class Correlation:
    coefficient: float
    # Two-sided, of Student's t with n - 2 degrees of freedom.
    p_value: float
    n: int


def spearman_correlation(first: Sequence[float], second: Sequence[float]) -> Correlation | None:
    """Spearman's rank correlation of pairs; None for fewer than three pairs, or if one quantity does not vary."""
    import scipy.stats

    if len(first) < 3 or min(first) == max(first) or min(second) == max(second):
        return None
    found = scipy.stats.spearmanr(first, second)
    return Correlation(float(found.statistic), float(found.pvalue), len(first))


@dataclass(frozen=True)
class PairedTest:
    """Student's t-test for related samples (scipy.stats.ttest_rel)."""

    # Positive if the first values are larger.
    t: float
    degrees_of_freedom: int
    # Two-sided.
    p_value: float
    # Mean of the differences, and its confidence interval.
    difference: float
    low: float
    high: float


def paired_t_test(first: Sequence[float], second: Sequence[float]) -> PairedTest | None:
    """Paired t-test of (first[i], second[i]). None for fewer than two pairs, or equal differences (t is undefined)."""
    import scipy.stats

    differences = numpy.asarray(first, float) - numpy.asarray(second, float)
    # Differences as small as rounding errors count as equal.
    smallest = _ROUNDING * max(numpy.abs([first, second]).max(initial=0), 1e-300)
    if len(differences) < 2 or numpy.ptp(differences) <= smallest:
        return None
    found = scipy.stats.ttest_rel(first, second)
    interval = found.confidence_interval(CONFIDENCE)
    return PairedTest(
        t=float(found.statistic),
        degrees_of_freedom=int(found.df),
        p_value=float(found.pvalue),
        difference=float(differences.mean()),
        low=float(interval.low),
        high=float(interval.high),
    )


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for the number of tests by Holm's step-down method (Holm 1979), in the order given."""
    adjusted = [1.0] * len(p_values)
    smallest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        smallest = max(smallest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = smallest
    return adjusted


def sample_deviation(values: Sequence[float]) -> float | None:
    """Standard deviation with n - 1 in the denominator; None for fewer than two values."""
    return float(numpy.std(values, ddof=1)) if len(values) > 1 else None
