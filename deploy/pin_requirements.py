#!/usr/bin/env python3
"""Writes the requirements files whose packages pip checks by hash, from the .in files beside them.

    deploy/pin_requirements.py PYTHON... FILE.in...

PYTHON are interpreters with pip, one for each Python that is to be supported (Debian 12 has 3.11, Debian 13 has 3.13).
FILE.in names packages as pip's requirements do; FILE.txt gets all that they need, each with the version and the hashes of
the files that pip would install with each PYTHON on this kind of processor. Nothing is installed. A line "--no-deps" in
FILE.in leaves out what the named packages need; a line "-r OTHER.in" stands for the lines of that file.
"""

import json
import pathlib
import subprocess
import sys

Pins = dict[str, tuple[str, set[str]]]


def read_lines(source: pathlib.Path) -> list[str]:
    """The file's lines, those of the files that it names included."""
    lines: list[str] = []
    for line in source.read_text().splitlines():
        lines += read_lines(source.parent / line.removeprefix("-r ")) if line.startswith("-r ") else [line]
    return lines


def resolve(python: str, source: pathlib.Path) -> Pins:
    """The versions and hashes of what pip would install."""
    lines = read_lines(source)
    options = ["--no-deps"] if "--no-deps" in lines else []
    wanted = "\n".join(line for line in lines if line != "--no-deps") + "\n"
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--dry-run", "--ignore-installed"]
    command += ["--only-binary=:all:", "--report", "-", *options, "--requirement", "/dev/stdin"]
    output = subprocess.run(command, check=True, input=wanted, stdout=subprocess.PIPE, text=True).stdout
    report = json.loads(output)
    pins: Pins = {}
    for item in report["install"]:
        metadata = item["metadata"]
        name = metadata["name"].lower().replace("_", "-").replace(".", "-")
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        pins[name] = (metadata["version"], {digest})
    return pins


def merge(all_pins: list[Pins]) -> Pins:
    """One version for all interpreters; a package that only some need is pinned for all."""
    merged: Pins = {}
    for pins in all_pins:
        for name, (version, hashes) in pins.items():
            known, digests = merged.setdefault(name, (version, set()))
            if known != version:
                raise SystemExit(f"{name}: {known} for one Python and {version} for another; name one in the .in file")
            digests.update(hashes)
    return merged


def main() -> None:
    pythons = [argument for argument in sys.argv[1:] if not argument.endswith(".in")]
    sources = [pathlib.Path(argument) for argument in sys.argv[1:] if argument.endswith(".in")]
    if not pythons or not sources:
        raise SystemExit(__doc__)
    for source in sources:
        pins = merge([resolve(python, source) for python in pythons])
        lines = [f"# Written by deploy/pin_requirements.py from {source.name}. For x86-64."]
        for name, (version, hashes) in sorted(pins.items()):
            lines.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in sorted(hashes))]))
        source.with_suffix(".txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
