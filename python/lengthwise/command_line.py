"""`python -m lengthwise COMMAND`: the commands of the command line that draw, analyse and compare.

`lengthwise COMMAND` (client/, in C++) starts it. A command is a module of lengthwise.commands; each is imported when it is
asked for, so that none waits for another's libraries.
"""
from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pkgutil import resolve_name
from typing import Any, NoReturn, TextIO

from lengthwise.commands import DEFINITIONS
from lengthwise.connection import Connection, Settings, resolve
from lengthwise.errors import LengthwiseError, UnreachableError, UsageError
from lengthwise.printable import printable_text
from lengthwise.rendering import Palette, Records, Table
from lengthwise.user_file import unwritten

# Exit codes, as client/commands/program.h has them.
SUCCESS, FAILURE, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130

COMMANDS = ("analyze", "compare", "export", "grids", "plot", "report", "results", "web")

_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


@dataclass(frozen=True)
class Output:
    """Output streams of a command and their settings."""

    out: TextIO
    # Stream for warnings, which do not end the command.
    err: TextIO
    # The value of --output.
    kind: str
    width: int
    # Lines longer than `width` would be broken.
    is_screen: bool
    palette: Palette

    def write_table(self, table: Table, records: Records) -> None:
        """As --output says: the table for people, the records for programs."""
        if self.kind == "csv":
            records.write_csv(self.out)
        elif self.kind == "json":
            records.write_json(self.out)
        elif self.kind == "markdown":
            self.out.write(table.render_markdown())
        elif self.kind == "latex":
            self.out.write(table.render_latex())
        else:
            self.out.write(table.render(self.width, self.palette, in_parts=self.is_screen))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")


_TYPES = {"count": int, "real": float}


def _add_option(parser: argparse.ArgumentParser, definition: dict[str, Any], option: dict[str, Any]) -> None:
    names = option["usage"].split()[0].strip("[]").split(",")
    kind = option.get("type", "text")
    if kind == "flag":
        parser.add_argument(*names, action="store_true")
        return
    choices = option.get("choices")
    settings: dict[str, Any] = {
        "type": _TYPES.get(kind, str),
        "choices": definition[choices] if isinstance(choices, str) else choices,
        "default": option.get("default", None if kind in _TYPES else ""),
    }
    if option.get("several"):
        settings |= {"action": "append", "default": []}
    if names[0].startswith("-"):
        settings["required"] = option.get("required", False)
    elif kind == "texts" or option["usage"].startswith("["):
        settings["nargs"] = "+" if kind == "texts" else "?"
    parser.add_argument(*names, **settings)


def add_arguments(parser: argparse.ArgumentParser, definition: dict[str, Any]) -> None:
    """Adds what a command takes, as commands/definitions.json has it, and, as every command: server address and credentials
    (default: the environment, then the configuration file), --output (default: the first), and what the program knows of
    the terminal that it passes the output on to.
    """
    for option in definition["options"]:
        _add_option(parser, definition, option)
    for setting in fields(Settings):
        parser.add_argument(f"--{setting.name}", default=None)
    kinds = definition.get("printed", definition.get("output", ["table"]))
    parser.add_argument("--output", default=kinds[0], choices=kinds)
    parser.add_argument("--color", default="never", choices=["always", "never"])
    parser.add_argument("--columns", type=int, default=110)
    parser.add_argument("--screen", action="store_true")


def parser_of(command: str) -> argparse.ArgumentParser:
    definition = DEFINITIONS[command]
    parser = _Parser(prog=f"lengthwise {command}", add_help=False)
    if "analyses" not in definition:
        add_arguments(parser, definition)
        return parser
    analyses = parser.add_subparsers(dest="analysis", metavar="ANALYSIS", required=True, parser_class=_Parser)
    for name, own in definition["analyses"].items():
        options = definition["options"] + own["options"]
        add_arguments(analyses.add_parser(name, add_help=False), {**definition, "options": options})
    return parser


def connect(arguments: argparse.Namespace) -> closing[Connection]:
    """The server that the options name; a context that closes the connection."""
    return closing(Connection(resolve(vars(arguments)), timeout=60))


def explain(error: LengthwiseError) -> tuple[str, int]:
    """The line that a user gets, and the exit code."""
    if isinstance(error, UnreachableError) or error.code.name in ("CANCELLED", "DEADLINE_EXCEEDED"):
        where = error.where if isinstance(error, UnreachableError) else str(error)
        what_to_do = "start `lengthwise_server`, pass --server HOST:PORT, or train here with `lengthwise run SPEC`"
        return f"{where}; {what_to_do}", UNREACHABLE
    return str(error), USAGE if error.code.name == "INVALID_ARGUMENT" else FAILURE


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Runs a command and returns its exit code. An error is one line on `err`."""
    out, err = out or sys.stdout, err or sys.stderr
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        named = given[0] if given else ""
        if named not in COMMANDS:
            raise UsageError(f'the command is "{named}", accepted: {", ".join(COMMANDS)}; see `lengthwise --help`')
        run = resolve_name(f"lengthwise.commands.{named}:run")
        parsed = parser_of(named).parse_args(given[1:])
        palette = Palette(parsed.color == "always")
        code: int = run(parsed, Output(out, err, parsed.output, parsed.columns, parsed.screen, palette))
        out.flush()
        return code
    except LengthwiseError as error:
        message, code = explain(error)
        out.flush()
        err.write(f"lengthwise: {printable_text(message)}\n")
        return code
    except BrokenPipeError:
        # Whoever read it has gone, as `| head` does; nothing is left to flush at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        # Files have names; the output has none.
        if error.filename is None and error.errno in _WRITE_ERRORS:
            message = str(unwritten(error.errno, "all of the output"))
        else:
            message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        err.write(f"lengthwise: {printable_text(message)}\n")
        return FAILURE
    except KeyboardInterrupt:
        return INTERRUPTED
