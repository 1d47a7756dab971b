"""`lengthwise export NAME --format FORMAT`: what was measured, for other tools."""
from __future__ import annotations

import argparse

from lengthwise.command_line import FAILURE, INTERRUPTED, SUCCESS, Output, connect
from lengthwise.errors import UsageError
from lengthwise.printable import printable_text
from lengthwise.rendering import counted


def run(arguments: argparse.Namespace, output: Output) -> int:
    from lengthwise import exports

    out, err = output.out, output.err
    if arguments.out == "-":
        raise UsageError('--out is "-"; an export is a file or a directory: name one (./- for a file called -)')

    def show(done: int, all_trials: int) -> None:
        if arguments.progress and all_trials > 1:
            out.write(f"\r{done} of {all_trials} trials\x1b[K")
            out.flush()

    try:
        with connect(arguments) as connection:
            subject = exports.find_subject(connection, arguments.name)
            done = exports.export(
                connection, subject, arguments.format, arguments.out, arguments.force, show, arguments.select
            )
    except KeyboardInterrupt:
        err.write("lengthwise: interrupted; nothing was written\n")
        return INTERRUPTED
    finally:
        if arguments.progress:
            out.write("\r\x1b[K")
            out.flush()
    out.write(f"{done.path}\n")
    out.flush()
    if done.absent:
        which = counted(len(done.absent), "trial is", "trials are")
        err.write(f"lengthwise: {which} not in it; of the first: {printable_text(done.absent[0])}\n")
    for why in done.damaged:
        err.write(f"lengthwise: left out: {printable_text(why)}\n")
    return FAILURE if done.damaged else SUCCESS
