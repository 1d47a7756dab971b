""" "Did you mean": the accepted name that is nearest to what a user wrote, by the rule of catalogue/suggestion.cc, without
its synonyms.
"""
from __future__ import annotations

import math
import re
from collections.abc import Sequence

_MOST_LISTED = 20


def _folded(name: str) -> str:
    return re.sub("[_-]", "", name).lower()


def _distance(a: str, b: str) -> int:
    """Damerau-Levenshtein: a transposition of neighbours counts once."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i in range(len(a)):
        now = [i + 1]
        for j in range(len(b)):
            now.append(min(last[j + 1] + 1, now[j] + 1, last[j] + (a[i] != b[j])))
            if i and j and a[i] == b[j - 1] and a[i - 1] == b[j]:
                now[-1] = min(now[-1], before[j - 1] + 1)
        before, last = last, now
    return last[-1]


def _remoteness(given: str, name: str) -> float:
    """Lowest for the same letters, then for a prefix, the prefix of a part, and at most a third of the letters wrong;
    infinite for other names.
    """
    own, whole = _folded(given), _folded(name)
    if own == whole:
        return 0
    if len(own) >= 3:
        rest = len(whole) - len(own)
        if whole.startswith(own):
            return 1000 + rest
        if any(_folded(name[one.end() :]).startswith(own) for one in re.finditer("[_-]", name)):
            return 2000 + rest
    distance, shorter, longer = _distance(own, whole), *sorted((len(own), len(whole)))
    # Some letters must be right.
    return 3000 + distance if distance <= max(1, longer // 3) and distance < shorter else math.inf


def suggestion(given: str, accepted: Sequence[str]) -> str:
    """`; did you mean "rope"?`, or `; accepted: alibi, none, rope` if no name is near; empty if `accepted` is empty."""
    if not accepted:
        return ""
    # A longer word is no misspelling, and its distance would take quadratic time.
    if len(given) <= 100:
        nearest = min(accepted, key=lambda name: _remoteness(given, name))
        if _remoteness(given, nearest) < math.inf:
            return f'; did you mean "{nearest}"?'
    names = sorted(accepted)
    return "; accepted: " + ", ".join(names[:_MOST_LISTED]) + (", ..." if len(names) > _MOST_LISTED else "")
