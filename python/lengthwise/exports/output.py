"""Output of an export: one file or a directory of files, written atomically.

It replaces only a directory with a manifest, or a file with the format's suffix. In a directory it replaces only the files
that the manifest lists. Any other file is the user's and stays.
"""
from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import PurePath
from types import TracebackType
from typing import Any, BinaryIO

from lengthwise.errors import refused
from lengthwise.user_file import unwritten

_BUFFER_BYTES = 1 << 20

# Stands in every directory, and says that it is an export, and may be replaced by another. Its field "files" lists the
# other files of the export, relative to the directory.
MANIFEST = "export.json"


class Kind(Enum):
    FILE = "file"
    DIRECTORY = "directory"


def _resolve(path: str) -> str:
    """ "a/b/" is "a/b", and a link is what it leads to."""
    clean = os.path.normpath(path)
    return os.path.realpath(clean) if os.path.islink(clean) else clean


def _check_free(path: str, kind: Kind, replace: bool, suffix: str) -> None:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise unwritten(error.errno, path, "look at") from None
    is_directory = os.path.isdir(path)
    if is_directory != (kind is Kind.DIRECTORY) or not (is_directory or os.path.isfile(path)):
        what = "a file, and this export is a directory of files"
        if is_directory:
            what = "a directory, and this export is one file"
        raise refused(f"{path} is {what}; choose another place with -o PATH")
    if is_directory:
        try:
            names = os.listdir(path)
        except OSError as error:
            raise unwritten(error.errno, path, "look at") from None
        if not names:
            return
        # Whoever names a home directory by mistake keeps it.
        if MANIFEST not in names:
            raise refused(
                f"{path} has files that are not an export's, which are not replaced; choose another place with -o PATH"
            )
    elif not path.endswith(suffix):
        # Files have no manifest, so only the suffix tells an export from a user's file.
        raise refused(
            f"{path} is there already and is not replaced, because its name does not end in {suffix}; delete it first, or "
            "choose another place with -o PATH"
        )
    if not replace:
        raise refused(f"{path} is there already; replace it with --force, or choose another place with -o PATH")
    if is_directory:
        _listed(path)


def _listed(directory: str) -> set[str] | None:
    """The files that an earlier export wrote, as its manifest lists them; None if its version did not list them.

    FAILED_PRECONDITION: the manifest cannot be read, or is not an export's.
    """
    path = os.path.join(directory, MANIFEST)
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
    except OSError as error:
        raise unwritten(error.errno, path, "read") from None
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict):
        raise refused(f"{path} is not an export's, so nothing is replaced; choose another place with -o PATH")
    files = manifest.get("files")
    if not isinstance(files, list):
        return None
    return {MANIFEST, *(name for name in files if isinstance(name, str))}


def _is_directory(path: str) -> bool:
    """True for a directory itself, False for a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def _check_own(directory: str, names: Iterable[str], listed: set[str] | None) -> None:
    """Raises FAILED_PRECONDITION if writing `names` into `directory` would overwrite what no export wrote."""
    for name in names:
        path = os.path.join(directory, name)
        # "a/b.txt" needs a directory "a".
        above = [os.path.join(directory, str(one)) for one in PurePath(name).parents[:-1]]
        taken = [one for one in above if os.path.lexists(one) and not _is_directory(one)]
        if os.path.lexists(path) and (_is_directory(path) or (listed is not None and name not in listed)):
            taken.append(path)
        if taken:
            raise refused(
                f"{taken[0]} is not of the earlier export and would be overwritten; move it, or choose another place with "
                "-o PATH"
            )


def _move_others(old: str, new: str, replaced: set[str], within: str = "") -> None:
    """Moves what is not in `replaced` from `old` to `new`. Errors: OSError."""
    for entry in sorted(os.scandir(os.path.join(old, within)), key=lambda one: one.name):
        name = os.path.join(within, entry.name)
        target = os.path.join(new, name)
        is_directory = entry.is_dir(follow_symlinks=False)
        if is_directory and (os.path.lexists(target) or any(one.startswith(f"{name}{os.sep}") for one in replaced)):
            _move_others(old, new, replaced, name)
        elif is_directory or name not in replaced:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.rename(entry.path, target)


class _File(io.FileIO):
    """Raises the same errors as Output."""

    def __init__(self, path: str, shown: str) -> None:
        """`shown`: its path after the commit."""
        super().__init__(path, "w")
        self._shown = shown

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise unwritten(error.errno, self._shown) from None

    def close(self) -> None:
        try:
            super().close()
        except OSError as error:
            # A file system over the network may say only now that it is full.
            raise unwritten(error.errno, self._shown) from None


class Output:
    """A context: what is in it has its name after `commit`, and without that is deleted at the end.

    Errors name the file that the user will see and say what to do: FAILED_PRECONDITION. On entry: nothing can be written
    there, or something is there already and `replace` is not set. A directory that is neither empty nor an export, and a
    file without `suffix`, are never replaced. In the directory of an earlier export, only the files that its manifest lists
    are replaced. A manifest of version 0.2.0 or earlier lists none: then only files of the same names are.
    """

    def __init__(self, path: str, kind: Kind, replace: bool, suffix: str = "") -> None:
        self._path = _resolve(path)
        self._kind = kind
        self._replace = replace
        self._suffix = suffix
        self._temporary = ""
        self._committed = False

    def __enter__(self) -> Output:
        _check_free(self._path, self._kind, self._replace, self._suffix)
        # Beside it, so that a rename gives it its name. With the permissions that the user gives to new files, not those of
        # temporary ones.
        attempt = 0
        while True:
            temporary = f"{self._path}.{os.getpid()}-{attempt}.tmp"
            try:
                if self._kind is Kind.DIRECTORY:
                    os.mkdir(temporary)
                else:
                    open(temporary, "xb").close()
                break
            except FileExistsError as error:
                attempt += 1
                if attempt > 100:
                    raise unwritten(error.errno, self._path, "make") from None
            except OSError as error:
                raise unwritten(error.errno, self._path, "make") from None
        self._temporary = temporary
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._committed:
            _delete(self._temporary)

    @contextmanager
    def open(self, name: str = "") -> Iterator[BinaryIO]:
        """The file itself (`name` is empty), or a file of the directory; "a/b.txt" makes "a", too. Exceptions delete it."""
        path = os.path.join(self._temporary, name) if name else self._temporary
        shown = os.path.join(self._path, name) if name else self._path
        try:
            if name:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            file = _File(path, shown)
        except OSError as error:
            raise unwritten(error.errno, shown) from None
        try:
            with io.BufferedWriter(file, _BUFFER_BYTES) as buffered:
                yield buffered
        except BaseException:
            _delete(path)
            raise

    def write(self, name: str, text: str) -> None:
        """A whole file."""
        with self.open(name) as file:
            file.write(text.encode())

    def files(self) -> list[str]:
        """The files of the directory so far, relative to it, sorted."""
        found = []
        for parent, _, names in os.walk(self._temporary):
            found += [os.path.relpath(os.path.join(parent, name), self._temporary) for name in names]
        return sorted(found)

    def commit(self) -> None:
        """Gives everything its name. All files are closed. FAILED_PRECONDITION: a file would overwrite one that no export
        wrote.
        """
        replaced: set[str] = set()
        if self._kind is Kind.DIRECTORY:
            replaced = self._replaced()
        old = ""
        try:
            if self._kind is Kind.DIRECTORY and os.path.exists(self._path):
                # A directory is renamed onto an empty one alone.
                os.rename(self._path, f"{self._temporary}.old")
                old = f"{self._temporary}.old"
            os.rename(self._temporary, self._path)
        except OSError as error:
            if old:
                os.rename(old, self._path)
            raise unwritten(error.errno, self._path, "make") from None
        self._committed = True
        if not old:
            return
        try:
            _move_others(old, self._path, replaced)
        except OSError as error:
            raise refused(
                f"{self._path} is written, but its other files could not be moved back ({error.strerror}); move them from "
                f"{old}"
            ) from None
        _delete(old)

    def _replaced(self) -> set[str]:
        """The files of the directory before that this export deletes or overwrites."""
        # It may have come since the export began.
        _check_free(self._path, self._kind, self._replace, self._suffix)
        if not os.path.isdir(self._path) or not os.listdir(self._path):
            return set()
        listed = _listed(self._path)
        written = self.files()
        _check_own(self._path, written, listed)
        return {*written, *(listed or ())}


def _delete(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        os.unlink(path)
