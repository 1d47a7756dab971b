"""Output of an export: one file or a directory of files. Each file is there whole or not at all, and so is a new directory.

It replaces only a file with the format's suffix, or, in a directory with a manifest, the files that the manifest lists. Any
other file is the user's and stays.
"""
from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import PurePath
from types import TracebackType
from typing import Any, BinaryIO

from lengthwise.errors import refused
from lengthwise.user_file import read_user_file, unwritten

_BUFFER_BYTES = 1 << 20
# Has less than 100 bytes for each file.
_MOST_MANIFEST_BYTES = 1 << 28

# Stands in every directory, and says that it is an export, and may be replaced by another. Its field "files" lists the
# other files of the export, relative to the directory.
MANIFEST = "export.json"


class Kind(Enum):
    FILE = "file"
    DIRECTORY = "directory"


def _check_free(path: str, kind: Kind, replace: bool, suffix: str) -> set[str] | None:
    """Checks that the output may have this path. Returns what _listed does of a directory that is there."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        raise unwritten(error.errno, path, "look at") from None
    is_directory = os.path.isdir(path)
    if is_directory != (kind is Kind.DIRECTORY) or not (is_directory or os.path.isfile(path)):
        one_file = "a directory, and this export is one file"
        what = one_file if is_directory else "a file, and this export is a directory of files"
        raise refused(f"{path} is {what}; choose another place with -o PATH")
    if is_directory:
        try:
            names = os.listdir(path)
        except OSError as error:
            raise unwritten(error.errno, path, "look at") from None
        if not names:
            return set()
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
    return _listed(path) if is_directory else set()


def _listed(directory: str) -> set[str] | None:
    """The files that the manifest lists as written by an earlier export; None if that export's version made no list.

    FAILED_PRECONDITION: the manifest cannot be read, another program wrote it, or it lists a file outside `directory`.
    """
    path = os.path.join(directory, MANIFEST)
    try:
        manifest = json.loads(read_user_file(path, _MOST_MANIFEST_BYTES))
    except OSError as error:
        raise refused(f"cannot read {path}: {error.strerror}; choose another place with -o PATH") from None
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or not str(manifest.get("written_by", "")).startswith("lengthwise "):
        raise refused(f"lengthwise did not write {path}, so nothing is replaced; choose another place with -o PATH")
    files = manifest.get("files")
    if not isinstance(files, list):
        return None
    listed = {MANIFEST, *(name for name in files if isinstance(name, str))}
    for name in sorted(listed):
        if not _lies_inside(directory, name):
            raise refused(
                f"{path} lists {json.dumps(name)}, which is no file in {directory}, so nothing is replaced; choose another "
                "place with -o PATH"
            )
    return listed


def _lies_inside(directory: str, name: str) -> bool:
    """True for a relative path without "..", whose directory is in `directory` after its links are resolved.

    A link at the end of `name` counts as the file itself, because deleting or replacing it leaves its target alone.
    """
    if name != os.path.normpath(name) or os.path.isabs(name) or PurePath(name).parts[:1] in ((), ("..",)):
        return False
    try:
        parent = os.path.realpath(os.path.dirname(os.path.join(directory, name)))
    except ValueError:
        # No path has a null character.
        return False
    return PurePath(parent).is_relative_to(os.path.realpath(directory))


def _is_directory(path: str) -> bool:
    """True for a directory itself, False for a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def _parents(name: str) -> list[str]:
    """ "a/b" and "a" of "a/b/c.txt"."""
    return [str(parent) for parent in PurePath(name).parents[:-1]]


def _check_own(directory: str, names: Iterable[str], listed: set[str] | None) -> None:
    """Raises FAILED_PRECONDITION if writing `names` into `directory` would overwrite what no export wrote."""
    own = listed or set()
    for name in names:
        path = os.path.join(directory, name)
        # "a/b.txt" needs a directory "a".
        above = [os.path.join(directory, parent) for parent in _parents(name) if parent not in own]
        taken = [parent for parent in above if os.path.lexists(parent) and not _is_directory(parent)]
        if os.path.lexists(path) and (_is_directory(path) or (listed is not None and name not in listed)):
            taken.append(path)
        if taken:
            raise refused(
                f"{taken[0]} is in the way of the new export, and its manifest does not list it; move it, or choose another "
                "place with -o PATH"
            )


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
    are replaced, one after the other. A manifest of version 0.2.0 or earlier lists none: then only files of the same names
    are.
    """

    def __init__(self, path: str, kind: Kind, replace: bool, suffix: str = "") -> None:
        # "a/b/" is "a/b", and a link is what it leads to.
        clean = os.path.normpath(path)
        self._path = os.path.realpath(clean) if os.path.islink(clean) else clean
        self._kind = kind
        self._replace = replace
        self._suffix = suffix
        self._temporary = ""
        self._committed = False

    def __enter__(self) -> Output:
        _check_free(self._path, self._kind, self._replace, self._suffix)
        # Beside it, so that a rename gives it its name. With the permissions that the user gives to new files, not those of
        # temporary ones.
        self._temporary = f"{os.path.abspath(self._path)}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        try:
            if self._kind is Kind.DIRECTORY:
                os.mkdir(self._temporary)
            else:
                open(self._temporary, "xb").close()
        except OSError as error:
            raise unwritten(error.errno, self._path, "make") from None
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

    def sha256(self, name: str) -> str:
        """Of a file of the directory that has been written."""
        digest = hashlib.sha256()
        with open(os.path.join(self._temporary, name), "rb") as file:
            while part := file.read(_BUFFER_BYTES):
                digest.update(part)
        return digest.hexdigest()

    def commit(self) -> None:
        """Gives everything its name. All files are closed. FAILED_PRECONDITION: a file would overwrite one that no export
        wrote.
        """
        if self._kind is Kind.DIRECTORY and os.path.isdir(self._path):
            self._fill_directory()
        else:
            try:
                os.rename(self._temporary, self._path)
            except OSError as error:
                raise unwritten(error.errno, self._path, "make") from None
        self._committed = True

    def _fill_directory(self) -> None:
        """Moves all files into the directory that is there, and deletes those of the earlier export."""
        # It may have come since the export began.
        listed = _check_free(self._path, self._kind, self._replace, self._suffix)
        written = self.files()
        _check_own(self._path, written, listed)
        old = (listed or set()).difference(written)
        try:
            # If this process is killed before the end, the next export knows the files of both.
            self._put_manifest({*written, *old})
            # What a new directory needs as its name.
            for name in old.intersection(parent for one in written for parent in _parents(one)):
                os.unlink(os.path.join(self._path, name))
            for name in sorted(written, key=lambda one: one == MANIFEST):
                target = os.path.join(self._path, name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                if name == MANIFEST:
                    _delete_files(self._path, old)
                os.replace(os.path.join(self._temporary, name), target)
        except OSError as error:
            raise unwritten(error.errno, error.filename2 or error.filename or self._path) from None
        _delete(self._temporary)

    def _put_manifest(self, files: Iterable[str]) -> None:
        with open(os.path.join(self._temporary, MANIFEST), encoding="utf-8") as file:
            manifest = json.load(file)
        manifest["files"] = sorted(set(files) - {MANIFEST})
        interim = os.path.join(self._temporary, f"{MANIFEST}.interim")
        with open(interim, "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        os.replace(interim, os.path.join(self._path, MANIFEST))


def _delete_files(directory: str, names: Iterable[str]) -> None:
    """Deletes files that are still there, and then the directories that they leave empty. Errors: OSError."""
    parents = set()
    for name in names:
        path = os.path.join(directory, name)
        if os.path.lexists(path) and not _is_directory(path):
            os.unlink(path)
        parents.update(_parents(name))
    for parent in sorted(parents, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(os.path.join(directory, parent))


def _delete(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        os.unlink(path)
