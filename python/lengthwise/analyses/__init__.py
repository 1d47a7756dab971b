"""Queries on what is stored of trials: attention maps, models, scores. On NumPy and SciPy.

`experiment.analyze` has them as pandas frames, `lengthwise analyze` prints them, and figures of lengthwise.plots draw them.
Trials that differ in nothing but their seeds make a row (trial_sets.TrialSet).
"""
from lengthwise.analyses.accessor import Analyses

__all__ = ["Analyses"]
