"""`lengthwise analyze ANALYSIS EXPERIMENT...`: what can be asked of stored maps, models and scores."""
from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from lengthwise.command_line import SUCCESS, Output, add_output_option, add_server_options
from lengthwise.rendering import BOLD, wrap

if TYPE_CHECKING:
    from lengthwise.analyses.report import AnalysisReport
    from lengthwise.analyses.trial_sets import Subject

# What can be told to be wrong before a server is asked is done when it is made.
Analysis = Callable[["Subject"], "AnalysisReport"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    analyses = parser.add_subparsers(dest="analysis", metavar="ANALYSIS", required=True, parser_class=type(parser))

    def add(
        name: str, description: str, prepare: Callable[[argparse.Namespace], Analysis]
    ) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = analyses.add_parser(name, help=description, description=description)
        command.add_argument("experiments", nargs="+", help="Experiments, or single trials as EXPERIMENT/TRIAL")
        command.set_defaults(prepare=prepare)
        add_server_options(command)
        add_output_option(command, ["table", "json", "csv", "markdown", "latex"])
        return command

    def add_measure(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--measure",
            choices=["cosine", "js"],
            default="cosine",
            help="cosine of all probabilities, or js: Jensen-Shannon divergence; default cosine",
        )

    command = add("attention", "How alike attention maps are to those of an encoding", _attention)
    command.add_argument("--reference", required=True, help="The encoding whose maps the others are compared with")
    add_measure(command)
    command.add_argument("--compare", metavar="KEY", help="Beside this published table, such as lst_pe_init/table_3")
    command = add("attention_matrix", "How alike the attention maps of any two encodings are", _attention_matrix)
    add_measure(command)
    add("ground_truth", "How much of attention goes to what the answers of puzzles depend on", _ground_truth)
    command = add("encodings", "How far learned tables of positions are from a fixed encoding's", _encodings)
    command.add_argument(
        "--reference",
        required=True,
        help="The fixed encoding: a label of the experiment, or sin_cos or sin_cos_2d",
    )
    add("noise", "Accuracy when noise is added to the embeddings of tokens", _noise)
    command = add("humans", "Puzzle by puzzle beside people's accuracies from a file", _humans)
    command.add_argument(
        "--file",
        required=True,
        help='JSON: {"puzzles": [{"puzzle": "0040405210200030", "human_accuracy": 0.975}, ...]}',
    )
    command = add("carries", "Whether sums go wrong where a carry comes in, beside chance", _carries)
    command.add_argument("--length", type=int, default=0, help="This number of digits instead of the largest")
    command = add("speed", "Steps a second, and how soon an accuracy is reached", _speed)
    command.add_argument("--accuracy", type=float, default=0.9, help="0 to 1, on unseen lengths; default 0.9")
    command = add("loss_ratios", "How many times larger one network's losses are beyond training", _loss_ratios)
    command.add_argument("--reference", required=True, help="The network whose losses are divided by the others'")
    command.add_argument(
        "--compare", metavar="KEY", help="Beside this published table, such as positional_attention/figure_2"
    )
    command = add("t_test", "Whether encodings differ, seed by seed: paired t-tests", _t_test)
    command.add_argument("--reference", required=True, help="The encoding that the others are tested against")


def run(arguments: argparse.Namespace, output: Output) -> int:
    analysis: Analysis = arguments.prepare(arguments)

    from lengthwise import settings
    from lengthwise.analyses.trial_sets import subject_of
    from lengthwise.connection import Connection
    from lengthwise.plots import data

    connection = Connection(settings.resolve(vars(arguments)), timeout=60)
    try:
        subject = subject_of(data.fetch(connection, arguments.experiments))
        report = analysis(subject)
    finally:
        connection.close()
    if output.kind == "table":
        output.out.write(f"{output.palette(BOLD, subject.names)}\n\n{wrap(report.caption, output.width, 0)}\n\n")
    output.write_table(report.table.as_table(), report.table.as_records())
    if output.kind == "table" and report.remarks:
        output.out.write("\n")
        for remark in report.remarks:
            output.out.write(wrap(remark, output.width, 2) + "\n")
    return SUCCESS


def _attention(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import report

    table = report.find_cosines(arguments.compare, arguments.measure) if arguments.compare else None
    return lambda subject: report.attention(subject, arguments.reference, arguments.measure, table)


def _attention_matrix(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import report

    return lambda subject: report.attention_matrix(subject, arguments.measure)


def _ground_truth(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import report

    return report.ground_truth


def _encodings(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import report

    return lambda subject: report.encodings(subject, arguments.reference)


def _noise(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import report

    return report.noise


def _humans(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import latin_square, report

    people = latin_square.read_human_accuracies(arguments.file)
    return lambda subject: report.humans(subject, people)


def _carries(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import report

    return lambda subject: report.carries(subject, arguments.length)


def _speed(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import report

    return lambda subject: report.speed(subject, arguments.accuracy)


def _loss_ratios(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import report

    table = report.find_losses(arguments.compare) if arguments.compare else None
    return lambda subject: report.loss_ratios(subject, arguments.reference, table)


def _t_test(arguments: argparse.Namespace) -> Analysis:
    from lengthwise.analyses import report

    return lambda subject: report.t_test(subject, arguments.reference)
