"""`lengthwise compare A B`: two experiments side by side."""
from __future__ import annotations

import argparse

from lengthwise.command_line import SUCCESS, Output, connect
from lengthwise.rendering import BOLD, wrap


def run(arguments: argparse.Namespace, output: Output) -> int:
    from lengthwise import experiment_difference, queries
    from lengthwise.names import find_experiment, short_name

    with connect(arguments) as connection:
        experiments = [find_experiment(connection, name) for name in (arguments.first, arguments.second)]
        summaries = [queries.summary(connection, experiment.name) for experiment in experiments]
    pairs = experiment_difference.match(summaries[0].cells, summaries[1].cells)
    first, second = (short_name(experiment.name) for experiment in experiments)
    headings = [summary.heading for summary in summaries]
    by_loss = headings[0].compared_by_loss, headings[1].compared_by_loss
    table = experiment_difference.as_table(pairs, first, second, by_loss)
    if output.kind == "table":
        by_accuracy = [summary for summary in summaries if not summary.heading.compared_by_loss]
        several = any(cell.unseen_accuracy.trials > 1 for summary in by_accuracy for cell in summary.cells)
        deviations = "; ±: standard deviation over trials" if several else ""
        what = experiment_difference.heading(headings)
        output.out.write(f"{output.palette(BOLD, f'{second} against {first}')}: {what}{deviations}\n\n")
    output.write_table(table, experiment_difference.as_records(pairs))
    if output.kind != "table":
        return SUCCESS
    specifications = [experiment.specification for experiment in experiments]
    # Of both, in this order, each once.
    sentences = list(dict.fromkeys(heading.random_guess for heading in headings if heading.random_guess))
    sentences += experiment_difference.sentences(specifications[0], specifications[1], (first, second))
    output.out.write("\n" + "".join(wrap(sentence, output.width, 2) + "\n" for sentence in sentences))
    return SUCCESS
