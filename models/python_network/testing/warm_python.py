"""Stands for a Python that has imported torch. The import takes seconds of every process that tests of modules start.

  PYTHON warm_python.py PROGRAM    writes PROGRAM, and serves its calls until the process that started this one ends

PROGRAM takes the arguments of PYTHON. Where the text of child.py is among them, a copy of this process runs it, with the
environment, the working directory, the open files and the process group of the caller, which ends as the copy does. Other
calls go to PYTHON itself. Ends with 77 if torch cannot be imported.
"""

import os

# As a worker starts PYTHON. LibTorch reads them once.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import contextlib
import ctypes
import fcntl
import json
import signal
import socket
import sys
import traceback

NO_TORCH = 77
CHILD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "child.py")
CALLER = """#!{python} -IS
import json, os, signal, socket, sys
with open({child!r}) as file:
    if file.read() not in sys.argv:
        os.execv({python!r}, [{python!r}, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r})
files = [0, 1, 2, *map(int, sys.argv[4:7])]
call = [os.getpgrp(), sys.argv[1:], dict(os.environ), os.getcwd()]
socket.send_fds(server, [json.dumps(call).encode()], files)
for file in files[3:]:
    os.close(file)
status = int(server.recv(99) or 1 << 8)
if os.WIFSIGNALED(status):
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.WEXITSTATUS(status))
"""


def become(files, group, arguments, environment, directory):
    """Runs the code of `-B -c CODE FILE FILE FILE ...`, which has the caller's open files."""
    os.setpgid(0, group)
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD, 500) for file in files]
    for file in files:
        os.close(file)
    for file, place in zip(moved, [0, 1, 2, *map(int, arguments[3:6])]):
        os.dup2(file, place)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv, sys.path[0] = arguments[1:2] + arguments[3:], ""
    exec(compile(arguments[2], "<string>", "exec"), {"__name__": "__main__"})


def answer(connection, message, files):
    """Starts a copy for a caller, and tells the caller how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    copy = os.fork()
    if copy == 0:
        connection.close()
        become(files, *json.loads(message))
        return
    for file in files:
        os.close(file)
    status = os.waitpid(copy, 0)[1]
    with contextlib.suppress(OSError):  # the caller was killed
        connection.send(b"%d" % status)


def main():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    try:
        import torch  # noqa: F401
    except (ImportError, OSError):
        sys.exit(NO_TORCH)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind("")  # the kernel chooses a name
    listener.listen()
    program = sys.argv[1]
    with open(program + ".new", "w") as file:
        file.write(CALLER.format(python=sys.executable, child=CHILD, address=listener.getsockname()))
    os.chmod(program + ".new", 0o700)
    os.rename(program + ".new", program)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who answer
    while True:
        connection, _ = listener.accept()
        message, files, _, _ = socket.recv_fds(connection, 1 << 20, 6)
        if os.fork() == 0:
            listener.close()
            try:
                answer(connection, message, files)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        connection.close()
        for file in files:
            os.close(file)


if __name__ == "__main__":
    main()
