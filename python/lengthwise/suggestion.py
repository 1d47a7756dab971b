""" "Did you mean": the accepted name that is nearest to what a user wrote."""
from __future__ import annotations

import difflib
from collections.abc import Sequence

_MOST_LISTED = 20


def suggestion(given: str, accepted: Sequence[str]) -> str:
    """`; did you mean "rope"?`, or `; accepted: alibi, none, rope` if no name is similar; empty if `accepted` is empty."""
    if not accepted:
        return ""
    near = difflib.get_close_matches(given[:100].lower(), accepted, n=1, cutoff=0.6)
    if near:
        return f'; did you mean "{near[0]}"?'
    names = sorted(accepted)
    return "; accepted: " + ", ".join(names[:_MOST_LISTED]) + (", ..." if len(names) > _MOST_LISTED else "")
