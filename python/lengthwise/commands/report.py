"""`lengthwise report EXPERIMENT -o report.html`: everything about an experiment in one file."""
from __future__ import annotations

import argparse
from pathlib import Path

from lengthwise import published
from lengthwise.command_line import SUCCESS, Output, connect
from lengthwise.errors import UsageError


def run(arguments: argparse.Namespace, output: Output) -> int:
    from lengthwise import report
    from lengthwise.browser import open_in_browser
    from lengthwise.names import find_experiment
    from lengthwise.user_file import check_writable

    # Mistakes are told before a server is asked.
    if arguments.out:
        # /dev/stdout has no ending.
        if Path(arguments.out).suffix.lower() not in ("", ".html", ".htm"):
            raise UsageError(f'--out is "{arguments.out}"; a report is HTML: its name must end with .html or .htm')
        check_writable(arguments.out)
    for key in arguments.compare:
        published.find(key)
    with connect(arguments) as connection:
        experiment = find_experiment(connection, arguments.experiment)
        path = report.write(connection, experiment, arguments.out or None, arguments.compare, arguments.select)
    output.out.write(f"{path}\n")
    output.out.flush()
    if arguments.open:
        open_in_browser(str(path))
    return SUCCESS
