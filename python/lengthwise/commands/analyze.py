"""`lengthwise analyze ANALYSIS EXPERIMENT...`: what can be asked of stored maps, models and scores."""
from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lengthwise.command_line import (
    SUCCESS,
    Output,
    add_output_option,
    add_select_option,
    add_server_options,
    connect,
)
from lengthwise.rendering import BOLD, wrap

if TYPE_CHECKING:
    from lengthwise.analyses.report import AnalysisReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    analyses = parser.add_subparsers(dest="analysis", metavar="ANALYSIS", required=True, parser_class=type(parser))

    def add(name: str, description: str) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = analyses.add_parser(name, help=description, description=description)
        command.add_argument("experiments", nargs="+", help="Experiments, or single trials as EXPERIMENT/TRIAL")
        add_select_option(command)
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

    command = add("attention", "How alike attention maps are to those of an encoding")
    command.add_argument("--reference", required=True, help="The encoding whose maps the others are compared with")
    add_measure(command)
    command.add_argument("--compare", metavar="KEY", help="Beside this published table, such as lst_pe_init/table_3")
    command = add("attention_matrix", "How alike the attention maps of any two encodings are")
    add_measure(command)
    add("ground_truth", "How much of attention goes to what the answers of puzzles depend on")
    command = add("encodings", "How far learned tables of positions are from a fixed encoding's")
    command.add_argument(
        "--reference",
        required=True,
        help="The fixed encoding: a label of the experiment, or sin_cos or sin_cos_2d",
    )
    add("noise", "Accuracy when noise is added to the embeddings of tokens")
    command = add("humans", "Puzzle by puzzle beside people's accuracies from a file")
    command.add_argument(
        "--file",
        required=True,
        help='JSON: {"puzzles": [{"puzzle": "0040405210200030", "human_accuracy": 0.975}, ...]}',
    )
    for name, description in (
        ("carries", "Whether sums go wrong where a carry comes in, beside chance"),
        ("carry_chains", "How often digits of sums are right by how far the carry has come"),
    ):
        add(name, description).add_argument(
            "--length", type=int, default=0, help="This number of digits instead of the largest"
        )
    command = add("speed", "Steps per second, and how soon an accuracy is reached")
    command.add_argument("--accuracy", type=float, default=0.9, help="0 to 1, on unseen lengths; default 0.9")
    command = add("loss_ratios", "How many times larger one network's losses are beyond training")
    command.add_argument("--reference", required=True, help="The network whose losses are divided by the others'")
    command.add_argument(
        "--compare", metavar="KEY", help="Beside this published table, such as positional_attention/figure_2"
    )
    command = add("t_test", "Whether encodings differ, seed by seed: paired t-tests")
    command.add_argument("--reference", required=True, help="The encoding that the others are tested against")
    command.add_argument(
        "--length", type=int, default=0, help="Score at this evaluated length instead of the mean over unseen lengths"
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    from lengthwise.analyses import latin_square, report
    from lengthwise.analyses.trial_sets import subject_of
    from lengthwise.plots import data

    given = vars(arguments)
    options: dict[str, Any] = {name: given[name] for name in ("reference", "measure", "length", "accuracy") if name in given}
    # Mistakes that can be found without a server.
    if given.get("compare"):
        of_losses = arguments.analysis == "loss_ratios"
        key = arguments.compare
        options["published"] = report.find_losses(key) if of_losses else report.find_cosines(key, arguments.measure)
    if "file" in given:
        options["people"] = latin_square.read_human_accuracies(arguments.file)
    with connect(arguments) as connection:
        subject = subject_of(data.fetch(connection, arguments.experiments, select=arguments.select))
        found: AnalysisReport = getattr(report, arguments.analysis)(subject, **options)
    if output.kind == "table":
        output.out.write(f"{output.palette(BOLD, subject.names)}\n\n{wrap(found.caption, output.width, 0)}\n\n")
    output.write_table(found.table.as_table(), found.table.as_records())
    if output.kind == "table" and found.table_remarks():
        output.out.write("\n")
        for remark in found.table_remarks():
            output.out.write(wrap(remark, output.width, 2) + "\n")
    return SUCCESS
