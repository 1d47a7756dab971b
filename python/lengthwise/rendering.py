"""Tables, records and numbers as people and programs read them: the command line's output kinds.

A `Table` becomes text for a terminal, Markdown, HTML or LaTeX; `Records` become CSV or JSON.
"""
from __future__ import annotations

import csv
import io
import json
import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, TextIO, Union

from lengthwise.printable import printable_text

Value = Union[None, bool, int, float, str]

BOLD, DIM, GREEN = "1", "2", "32"


def format_count(value: int) -> str:
    """ "1,234,567"."""
    return f"{value:,}"


def counted(count: int, one: str, many: str = "") -> str:
    """ "1 trial", "1,204 trials"; counted(1, "map is", "maps are") is "1 map is"."""
    return f"{format_count(count)} {one if count == 1 else many or one + 's'}"


def format_clock(seconds: float) -> str:
    """ "0:42", "12:05", "3:07:09", "2 d 4 h"."""
    minutes, second = divmod(math.floor(seconds + 0.5), 60)
    hours, minute = divmod(minutes, 60)
    if hours == 0:
        return f"{minute}:{second:02d}"
    if hours < 48:
        return f"{hours}:{minute:02d}:{second:02d}"
    return f"{hours // 24} d {hours % 24} h"


def format_exact(value: float) -> str:
    """Shortest text that reads back the same double: "0.001", "1e-04", "3e+07"."""
    if not math.isfinite(value):
        return str(value)
    # repr() has the fewest digits.
    digits = Decimal(repr(float(value))).normalize()
    mantissa, _, exponent = f"{digits:e}".partition("e")
    scientific = f"{mantissa}e{int(exponent):+03d}"
    fixed = f"{value:.0f}" if float(value).is_integer() else f"{digits:f}"
    return fixed if len(fixed) <= len(scientific) else scientific


def format_integers(values: Sequence[int]) -> str:
    """ "1..40", "25..100 step 5", "10, 12, 40", "37 numbers from 3 to 99"."""
    if not values:
        return "none"
    if len(values) == 1:
        return str(values[0])
    step = values[1] - values[0]
    if len(values) > 2 and all(b - a == step for a, b in zip(values, values[1:])):
        return f"{values[0]}..{values[-1]}" + ("" if step == 1 else f" step {step}")
    if len(values) <= 8:
        return ", ".join(map(str, values))
    return f"{len(values)} lengths from {values[0]} to {values[-1]}"


def display_width(text: str) -> int:
    """Columns that text (without escape sequences) takes in a terminal."""
    width = 0
    for character in text:
        if unicodedata.combining(character) or unicodedata.category(character) in ("Cc", "Cf"):
            continue
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width


def truncate(text: str, width: int) -> str:
    """Truncates text to `width` columns; "…" in the last column marks the cut."""
    if display_width(text) <= width:
        return text
    while text and display_width(text) > width - 1:
        text = text[:-1]
    return text + "…" if width > 0 else ""


def wrap(text: str, width: int, indent: int) -> str:
    """Lines of at most `width` columns, broken at spaces; every line after the first begins with `indent` spaces."""
    lines: list[str] = []
    for word in text.split():
        if lines and display_width(lines[-1]) + 1 + display_width(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append((" " * indent if lines else "") + word)
    return "\n".join(lines)


@dataclass(frozen=True)
class Palette:
    """Colours text, or leaves it unchanged if colours are off."""

    enabled: bool

    def __call__(self, paint: str, text: str) -> str:
        return f"\x1b[{paint}m{text}\x1b[0m" if self.enabled and paint and text else text


@dataclass(frozen=True)
class Records:
    """Rows of named values, for CSV and JSON."""

    columns: Sequence[str]
    rows: list[list[Value]] = field(default_factory=list)

    def as_dictionaries(self) -> list[dict[str, Value]]:
        return [dict(zip(self.columns, row)) for row in self.rows]

    def write_csv(self, out: TextIO) -> None:
        write_csv_rows([list(self.columns), *self.rows], out)

    def write_json(self, out: TextIO) -> None:
        """One row a line."""
        lines = [json.dumps(finite(row), ensure_ascii=False, separators=(",", ":")) for row in self.as_dictionaries()]
        out.write("[" + ",".join("\n " + line for line in lines) + ("\n]\n" if lines else "]\n"))


def write_csv_rows(rows: Iterable[Sequence[Value]], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([_csv_text(value) for value in row])


def _csv_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_exact(value) if math.isfinite(value) else ""
    return "" if value is None else str(value)


def finite(value: Any) -> Any:
    """For JSON, also inside lists and dictionaries: None for a number that is not finite, which JSON has not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list) else value


_MARKDOWN = str.maketrans(
    {"\\": "\\\\", "|": "\\|", "*": "\\*", "_": "\\_", "`": "\\`", "<": "&lt;", "\n": " "}
)
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
_LATEX = str.maketrans({
    "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}",
    "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "\n": " ", "†": "$^\\dagger$", "±": "$\\pm$",
    "−": "$-$", "–": "--", "\0": "-{}-", "…": "\\dots{}", "Δ": "$\\Delta$", "×": "$\\times$",
})  # fmt: skip


def escape_markdown(text: str) -> str:
    return text.translate(_MARKDOWN)


def escape_html(text: str) -> str:
    """With control characters written out."""
    return printable_text(text).translate(_HTML)


def escape_latex(text: str) -> str:
    """With commands for the few symbols beyond ASCII that tables here use."""
    return text.replace("--", "\0").translate(_LATEX)


class Align(Enum):
    LEFT = "l"
    RIGHT = "r"


@dataclass(frozen=True)
class Column:
    header: str
    align: Align = Align.LEFT
    # An upright rule to its left.
    rule_before: bool = False
    # May be cut down to this many columns when the table does not fit; 0: never.
    shrinks_to: int = 0
    # The heading above it and its neighbours of the same group, up to the next rule.
    group: str = ""


@dataclass(frozen=True)
class Cell:
    text: str
    paint: str = ""
    # Set in bold in a document.
    best: bool = False


class Table:
    """Columns two spaces apart, a bold header, a rule below it, and vertical rules on request."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = list(columns)
        self.rows: list[list[Cell]] = []
        self._rules: set[int] = set()

    def add_row(self, cells: Sequence[Cell | str]) -> None:
        self.rows.append([Cell(cell) if isinstance(cell, str) else cell for cell in cells])

    def add_rule(self) -> None:
        """Between the row before and the one after."""
        if self.rows:
            self._rules.add(len(self.rows))

    def _gap(self, index: int) -> str:
        if index == 0:
            return ""
        return " │ " if self.columns[index].rule_before else "  "

    def _room(self, widths: list[int], columns: Sequence[int]) -> int:
        """Of neighbouring columns."""
        return sum(widths[c] for c in columns) + sum(len(self._gap(c)) for c in columns[1:])

    def _widths(self, width: int) -> list[int]:
        widths = [
            max([display_width(column.header), *(display_width(row[c].text) for row in self.rows)])
            for c, column in enumerate(self.columns)
        ]
        spans = self._spans()
        for first, *others in spans:
            if not others:
                widths[first] = max(widths[first], display_width(self.columns[first].group))
        total = self._room(widths, range(len(widths)))
        while 0 < width < total:
            may = [c for c, column in enumerate(self.columns) if 0 < column.shrinks_to < widths[c]]
            if not may:
                break
            widths[max(may, key=lambda c: (widths[c], -c))] -= 1
            total -= 1
        # The name of a group may be wider than its columns. It is cut only if there is no room.
        for span in spans:
            lacking = display_width(self.columns[span[0]].group) - self._room(widths, span)
            if lacking > 0 and (width <= 0 or total + lacking <= width):
                widths[span[-1]] += lacking
                total += lacking
        return widths

    def _spans(self) -> list[list[int]]:
        """The columns of each group and, between them, single ones."""
        spans: list[list[int]] = []
        for c, column in enumerate(self.columns):
            if c and column.group and column.group == self.columns[c - 1].group and not column.rule_before:
                spans[-1].append(c)
            else:
                spans.append([c])
        return spans

    def _parts(self, widths: list[int], width: int) -> list[list[int]]:
        """The columns of each of the tables that a table too wide is printed as. All begin with its names: the columns
        before the first group or, without groups, before the first one that is not aligned left.
        """
        grouped = any(column.group for column in self.columns)
        others = (c for c, one in enumerate(self.columns) if (one.group if grouped else one.align is not Align.LEFT))
        names = next(others, len(widths))
        room = width - self._room(widths, range(names))
        # What stays together if a part has room for it: groups, and in the first place what is between two rules.
        between: list[list[list[int]]] = []
        for span in self._spans():
            if span[0] >= names:
                if not between or self.columns[span[0]].rule_before:
                    between.append([])
                between[-1].append(span)

        def needed(groups: list[list[int]]) -> int:
            return sum(widths[c] + len(self._gap(c)) for group in groups for c in group)

        parts: list[list[int]] = []
        left = 0
        for groups in between:
            for together in [groups] if needed(groups) <= room else [[group] for group in groups]:
                if not parts or needed(together) > left:
                    parts.append([*range(names)])
                    left = room
                parts[-1] += [c for group in together for c in group]
                left -= needed(together)
        return parts

    def _selected(self, columns: Sequence[int]) -> Table:
        part = Table([self.columns[c] for c in columns])
        part.rows = [[row[c] for c in columns] for row in self.rows]
        part._rules = self._rules
        return part

    def _line(self, cells: Sequence[Cell], widths: list[int], palette: Palette) -> str:
        line = ""
        for c, (column, cell) in enumerate(zip(self.columns, cells)):
            text = truncate(cell.text, widths[c])
            spaces, painted = " " * (widths[c] - display_width(text)), palette(cell.paint, text)
            line += self._gap(c) + (painted + spaces if column.align is Align.LEFT else spaces + painted)
        return line

    def render(self, width: int, palette: Palette, in_parts: bool = False) -> str:
        """Lines with line ends. Columns that may shrink do so until the table is at most `width` wide; 0: unlimited. With
        `in_parts`, a table that is still wider is printed in parts, one below the other.
        """
        widths = self._widths(width)
        if in_parts and 0 < width < self._room(widths, range(len(widths))):
            parts = self._parts(widths, width)
            if len(parts) > 1:
                return "\n".join(self._selected(part).render(width, palette) for part in parts)
        lines: list[str] = []
        if any(column.group for column in self.columns):
            line = ""
            for span in self._spans():
                room = self._room(widths, span)
                head = truncate(self.columns[span[0]].group, room)
                line += self._gap(span[0]) + palette(DIM, head) + " " * (room - display_width(head))
            lines.append(line)
        crossings = ["" if c == 0 else "─┼─" if column.rule_before else "──" for c, column in enumerate(self.columns)]
        rule = palette(DIM, "".join(crossing + "─" * width for crossing, width in zip(crossings, widths)))
        lines += [self._line([Cell(column.header, BOLD) for column in self.columns], widths, palette), rule]
        for r, row in enumerate(self.rows):
            lines += [rule] * (r in self._rules)
            lines.append(self._line(row, widths, palette))
        return "".join(line.rstrip() + "\n" for line in lines)

    def render_markdown(self) -> str:
        """A table of GitHub's Markdown. A group's name stands in the heads of its columns; rules are left out."""
        heads = [escape_markdown(f"{one.group} {one.header}" if one.group else one.header) for one in self.columns]
        rule = ["---:" if column.align is Align.RIGHT else "---" for column in self.columns]
        text = f"| {' | '.join(heads)} |\n| {' | '.join(rule)} |\n"
        for row in self.rows:
            cells = [f"**{escape_markdown(cell.text)}**" if cell.best else escape_markdown(cell.text) for cell in row]
            text += "|" + "".join(f" {cell} |" for cell in cells) + "\n"
        return text

    def render_html(self) -> str:
        """A table element."""

        def look(c: int) -> str:
            column = self.columns[c]
            classes = ["right"] * (column.align is Align.RIGHT) + ["ruled"] * column.rule_before
            return f' class="{" ".join(classes)}"' if classes else ""

        out = io.StringIO()
        out.write("<table>\n<thead>\n")
        if any(column.group for column in self.columns):
            out.write("<tr>")
            for span in self._spans():
                first = self.columns[span[0]]
                ruled = ' class="ruled"' if first.rule_before else ""
                out.write(f'<th colspan="{len(span)}"{ruled}>{escape_html(first.group)}</th>')
            out.write("</tr>\n")
        heads = (f'<th scope="col"{look(c)}>{escape_html(column.header)}</th>' for c, column in enumerate(self.columns))
        out.write(f"<tr>{''.join(heads)}</tr>\n</thead>\n<tbody>\n")
        for r, row in enumerate(self.rows):
            out.write('<tr class="after-rule">' if r in self._rules else "<tr>")
            for c, cell in enumerate(row):
                text = escape_html(cell.text)
                out.write(f"<td{look(c)}>{f'<strong>{text}</strong>' if cell.best else text}</td>")
            out.write("</tr>\n")
        out.write("</tbody>\n</table>\n")
        return out.getvalue()

    def render_latex(self) -> str:
        """A tabular environment for the booktabs package."""
        alignment = "".join(column.align.value for column in self.columns)
        lines = ["% \\usepackage{booktabs}", f"\\begin{{tabular}}{{{alignment}}}", "\\toprule"]
        if any(column.group for column in self.columns):
            heads, rules = [], []
            for span in self._spans():
                group = self.columns[span[0]].group
                heads.append(f"\\multicolumn{{{len(span)}}}{{c}}{{{escape_latex(group)}}}" if group else "")
                if group:
                    rules.append(f"\\cmidrule(lr){{{span[0] + 1}-{span[-1] + 1}}}")
            lines += [" & ".join(heads) + " \\\\", " ".join(rules)]
        lines += [" & ".join(escape_latex(column.header) for column in self.columns) + " \\\\", "\\midrule"]
        for r, row in enumerate(self.rows):
            if r in self._rules:
                lines.append("\\midrule")
            cells = [f"\\textbf{{{escape_latex(cell.text)}}}" if cell.best else escape_latex(cell.text) for cell in row]
            lines.append(" & ".join(cells) + " \\\\")
        lines += ["\\bottomrule", "\\end{tabular}"]
        return "\n".join(lines) + "\n"
