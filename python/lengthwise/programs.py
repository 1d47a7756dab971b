"""The programs that are part of a wheel of Lengthwise (deploy/wheel.sh). A checkout's package has none."""
from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

_DIRECTORY = Path(__file__).resolve().parent / "_programs"


def packaged_program(name: str) -> Path | None:
    """The program `name` of this package, or None if it has none."""
    path = _DIRECTORY / "bin" / name
    return path if path.is_file() else None


def ready_specification(name: str) -> Path | None:
    """The file of a specification, "quickstart" or "latin_square/table1", that is part of this package or of the checkout
    that the current directory is in; otherwise, or where a file of that name is here, None."""
    if Path(name).is_file():
        return None
    places = [_DIRECTORY / "share" / "lengthwise" / "experiments"]
    for folder in (Path.cwd(), *Path.cwd().parents):
        # Not a folder of the user's own that has this name.
        if (folder / "experiments" / "published" / "papers.json").exists():
            places.append(folder / "experiments")
    return next((path for place in places if (path := place / f"{name}.yaml").is_file()), None)


def start() -> NoReturn:
    """Becomes the program whose name this process was started by: the commands of an environment's bin begin here."""
    name = Path(sys.argv[0]).name
    path = packaged_program(name)
    if path is None:
        raise SystemExit(f"{name}: there is no {_DIRECTORY / 'bin' / name}; install Lengthwise again")
    # The command line runs its Python half here, in the environment that has it.
    os.environ.setdefault("LENGTHWISE_PYTHON", sys.executable)
    os.execv(path, [str(path), *sys.argv[1:]])
