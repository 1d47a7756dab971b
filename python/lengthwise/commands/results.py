"""`lengthwise results EXPERIMENT`: its table as a document, or with `--compare PAPER/TABLE` beside a paper's table."""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lengthwise import published
from lengthwise.command_line import SUCCESS, Output, connect
from lengthwise.errors import UsageError
from lengthwise.rendering import Column, Records, Table, escape_markdown

if TYPE_CHECKING:
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
    from lengthwise.names import find_experiment, short_name

    with connect(arguments) as connection:
        experiment = find_experiment(connection, arguments.experiment)
        if not arguments.compare:
            summary = queries.summary(connection, experiment.name, with_lengths=True)
            # The program asks for no other kind.
            document, caption = accuracy_table.as_table(summary, output.width), accuracy_table.caption_of(summary)
            is_latex = output.kind == "latex"
            output.out.write(document.render_latex() if is_latex else document.render_markdown())
            if accuracy_table.rows_of(summary):
                # In LaTeX the file may be read within a float.
                output.out.write(f"% {caption}\n" if is_latex else f"\n{escape_markdown(caption)}\n")
            return SUCCESS
        if table is not None:
            found = [comparison.fetch(connection, experiment, table, select=arguments.select)]
        else:
            found = comparison.fetch_all(connection, experiment, arguments.select)
    if not found and output.kind not in ("csv", "json"):
        output.out.write(
            f"{short_name(experiment.name)} has no result in a published table of its protocol; "
            "`lengthwise results --compare list` prints the tables\n"
        )
    _write(found, table is not None, arguments.whole_table, output)
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


def _write(found: Sequence[Comparison], alone: bool, whole_table: bool, output: Output) -> None:
    """Beside one table `alone`; or one document for all: in CSV a first column names the table, JSON is a list."""
    from lengthwise import comparison_display as display

    if output.kind == "csv":
        (display.records(found[0]) if alone else display.records_of_all(found)).write_csv(output.out)
        return
    if output.kind == "json":
        documents = list(map(display.as_dictionary, found))
        display.write_json(documents[0] if alone else documents, output.out)
        return
    for number, one in enumerate(found):
        output.out.write("\n" * (number > 0))
        if output.kind == "markdown":
            display.write_markdown(one, whole_table, output.out)
        elif output.kind == "latex":
            display.write_latex(one, whole_table, output.out)
        else:
            display.write_terminal(one, whole_table, output.width, output.palette, output.out)
