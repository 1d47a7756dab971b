"""`python -m lengthwise`."""
import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

# Before NumPy is imported. Matrices here are small: on busy cores OpenBLAS's threads wait for each other a hundred times
# longer than one thread takes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: "FrameType | None") -> NoReturn:
    # Once: what is cleaned up then is not interrupted.
    for one in _SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    raise KeyboardInterrupt


for _signal in _SIGNALS:
    signal.signal(_signal, _interrupt)
try:
    from lengthwise.command_line import main

    code = main()
except KeyboardInterrupt:
    code = 130
if code == 130:
    # At once: threads of gRPC that still run would print tracebacks while the interpreter ends.
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
sys.exit(code)
