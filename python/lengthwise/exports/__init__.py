"""An experiment, or one trial, in the formats of other tools."""
from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name

import grpc

from lengthwise.commands import DEFINITIONS
from lengthwise.connection import Connection
from lengthwise.errors import LengthwiseError, NotFoundError, UsageError, damaged
from lengthwise.exports.exporter import Exporter, Subject
from lengthwise.exports.output import MANIFEST, Kind, Output
from lengthwise.names import file_name, find, list_trials
from lengthwise.version import __version__

__all__ = ["FORMATS", "Format", "Result", "Subject", "export", "export_and_warn", "find_subject"]


@dataclass(frozen=True)
class Format:
    # Suffix of the default path: "-csv" for a directory, ".json" for a file.
    suffix: str
    of_experiment: Kind
    of_trial: Kind
    # The Exporter: a module of this package, imported when it is asked for, and a class.
    exporter: str

    def make(self, connection: Connection, subject: Subject, output: Output, select: str) -> Exporter:
        exporter: type[Exporter] = resolve_name(f"lengthwise.exports.{self.exporter}")
        return exporter(connection, subject, output, select)


# By name, in the order of the help; commands/definitions.json says what each contains.
FORMATS = {
    "csv": Format("-csv", Kind.DIRECTORY, Kind.DIRECTORY, "tables:CsvExporter"),
    "json": Format(".json", Kind.FILE, Kind.FILE, "document:JsonExporter"),
    "tensorboard": Format("-tensorboard", Kind.DIRECTORY, Kind.DIRECTORY, "event_files:TensorboardExporter"),
    "safetensors": Format("-safetensors", Kind.DIRECTORY, Kind.FILE, "stored_models:SafetensorsExporter"),
    "npz": Format("-npz", Kind.DIRECTORY, Kind.FILE, "arrays:NpzExporter"),
    "latex": Format(".tex", Kind.FILE, Kind.FILE, "latex:LatexExporter"),
    "site": Format("-site", Kind.DIRECTORY, Kind.DIRECTORY, "site:SiteExporter"),
}


@dataclass
class Result:
    path: str
    trials: int = 0
    # Why trials are not in it: without anything to export, and damaged.
    absent: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def find_subject(connection: Connection, name: str) -> Subject:
    """`name`: an experiment, or a trial of one."""
    found = find(connection, name)
    if found.HasField("trial"):
        return Subject(found.experiment, [found.trial], whole_experiment=False)
    return Subject(found.experiment, list_trials(connection, found.experiment.name))


def _check_path(path: str, name: str, chosen: Format, kind: Kind, subject: Subject) -> None:
    if kind is Kind.FILE or not path.endswith(f".{name}"):
        return
    what = "an experiment" if subject.whole_experiment else "a trial"
    table = ", or write one table with `lengthwise results --output csv`" if name == "csv" else ""
    raise UsageError(
        f'-o: "{path}" names one file, and {name} of {what} is a directory of several; name a directory, such as '
        f'"{path.removesuffix(f".{name}")}{chosen.suffix}"{table}'
    )


def export(
    connection: Connection,
    subject: Subject,
    format: str,
    path: str = "",
    replace: bool = False,
    progress: Callable[[int, int], None] | None = None,
    select: str = "",
) -> Result:
    """Writes it to `path`; without one to the short name and the format's suffix, here. It is there whole or not at all.

    `progress` is told after each trial how many are done, of how many. `select`: as for Exporter. Errors: the server's;
    INVALID_ARGUMENT for a format that there is not; NOT_FOUND: no trial has anything that the format holds;
    FAILED_PRECONDITION: it cannot be written, and what to do.
    """
    if format not in FORMATS:
        raise UsageError(f'unknown format "{format}"; there are {", ".join(FORMATS)}')
    chosen = FORMATS[format]
    # Exporters name files after trials.
    for trial in subject.trials:
        file_name(trial.name)
    kind = chosen.of_experiment if subject.whole_experiment else chosen.of_trial
    # "-safetensors" of a directory is ".safetensors" of a file.
    suffix = f".{chosen.suffix[1:]}" if kind is Kind.FILE else chosen.suffix
    if not path:
        named = subject.experiment.name if subject.whole_experiment else subject.trials[0].name
        path = file_name(named) + suffix
    _check_path(path, format, chosen, kind, subject)
    result = Result(path)
    with (
        Output(path, kind, replace, suffix) as output,
        closing(chosen.make(connection, subject, output, select)) as exporter,
    ):
        exporter.begin()
        for done, trial in enumerate(subject.trials, 1):
            try:
                exporter.add_trial(trial)
                result.trials += 1
            except LengthwiseError as error:
                if error.code is grpc.StatusCode.NOT_FOUND:
                    result.absent.append(str(error))
                elif error.code is grpc.StatusCode.DATA_LOSS:
                    result.damaged.append(str(error))
                else:
                    raise
            if progress is not None:
                progress(done, len(subject.trials))
        if result.damaged and result.trials == 0:
            raise damaged(result.damaged[0])
        if result.absent and result.trials == 0:
            raise NotFoundError(result.absent[0])
        exporter.finish()
        exporter.close()
        if kind is Kind.DIRECTORY:
            output.write(MANIFEST, _manifest(format, subject, result.trials, output.files()))
        output.commit()
    return result


def _manifest(name: str, subject: Subject, trials: int, files: list[str]) -> str:
    manifest = {
        "format": name,
        "description": DEFINITIONS["export"]["formats"][name],
        "experiment": subject.experiment.name,
        "trials": trials,
        "files": files,
        "written_by": f"lengthwise {__version__}",
    }
    return json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"


def export_and_warn(
    connection: Connection,
    subject: Subject,
    format: str,
    path: str | os.PathLike[str] | None,
    replace: bool,
    select: str = "",
) -> Path:
    """Returns the path; trials that are not in it are a warning."""
    result = export(connection, subject, format, "" if path is None else os.fspath(path), replace, select=select)
    for why in [*result.absent, *result.damaged]:
        warnings.warn(f"left out: {why}", stacklevel=4)
    return Path(result.path)
