"""Stands for a Python that has imported torch, or what `lengthwise plot` needs. The imports take seconds of every process
that tests start.

  PYTHON warm_python.py PROGRAM [MODULE...]    imports the modules, by default torch, writes PROGRAM, and serves its calls
                                               until the process that started this one ends

PROGRAM takes the arguments of PYTHON. Where the text of child.py is among them, and for `-m lengthwise`, a copy of this
process runs it, with the environment, the working directory and the open files of the caller, which ends as the copy does.
A copy for child.py is in the caller's process group, too. For `-m lengthwise` with other settings of Python and Matplotlib
than this process was started with, the caller fails. Other calls go to PYTHON itself. Ends with 77 if a module cannot be
imported.
"""

import os

# As a worker starts PYTHON. LibTorch reads them once.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import runpy
import select
import signal
import socket
import sys
import traceback

NOT_INSTALLED = 77
SETTINGS = ("PYTHON", "MPL", "MATPLOTLIB")
CHILD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "child.py")
CALLER = """#!{python} -IS
import json, os, signal, socket, sys
with open({child!r}) as file:
    is_child = file.read() in sys.argv
settings = {{name: value for name, value in os.environ.items() if name.startswith({names}) and value}}
if not is_child and sys.argv[1:3] != ["-m", "lengthwise"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
if not is_child and settings != {settings}:
    sys.exit(f"warm_python.py was started with other settings than {{settings}}")
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r})
files = [0, 1, 2, *map(int, sys.argv[4:7] if is_child else [])]
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
    """Runs `-B -c CODE FILE FILE FILE ...` or `-m MODULE ...`, which has the caller's open files."""
    is_module = arguments[0] == "-m"
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD, 500) for file in files]
    for file in files:
        os.close(file)
    for file, place in zip(moved, [0, 1, 2, *map(int, [] if is_module else arguments[3:6])]):
        os.dup2(file, place)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    if is_module:
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    os.setpgid(0, group)
    sys.argv, sys.path[0] = arguments[1:2] + arguments[3:], ""
    try:
        exec(compile(arguments[2], "<string>", "exec"), {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def answer(connection, message, files):
    """Starts a copy for a caller, and tells the caller how it ended. Returns in the copy alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    copy = os.fork()
    if copy == 0:
        connection.close()
        become(files, *json.loads(message))
        return
    for file in files:
        os.close(file)
    waiting, end = select.poll(), os.pidfd_open(copy)
    for file in (connection.fileno(), end):
        waiting.register(file, select.POLLIN)
    if end not in dict(waiting.poll()):
        os.kill(copy, signal.SIGTERM)  # the caller was stopped
    status = os.waitpid(copy, 0)[1]
    with contextlib.suppress(OSError):  # the caller was killed
        connection.send(b"%d" % status)
    os._exit(0)


def main():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    program, *modules = sys.argv[1:]
    settings = {name: value for name, value in os.environ.items() if name.startswith(SETTINGS) and value}
    try:
        for module in modules or ["torch"]:
            importlib.import_module(module)
    except (ImportError, OSError):
        sys.exit(NOT_INSTALLED)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind("")  # the kernel chooses a name
    listener.listen()
    with open(program + ".new", "w") as file:
        file.write(
            CALLER.format(
                python=sys.executable, child=CHILD, names=SETTINGS, settings=settings, address=listener.getsockname()
            )
        )
    os.chmod(program + ".new", 0o700)
    os.rename(program + ".new", program)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who answer
    gc.freeze()  # its pages stay common to all copies
    while True:
        connection, _ = listener.accept()
        message, files, _, _ = socket.recv_fds(connection, 1 << 20, 6)
        if os.fork() == 0:
            listener.close()
            answer(connection, message, files)
            return
        connection.close()
        for file in files:
            os.close(file)


if __name__ == "__main__":
    main()
