#!/usr/bin/env python3
"""Runs the commands that a document shows, and compares what they print with what it says.

  run_documented.py DOCUMENT --programs DIR

A block is run where a comment, which readers do not see, stands before it:

  <!-- runs -->                      every line is a command and must end with 0
  <!-- runs, ends with 0 2 -->       the first must end with 0, the others with 2
  <!-- runs after `COMMAND` -->      COMMAND is run before, and is not shown

Where lines of a block begin with "$ ", they are the commands, and the others are what they print, to the letter; "..." on a
line of its own stands for any lines. Servers and workers are started in the background; their addresses take the place of
127.0.0.1:7070 and 127.0.0.1:9464. Everything happens in an empty directory with experiments/ and tests/documentation/files/*.
The quick/ specifications are cut to a few steps.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"^<!-- runs(?P<how>[^>]*?)-->\n```[a-z]*\n(?P<text>.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^```", re.M)
SECONDS = 600


class Runner:
    def __init__(self, root, programs, directory):
        self.directory = directory
        self.addresses = {}
        self.background = []
        self.failures = []
        self.commands = 0
        binaries = directory / ".bin"
        binaries.mkdir()
        for name in ("lengthwise", "lengthwise_server", "lengthwise_worker"):
            (binaries / name).symlink_to(programs[name])
        shutil.copytree(root / "experiments", directory / "experiments")
        for path in (directory / "experiments").rglob("quick/*.yaml"):
            path.chmod(0o644)
            text = re.sub(r"\bsteps: \d+", "steps: 5", path.read_text())
            path.write_text(re.sub(r"\bsequences: \d+", "sequences: 4", text))
        for path in (root / "tests/documentation/files").iterdir():
            shutil.copy(path, directory)
        self.environment = dict(
            os.environ,
            PATH=f"{binaries}:{os.environ['PATH']}",
            HOME=str(directory),
            LENGTHWISE_CONFIG="",
            LENGTHWISE_SERVER_BINARY=str(programs["lengthwise_server"]),
            LENGTHWISE_WORKER_BINARY=str(programs["lengthwise_worker"]),
            LC_ALL="C.UTF-8",
        )

    def start(self, command):
        """A server or a worker; of a server waits until it serves."""
        command = command.split(" #")[0]
        ready = self.directory / f"ready{len(self.background)}"
        if command.startswith("lengthwise_server"):
            command = re.sub(r" --listen \S+", "", command)
            command += f" --listen 127.0.0.1:0 --metrics_listen 127.0.0.1:0 --ready_file {ready}"
        log = open(self.directory / f"background{len(self.background)}.log", "wb")
        process = subprocess.Popen(["bash", "-c", "exec " + self.local(command)], cwd=self.directory, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.background.append(process)
        if not command.startswith("lengthwise_server"):
            return
        deadline = time.time() + SECONDS
        while not ready.exists() and process.poll() is None and time.time() < deadline:
            time.sleep(0.02)
        if not ready.exists():
            self.failures.append(f"{command}: {pathlib.Path(log.name).read_text()}")
            return
        api, metrics = ready.read_text().split()[:2]
        self.addresses = {"127.0.0.1:7070": api, "127.0.0.1:9464": metrics}
        self.environment["LENGTHWISE_SERVER"] = api

    def local(self, command):
        for documented, real in self.addresses.items():
            command = command.replace(documented, real)
        return command

    def run(self, command, code, expected):
        self.commands += 1
        if re.match(r"lengthwise_(server|worker)\b", command):
            return self.start(command)
        began = time.time()
        done = subprocess.run(["bash", "-c", self.local(command)], cwd=self.directory, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
                              check=False)
        printed = done.stdout.decode("utf-8", "replace")
        print(f"{time.time() - began:6.1f} s  {command}", flush=True)
        if done.returncode != code:
            self.failures.append(f"$ {command}\nended with {done.returncode} instead of {code}:\n{printed}")
        elif expected is not None and not same(expected, printed):
            self.failures.append(f"$ {command}\nis documented to print\n{expected}\nand prints\n{printed}")

    def stop(self):
        for process in reversed(self.background):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self.background):
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def same(expected, printed):
    pattern = "\n".join(r"(?:.*\n)*?.*" if line.strip() == "..." else re.escape(line.rstrip())
                        for line in expected.strip("\n").split("\n"))
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed.strip("\n").split("\n"))) is not None


def commands_of(text):
    """Pairs of a command and what it is to print; None where the block does not say."""
    lines = text.rstrip("\n").split("\n")
    if not any(line.startswith("$ ") for line in lines):
        return [(line, None) for line in lines if line.strip() and not line.startswith("#")]
    commands = []
    for line in lines:
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
    return [(command, "\n".join(printed)) for command, printed in commands]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path.cwd(), help="of the source tree")
    for name in ("lengthwise", "lengthwise_server", "lengthwise_worker"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    options = parser.parse_args()
    text = options.document.read_text()
    programs = {name: getattr(options, name).absolute() for name in ("lengthwise", "lengthwise_server", "lengthwise_worker")}
    blocks = list(BLOCK.finditer(text))
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as directory:
        runner = Runner(options.root.absolute(), programs, pathlib.Path(directory))
        try:
            for block in blocks:
                how = block["how"]
                codes = [int(code) for code in (re.search(r"ends with ([\d ]+)", how) or ["", "0"])[1].split()]
                for hidden in re.findall(r"after `([^`]+)`", how):
                    runner.run(hidden, 0, None)
                for index, (command, printed) in enumerate(commands_of(block["text"])):
                    runner.run(command, codes[min(index, len(codes) - 1)], printed)
        finally:
            runner.stop()
    for failure in runner.failures:
        print(f"FAILED {options.document}: {failure}")
    print(f"{options.document}: {runner.commands} commands in {len(blocks)} of {len(FENCE.findall(text)) // 2} blocks, "
          f"{len(runner.failures)} failed")
    return 1 if runner.failures or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
