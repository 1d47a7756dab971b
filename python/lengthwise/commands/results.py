"""`lengthwise results EXPERIMENT`: its table as a document, or with `--compare PAPER/TABLE` beside a paper's table."""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lengthwise import published
from lengthwise.command_line import SUCCESS, Output, connect
from lengthwise.errors import UsageError
from lengthwise.rendering import Column, Records, Table

if TYPE_CHECKING:
    from lengthwise._proto.experiment_service_pb2 import Experiment
    from lengthwise.comparison import Comparison


def run(arguments: argparse.Namespace, output: Output) -> int:
    if arguments.compare == "list":
        _list_tables(output)
        return SUCCESS
    if not arguments.experiment:
        raise UsageError("results needs an experiment; `lengthwise list` prints them")
    # A wrong key is told before a server is asked.
    table = None if arguments.compare in ("", "all") else published.find(arguments.compare)

    from lengthwise import accuracy_table, comparison, queries
    from lengthwise.names import find_experiment

    with connect(arguments) as connection:
        experiment = find_experiment(connection, arguments.experiment)
        if not arguments.compare:
            summary = queries.summary(connection, experiment.name, with_lengths=True)
            # The program asks for no other kind.
            document = accuracy_table.as_table(summary, output.width)
            output.out.write(document.render_latex() if output.kind == "latex" else document.render_markdown())
            return SUCCESS
        if table is not None:
            _write(comparison.fetch(connection, experiment, table, select=arguments.select), arguments.whole_table, output)
            return SUCCESS
        _write_all(comparison.fetch_all(connection, experiment, arguments.select), experiment, arguments.whole_table, output)
    return SUCCESS


def _list_tables(output: Output) -> None:
    # Other programs read what is no terminal's.
    least = 12 if output.is_screen else 0
    listing = Table([Column("key"), Column("paper", shrinks_to=least), Column("title", shrinks_to=least)])
    records = Records(["key", "paper", "table", "title"])
    for table in published.tables():
        records.rows.append([table.key, table.paper, table.table, table.title])
        listing.add_row([table.key, table.paper, table.title])
    output.write_table(listing, records)


def _write_all(found: Sequence[Comparison], experiment: Experiment, whole_table: bool, output: Output) -> None:
    """One document for all tables: in CSV a first column names the table, JSON is a list."""
    from lengthwise import comparison_display as display
    from lengthwise.names import short_name

    if output.kind == "csv":
        display.records_of_all(found).write_csv(output.out)
        return
    if output.kind == "json":
        display.write_json(list(map(display.as_dictionary, found)), output.out)
        return
    if not found:
        output.out.write(
            f"{short_name(experiment.name)} has no result in a published table of its protocol; "
            "`lengthwise results --compare list` prints the tables\n"
        )
    for number, one in enumerate(found):
        if number > 0:
            output.out.write("\n")
        _write(one, whole_table, output)


def _write(comparison: Comparison, whole_table: bool, output: Output) -> None:
    from lengthwise import comparison_display as display

    if output.kind == "csv":
        display.records(comparison).write_csv(output.out)
    elif output.kind == "json":
        display.write_json(display.as_dictionary(comparison), output.out)
    elif output.kind == "markdown":
        display.write_markdown(comparison, whole_table, output.out)
    elif output.kind == "latex":
        display.write_latex(comparison, whole_table, output.out)
    else:
        display.write_terminal(comparison, whole_table, output.width, output.palette, output.out)
