"""`python -m lengthwise`."""
import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

# Set before NumPy is imported. Matrices here are small: on busy cores, OpenBLAS's threads spend a hundred times longer
# waiting for each other than one thread takes for the work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: "FrameType | None") -> NoReturn:
    # Ignore further signals, so that they cannot interrupt the clean-up.
    for one in _SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    # A thread of gRPC may fail when its channel is closed in the middle of a call.
    threading.excepthook = lambda _: None
    raise KeyboardInterrupt


for _signal in _SIGNALS:
    signal.signal(_signal, _interrupt)
try:
    from lengthwise.command_line import main

    code = main()
except KeyboardInterrupt:
    code = 130
if code == 130:
    # Skip the interpreter's shutdown: gRPC threads that still run would print tracebacks during it.
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
sys.exit(code)
