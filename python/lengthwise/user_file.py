"""Files that a user asked for by name, such as a picture or a report."""
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import overload

from lengthwise.errors import LengthwiseError, refused

_ADVICE = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "make its directory, or name another file"),
    errno.EISDIR: "name a file in it",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "name another file"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space"),
}


@overload
def user_path(path: str | os.PathLike[str]) -> str: ...
@overload
def user_path(path: str | os.PathLike[str] | None) -> str | None: ...
def user_path(path: str | os.PathLike[str] | None) -> str | None:
    """The path that a caller names, or None for None. A leading "~" or "~user" is a home directory, as in a shell."""
    return None if path is None else os.path.expanduser(os.fspath(path))


def read_user_file(path: str | os.PathLike[str], most_bytes: int = 1 << 20) -> bytes:
    """The content of a file that a user names. OSError, whose `strerror` says why, if it has more than `most_bytes`, and
    if it is not a regular file: a pipe or a device may never answer or never end.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        what = "a directory" if stat.S_ISDIR(status.st_mode) else "a pipe" if stat.S_ISFIFO(status.st_mode) else "a device"
        raise OSError(errno.EINVAL, f"it is {what}, expected a regular file", path)
    if status.st_size <= most_bytes:
        # O_NONBLOCK: does not wait even if a pipe has just replaced the file.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            content = file.read(most_bytes + 1)
        if len(content) <= most_bytes:
            return content
    raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes", path)


def unwritten(number: int | None, path: str, action: str = "write") -> LengthwiseError:
    """The error for an OSError's `number` at `path`, with what to do."""
    known = number or errno.EIO
    advice = _ADVICE.get(known, "choose another place")
    return refused(f"cannot {action} {path}: {os.strerror(known)}; {advice}")


def _mode(path: str) -> int | None:
    """None: there is no such file."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises what write_for_user would, as far as that can be told before the work."""
    name = os.fspath(path)
    mode = _mode(name)
    if mode is not None and stat.S_ISDIR(mode):
        raise unwritten(errno.EISDIR, name)
    written = name if mode is not None else os.path.dirname(name) or "."
    if not os.path.exists(written):
        raise unwritten(errno.ENOENT, name)
    if not os.access(written, os.W_OK):
        raise unwritten(errno.EACCES, name)


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)


def write_for_user(path: str | os.PathLike[str], data: bytes | Iterator[bytes]) -> None:
    """Writes data, or its pieces, to a file with the permissions that the user gives to new files, and through links. What
    was there stays as it was until all is written. FAILED_PRECONDITION: it cannot be written, and why.
    """
    name = os.fspath(path)
    mode = _mode(name)
    pieces = [data] if isinstance(data, bytes) else data
    # A device or a pipe has no file beside it, nor has a file in a directory that is not the user's.
    beside = mode is None or (stat.S_ISREG(mode) and os.access(os.path.dirname(name) or ".", os.W_OK))
    try:
        if not beside:
            _write(Path(name), pieces)
            return
        target = os.path.realpath(name) if os.path.islink(name) else name
        part = Path(f"{target}.{os.getpid()}.part")
        try:
            _write(part, pieces)
            if mode is not None:
                part.chmod(stat.S_IMODE(mode))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise unwritten(error.errno, name) from None
