"""`lengthwise plot EXPERIMENT... --figure KIND`: pictures of results."""
from __future__ import annotations

import argparse
from pathlib import Path

from lengthwise.command_line import SUCCESS, Output, connect
from lengthwise.errors import UsageError
from lengthwise.user_file import check_writable, write_for_user

_LEAST_PIXELS = 100
_MOST_PIXELS = 10_000


def _check_script(path: Path) -> None:
    """Raises UsageError for a name that does not end with .py, or the name of a file that --script did not write."""
    from lengthwise.plots.numbers import SCRIPT_TITLE

    if path.suffix.lower() != ".py":
        raise UsageError(f'--script is "{path}"; its name must end with .py')
    if path.is_file() and not path.read_text(encoding="utf-8", errors="replace").startswith(SCRIPT_TITLE):
        raise UsageError(f"--script: {path} is there already, and is no program that --script wrote; choose another name")


def run(arguments: argparse.Namespace, output: Output) -> int:
    from lengthwise import plots
    from lengthwise.plots.options import OPTIONS

    # Mistakes that can be told before a server is asked.
    kind = plots.find(arguments.figure)
    given = vars(arguments)
    options = plots.Options(**{name: given[name] for name in OPTIONS if given[name] is not None})
    plots.check_options(kind, options)
    if arguments.out and Path(arguments.out).suffix.lower() not in plots.FORMATS:
        raise UsageError(f'--out is "{arguments.out}"; its name must end with .svg, .pdf or .png')
    for pixels in (arguments.width, arguments.height):
        if pixels != 0 and not _LEAST_PIXELS <= pixels <= _MOST_PIXELS:
            raise UsageError(f"a picture of {pixels} pixels? Accepted: {_LEAST_PIXELS} to {_MOST_PIXELS}")
    if arguments.data and Path(arguments.data).suffix.lower() not in plots.DATA_FORMATS:
        raise UsageError(f'--data is "{arguments.data}"; its name must end with .csv or .json')
    if arguments.script:
        _check_script(Path(arguments.script))
    for path in filter(None, (arguments.out, arguments.data, arguments.script)):
        check_writable(path)

    from lengthwise.names import file_name
    from lengthwise.plots import data, numbers

    chosen = data.TrialFilter(
        arguments.task, arguments.network, arguments.encoding, arguments.learning_rate, arguments.trial
    )
    with connect(arguments) as connection:
        experiments = data.fetch(connection, arguments.experiments, chosen)
        picture = plots.describe(kind.name, experiments, options)
    if arguments.title is not None:
        picture.title = arguments.title
    if output.kind == "json":
        output.out.write(numbers.to_json(picture))
        return SUCCESS
    if arguments.data:
        as_csv = Path(arguments.data).suffix.lower() == ".csv"
        text = numbers.to_csv(picture) if as_csv else numbers.to_json(picture)
        write_for_user(arguments.data, text.encode())
        output.out.write(f"{arguments.data}\n")
    if arguments.script:
        write_for_user(arguments.script, numbers.to_script(picture).encode())
        output.out.write(f"{arguments.script}\n")

    from lengthwise.plots import drawing, style

    # "quickstart-1-loss", or "a-1-b-1-loss" for several experiments.
    stem = "-".join([*(file_name(experiment.name) for experiment in experiments), kind.name])
    size = drawing.Size(arguments.width, arguments.height)
    figure = drawing.draw(picture, size=size, decorated=not arguments.plain)
    style.settle(figure)
    paths = [arguments.out] if arguments.out else [f"{stem}.svg", f"{stem}.png"]
    for path in paths:
        output.out.write(f"{style.save(figure, path)}\n")
    if arguments.open:
        from lengthwise.browser import open_in_browser

        output.out.flush()
        open_in_browser(paths[0])
    return SUCCESS
