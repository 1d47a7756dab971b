"""Puzzles of the Latin square task: which cells settle one, and files of them.

The rules are those of tasks/latin_square/puzzle.h, which the worker makes and checks puzzles with.
"""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lengthwise.errors import UsageError
from lengthwise.user_file import read_user_file, user_path

SIDE = 4
CELLS = SIDE * SIDE
BLANK, TARGET = 0, 5
_SYMBOLS = frozenset(range(1, SIDE + 1))
_MOST_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class Evidence:
    """Cells that a rule-based solver needs. Cells are numbered row by row, from 0."""

    # The cell that is asked for.
    asked: int
    # The cells that determine it, ascending, without itself.
    cells: tuple[int, ...]
    # 1, 2 or 3: how many rows and columns are related.
    vectors: int
    symbol: int


def format_puzzle(tokens: Iterable[int]) -> str:
    """ "5241010024101324"."""
    return "".join(map(str, tokens))


def _check(tokens: Sequence[int]) -> None:
    """ValueError for what is no puzzle."""

    def problem(what: str) -> ValueError:
        return ValueError(
            f'"{format_puzzle(tokens)[:40]}" is not a puzzle: {what}; a puzzle is 16 digits, row by row: 0 a blank, 1 to 4 '
            "a symbol, 5 the target"
        )

    if len(tokens) != CELLS:
        raise problem(f"it has {len(tokens)} characters")
    for cell, token in enumerate(tokens):
        if not BLANK <= token <= TARGET:
            raise problem(f"character {cell + 1} is not a digit from 0 to 5")
    if (targets := list(tokens).count(TARGET)) != 1:
        raise problem(f"it has {targets} targets")
    for cell, token in enumerate(tokens):
        if token != BLANK and any(tokens[other] == token for other in _row(cell) | _column(cell) if other != cell):
            raise problem(f"symbol {token} is twice in a row or column")


def _row(cell: int) -> frozenset[int]:
    return frozenset(range(cell // SIDE * SIDE, cell // SIDE * SIDE + SIDE))


def _column(cell: int) -> frozenset[int]:
    return frozenset(range(cell % SIDE, CELLS, SIDE))


def evidence_of(tokens: Sequence[int]) -> Evidence:
    """Evidence of the first rule that determines the target. ValueError if it is no puzzle, or no rule applies."""
    _check(tokens)
    asked = list(tokens).index(TARGET)

    def symbols(cells: Iterable[int]) -> frozenset[int]:
        return frozenset(tokens[cell] for cell in cells) & _SYMBOLS

    row, column = _row(asked), _column(asked)
    in_row, in_column = symbols(row), symbols(column)

    def settled(symbol: int, vectors: int, cells: Iterable[int]) -> Evidence:
        if symbol in in_row | in_column:
            raise ValueError(f"no rule settles the target of {format_puzzle(tokens)}")
        return Evidence(asked, tuple(sorted(set(cells) - {asked})), vectors, symbol)

    for seen, vectors, cells in (
        (in_row, 1, row), (in_column, 1, column), (in_row | in_column, 2, row | column),
    ):  # fmt: skip
        if len(_SYMBOLS - seen) == 1:
            return settled(min(_SYMBOLS - seen), vectors, cells)
    for line, in_line, crossing in ((row, in_row, _column), (column, in_column, _row)):
        blanks = [cell for cell in line if tokens[cell] == BLANK]
        # A line with two clues and one other blank has no rule of its own, as in the task's published classifier.
        if len(in_line) > 1 or len(blanks) != SIDE - 1 - len(in_line):
            continue
        shared = _SYMBOLS.intersection(*(symbols(crossing(cell)) for cell in blanks)) - in_line
        if shared:
            return settled(min(shared), 3, line.union(*(crossing(cell) for cell in blanks)))
    raise ValueError(f"no rule settles the target of {format_puzzle(tokens)}")


def read_human_accuracies(path: str | os.PathLike[str]) -> dict[str, float]:
    """People's accuracies, 0 to 1, by puzzle, from a file such as {"puzzles": [{"puzzle": "0040405210200030",
    "human_accuracy": 0.975}, ...]}; other keys are passed over. UsageError where it cannot be read, a puzzle is wrong or
    twice there, or none has a "human_accuracy".
    """
    path = user_path(path)
    try:
        content = json.loads(read_user_file(path, _MOST_FILE_BYTES))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UsageError(f"{path} is not a JSON object")
    listed = content.get("puzzles")
    found: dict[str, float] = {}
    seen: set[str] = set()
    for index, entry in enumerate(listed if isinstance(listed, list) else []):
        try:
            puzzle, accuracy = _read_entry(entry)
            if puzzle in seen:
                raise ValueError(f"{puzzle} is there twice")
        except ValueError as error:
            raise UsageError(f"{path}: puzzles[{index}]: {error}") from None
        seen.add(puzzle)
        if accuracy is not None:
            found[puzzle] = accuracy
    if not found:
        raise UsageError(
            f'{path} has no puzzle with a "human_accuracy"; it needs {{"puzzles": [{{"puzzle": "0040405210200030", '
            '"human_accuracy": 0.975}, ...]}'
        )
    return found


def _read_entry(entry: object) -> tuple[str, float | None]:
    puzzle = entry.get("puzzle") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(puzzle, str):
        raise ValueError("there is no puzzle, a string of 16 digits")
    _check([int(character) if character in "0123456789" else -1 for character in puzzle])
    accuracy = entry.get("human_accuracy")
    if accuracy is None:
        return puzzle, None
    if isinstance(accuracy, bool) or not isinstance(accuracy, (int, float)) or not 0 <= accuracy <= 1:
        raise ValueError(f"human_accuracy {accuracy!r} is not a number from 0 to 1")
    return puzzle, float(accuracy)
