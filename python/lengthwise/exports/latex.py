"""Tables for a paper: accuracy by length, and beside each published table of which the experiment has run a cell.

A fragment to \\input, for the package booktabs.
"""
from __future__ import annotations

import io
import re

from lengthwise import accuracy_table, comparison, comparison_display, queries
from lengthwise._proto import experiment_service_pb2
from lengthwise.errors import NotFoundError, UsageError
from lengthwise.exports.exporter import Exporter
from lengthwise.names import short_name
from lengthwise.rendering import escape_latex

# Characters across a page. Lengths are averaged in groups to fit.
_PAGE_COLUMNS = 110


class LatexExporter(Exporter):
    """Exports an experiment. A single trial has no averages to tabulate (INVALID_ARGUMENT)."""

    def begin(self) -> None:
        if not self.subject.whole_experiment:
            name = short_name(self.subject.experiment.name)
            raise UsageError(f"latex writes the tables of an experiment; export {name}, or its trial as csv")

    def add_trial(self, trial: experiment_service_pb2.Trial) -> None:
        pass

    def finish(self) -> None:
        experiment = self.subject.experiment
        name = short_name(experiment.name)
        summary = queries.summary(self.connection, experiment.name, with_lengths=True, select=self.select)
        if not accuracy_table.rows_of(summary):
            raise NotFoundError(f"no trial of {name} has been evaluated in full, so there is no table")
        # Without characters that could end a label or a comment, whatever the experiment's name is.
        label = re.sub(r"[^\w.-]", "-", name, flags=re.ASCII)
        table = accuracy_table.as_table(summary, _PAGE_COLUMNS).render_latex()
        caption = escape_latex(f"{name}: {accuracy_table.caption_of(summary)}")
        text = (
            f"% {label}, by lengthwise export.\n\\begin{{table}}\n\\centering\n{table}"
            f"\\caption{{{caption}}}\n\\label{{tab:{label}}}\n\\end{{table}}\n"
        )
        for beside in comparison.fetch_all(self.connection, experiment, self.select):
            out = io.StringIO()
            comparison_display.write_latex(beside, False, out)
            text += f"\n{out.getvalue()}"
        self.output.write("", text)
