"""Output of an export: one file or a directory of files, written atomically.

It replaces only a directory with a manifest, or a file with the format's suffix.
"""
from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from types import TracebackType
from typing import Any, BinaryIO

from lengthwise.errors import refused
from lengthwise.user_file import unwritten

_BUFFER_BYTES = 1 << 20

# Stands in every directory, and says that it is an export, and may be replaced by another.
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
    file without `suffix`, are never replaced.
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

    def commit(self) -> None:
        """Gives everything its name. All files are closed."""
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
        if old:
            _delete(old)


def _delete(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        os.unlink(path)
