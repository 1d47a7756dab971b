"""`lengthwise analyze ANALYSIS EXPERIMENT...`: what can be asked of stored maps, models and scores."""
from __future__ import annotations

import argparse

from lengthwise.command_line import SUCCESS, Output, connect
from lengthwise.rendering import BOLD, wrap

_OPTIONS = ("reference", "measure", "length", "accuracy", "compare", "file")


def run(arguments: argparse.Namespace, output: Output) -> int:
    from lengthwise.analyses import latin_square, report
    from lengthwise.analyses.trial_sets import subject_of
    from lengthwise.plots import data

    given = vars(arguments)
    options = {name: given[name] for name in _OPTIONS if name in given}
    # Mistakes that can be found without a server.
    if given.get("compare"):
        of_losses = arguments.analysis == "loss_ratios"
        key = arguments.compare
        report.find_losses(key) if of_losses else report.find_cosines(key, arguments.measure)
    if "file" in given:
        latin_square.read_human_accuracies(arguments.file)
    with connect(arguments) as connection:
        subject = subject_of(data.fetch(connection, arguments.experiments, select=arguments.select))
        found: report.AnalysisReport = getattr(report, arguments.analysis)(subject, **options)
    if output.kind == "table":
        output.out.write(f"{output.palette(BOLD, subject.names)}\n\n{wrap(found.caption, output.width, 0)}\n\n")
    output.write_table(found.table.as_table(), found.table.as_records())
    if output.kind == "table" and (remarks := [*found.remarks, *found.of_table]):
        output.out.write("\n" + "".join(wrap(remark, output.width, 2) + "\n" for remark in remarks))
    return SUCCESS
