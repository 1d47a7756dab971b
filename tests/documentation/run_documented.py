#!/usr/bin/env python3
"""Runs the commands that a document shows and compares their output with the document.

  run_documented.py DOCUMENT --lengthwise PROGRAM --lengthwise_server PROGRAM --lengthwise_worker PROGRAM [--rewrite]

Before every block stands a comment, which readers do not see:

  <!-- runs -->                      every line is a command and must end with 0
  <!-- runs, ends with 0 2 -->       the first must end with 0, the others with 2
  <!-- runs after `COMMAND` -->      COMMAND runs first and is not shown; there may be several
  <!-- runs, other numbers -->       the output has other numbers than the document, and columns of other widths
  <!-- runs, within 60 s -->         repeats each command for up to 60 s, until it prints what it should
  <!-- runs, few steps -->           from here on specifications, of experiments/ and of the document, take a few steps, like
                                     those in quick/
  <!-- input of `COMMAND` -->        COMMAND runs with the block as its standard input, and must end with 0
  <!-- printed by `COMMAND`, numbers of PROCESSOR -->
                                     COMMAND, in a directory with experiments/ unchanged, prints the block: exactly on such
                                     a processor, elsewhere with other numbers, from a few steps of the document's
                                     specifications; --rewrite inserts the output of this run
  <!-- not run: WHY -->

If lines of a block begin with "$ ", they are the commands, and the other lines are their exact output; "..." on a
line of its own stands for any lines. A command that ends in "&" runs in the background and must run until the end of
the document. The addresses of background servers, workers and Prometheus replace 127.0.0.1:7070 (API),
127.0.0.1:9464 (metrics) and 127.0.0.1:9090 (Prometheus). Exported variables apply to all later commands. Everything
runs in an empty directory with bazel-bin/, deploy/, docs/*.yaml, examples/ and experiments/. The quick/ specifications are cut
to a few steps of small networks, the others beside them are evaluated and stored more often, and Prometheus scrapes each second.

Ends with 1 if a command or its output is not as documented, and with 77 before the first command if a program that the
document runs in the background is not installed.
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

BLOCK = re.compile(r"^(?:<!-- (?P<mark>(?:(?!-->).)*?) -->\n)?```[a-z]*\n(?P<text>.*?)^```$", re.M | re.S)
BACKGROUND = re.compile(r"(?P<command>.*?)\s*&\s*(#.*)?$")
EXPORT = re.compile(r"export (?P<settings>(\w+=\S+\s*)+)(#.*)?$")
PRINTED = re.compile(r"`(?P<command>[^`]+)`, numbers of (?P<processor>.+)")
NUMBER = re.compile(r"((?<=\s)-)?\d[\d.,:]*(e[-+]\d+)?|[▁-█┊]+")
CURVE = re.compile(r"[⠀-⣿]")
SECONDS = 600
# Specifications are cut to at most these.
FEW = {
    "steps": 5, "warmup_steps": 1, "batch_size": 8, "sequences": 4, "training_examples": 4, "blocks": 2, "d_model": 32, "d_ff": 64,
}
# Drawing a trial's thousands of puzzles would take longer than its steps.
FEW_PUZZLES = {
    "protocol: latin_square\n": "protocol: latin_square\ntasks: {name: latin_square, training_puzzles: 256}\n",
    "training: {": "training: {examples: 256, ",
}
NOT_INSTALLED = 77


class Runner:
    def __init__(self, root, programs, directory):
        self.directory = directory
        self.addresses = {}
        self.background = []
        self.warmed = []
        self.stand_ins = {}  # by variable
        self.failures = []
        self.commands = 0
        binaries = directory / ".bin"
        binaries.mkdir()
        for name in ("lengthwise", "lengthwise_server", "lengthwise_worker"):
            (binaries / name).symlink_to(programs[name])
            built = directory / "bazel-bin" / name.replace("lengthwise_", "").replace("lengthwise", "client")
            built.mkdir(parents=True)
            (built / name).symlink_to(programs[name])
        self.checkout = directory / ".checkout"
        shutil.copytree(root / "experiments", self.checkout / "experiments")
        shutil.copytree(root / "experiments", directory / "experiments")
        shutil.copytree(root / "examples", directory / "examples")
        self.cut("experiments/**/quick/*.yaml")
        for path in (directory / "experiments").glob("*.yaml"):
            path.chmod(0o644)
            text = re.sub(r"\bevery_steps: \d+", "every_steps: 5", path.read_text())
            path.write_text(re.sub(r"\bcheckpoint_every_steps: \d+", "checkpoint_every_steps: 10", text))
        shutil.copytree(root / "deploy", directory / "deploy")
        for path in (directory / "deploy").rglob("*.yml"):
            path.chmod(0o644)
            path.write_text(re.sub(r"^  (scrape|evaluation)_interval: \d+s", r"  \1_interval: 1s", path.read_text(), flags=re.M))
        # //tests/monitoring:prometheus_rules_test runs all its cases.
        cases = directory / "deploy/prometheus/rules_test.yml"
        cases.write_text("  - name:".join(cases.read_text().split("  - name:")[:3]))
        (directory / "docs").mkdir()
        for path in (root / "docs").glob("*.yaml"):
            shutil.copy(path, directory / "docs")
        self.environment = dict(
            os.environ,
            PATH=f"{binaries}:{os.environ['PATH']}",
            HOME=str(directory),
            LENGTHWISE_CONFIG="",
            LENGTHWISE_SERVER_BINARY=str(programs["lengthwise_server"]),
            LENGTHWISE_WORKER_BINARY=str(programs["lengthwise_worker"]),
            LC_ALL="C.UTF-8",
            # One thread, or one worker: the trials are small, and other tests need the processors.
            SLURM_CPUS_PER_TASK="1",
        )
        if python := os.environ.get("LENGTHWISE_TEST_PYTHON"):
            # The Python that the command line starts.
            sys.path.insert(0, str(root / "tests" / "python"))
            import installed_package

            site = installed_package.installed(python, root, directory / ".build")
            self.environment.update(LENGTHWISE_PYTHON=python, PYTHONPATH=str(site))
            if shared := installed_package.shared(python):
                self.environment["MPLCONFIGDIR"] = str(shared / "matplotlib")  # has the list of the machine's fonts

    def warm(self, root, commands):
        """Gives a document's many commands in Python, and its networks, a Python that has imported what they need."""
        if "LENGTHWISE_PYTHON" not in self.environment:
            return
        import warm

        for variable, python, modules, settings, kinds, many in (
            ("LENGTHWISE_PYTHON", self.environment["LENGTHWISE_PYTHON"], warm.OF_COMMANDS, warm.SETTINGS,
             "analyze|export|plot|report", 3),
            ("LENGTHWISE_PYTHON_NETWORKS", "/usr/bin/python3", warm.TORCH, {}, "check", 1),
        ):
            program = self.directory / f".{variable.lower()}"
            if sum(bool(re.match(rf"lengthwise ({kinds}) ", command)) for command in commands) < many:
                continue
            if process := warm.start(python, root, program, self.environment | settings, modules):
                self.warmed.append(process)
                self.stand_ins[variable] = {python: str(program)}
                self.environment[variable] = str(program)

    def missing(self, commands):
        """Returns the programs of background commands that are not installed."""
        programs = {found["command"].split()[0] for command in commands if (found := BACKGROUND.match(command))}
        return sorted(one for one in programs
                      if not (self.directory / one).exists() and not shutil.which(one, path=self.environment["PATH"]))

    def cut(self, specifications):
        """Cuts specifications to a few steps of a few sequences, and networks to small ones."""
        for path in self.directory.glob(specifications):
            path.chmod(0o644)
            text = path.read_text().replace("epochs:", "steps:")
            for name, few in FEW.items():
                text = re.sub(rf"(?<=\b{name}: )\d+", lambda given, few=few: str(min(int(given[0]), few)), text)
            # Where a protocol's numbers hold otherwise. Files have as many sequences of a length as they have.
            for section, name in {"training": "batch_size", "evaluation": "sequences"}.items():
                if not re.search(rf"\b{name}:", text) and "train:" not in text:
                    text = text.replace(f"{section}: {{", f"{section}: {{{name}: {FEW[name]}, ")
            if "protocol: latin_square" in text and "tasks:" not in text:
                for given, few in FEW_PUZZLES.items():
                    text = text.replace(given, few)
            path.write_text(text)

    def start(self, command):
        """Starts a server, a worker or Prometheus, and waits until it serves."""
        ready = self.directory / f"ready{len(self.background)}"
        log = self.directory / f"background{len(self.background)}.log"
        if command.startswith("lengthwise_server"):
            served = [
                given[1].replace("0.0.0.0", "127.0.0.1") if (given := re.search(rf" --{flag} (\S+)", command)) else default
                for flag, default in {"listen": "127.0.0.1:7070", "metrics_listen": "127.0.0.1:9464"}.items()
            ]
            command = re.sub(r" --(metrics_)?listen \S+", "", command)
            command += f" --listen 127.0.0.1:0 --metrics_listen 127.0.0.1:0 --ready_file {ready}"
        if command.startswith("prometheus"):
            command = re.sub(r"(--web.listen-address=)\S+", r"\g<1>127.0.0.1:0", command)
            for path in (self.directory / "deploy/prometheus").glob("*.yml"):
                path.write_text(self.local(path.read_text()))
        with open(log, "wb") as file:
            process = subprocess.Popen(["bash", "-c", "exec " + self.local(command)], cwd=self.directory,
                                       env=self.environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self.background.append((command, process, log))
        if command.startswith("lengthwise_worker"):
            return
        deadline = time.time() + SECONDS
        while process.poll() is None and time.time() < deadline:
            if ready.exists():
                self.addresses.update(zip(served, ready.read_text().split()))
                self.environment["LENGTHWISE_SERVER"] = self.addresses[served[0]]
                return
            said = log.read_text()
            if "Server is ready to receive web requests" in said:
                self.addresses["127.0.0.1:9090"] = re.search(r'msg="Listening on" address=(\S+)', said)[1]
                return
            time.sleep(0.02)
        self.failures.append(f"{command}: {log.read_text()}")

    def local(self, text):
        for documented, real in self.addresses.items():
            text = text.replace(documented, real)
        return text

    def documented(self, text):
        for documented, real in self.addresses.items():
            text = text.replace(real, documented)
        return text

    def run(self, command, code, expected, other_numbers=False, seconds=0, given=""):
        self.commands += 1
        if background := BACKGROUND.match(command):
            return self.start(background["command"])
        if export := EXPORT.match(command):
            for name, value in (one.split("=", 1) for one in self.local(export["settings"]).split()):
                self.environment[name] = self.stand_ins.get(name, {}).get(value, value)
            return None
        began = time.time()
        while True:
            try:
                done = subprocess.run(["bash", "-c", self.local(command)], cwd=self.directory, env=self.environment,
                                      input=given.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
                                      check=False)
            except subprocess.TimeoutExpired:
                return self.failures.append(f"$ {command}\ndid not end within {SECONDS} s")
            printed = self.documented(done.stdout.decode("utf-8", "replace"))
            as_said = expected is None or same(expected, printed, other_numbers)
            if (done.returncode == code and as_said) or time.time() > began + seconds:
                break
            time.sleep(max(0.2, (time.time() - began) / 20))
        print(f"{time.time() - began:6.1f} s  {command}", flush=True)
        if done.returncode != code:
            self.failures.append(f"$ {command}\nended with {done.returncode} instead of {code}:\n{printed}")
        elif not as_said:
            self.failures.append(f"$ {command}\nshould print\n{expected}\nbut prints\n{printed}")

    def printed(self, command):
        """Returns a command's output in a checkout; None if it fails."""
        self.commands += 1
        began = time.time()
        done = subprocess.run(["bash", "-c", command], cwd=self.checkout, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        print(f"{time.time() - began:6.1f} s  {command}", flush=True)
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode == 0:
            return text
        self.failures.append(f"$ {command}\nended with {done.returncode} instead of 0:\n{text}")
        return None

    def stop(self):
        for command, process, log in self.background:
            if process.poll() is not None:
                self.failures.append(f"{command} &\nended with {process.returncode}:\n{log.read_text()}")
            process.send_signal(signal.SIGTERM)
        for _, process, _ in reversed(self.background):
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
        for process in self.warmed:
            process.kill()
            process.wait()


def processor():
    """Identifies the processors with bit-identical numbers: the maker and the vector instructions, as LibTorch selects
    them.
    """
    about = pathlib.Path("/proc/cpuinfo").read_text()
    vendor = re.search(r"^vendor_id\s*: (\S+)", about, re.M)
    flags = set((re.search(r"^flags\s*: (.*)", about, re.M) or ["", ""])[1].split())
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags
    return f"{vendor[1] if vendor else 'unknown'} {'AVX-512' if wide else 'AVX2' if 'avx2' in flags else 'SSE'}"


def as_block(printed):
    """Returns output as it stands in a document: without trailing spaces."""
    return "\n".join(line.rstrip() for line in printed.strip("\n").split("\n"))


def without_numbers(text):
    """Removes numbers, the widths of columns, which depend on them, and a trailing chart."""
    text = text[:text.rfind("\n", 0, chart.start()) + 1].rstrip("\n") if (chart := CURVE.search(text)) else text
    return re.sub(r" +", " ", re.sub(r"─+", "─", NUMBER.sub("0", text)))


def same(expected, printed, other_numbers):
    if other_numbers:
        expected, printed = without_numbers(expected), without_numbers(printed)
    pattern = "\n".join(r"(?:.*\n)*?.*" if line.strip() == "..." else re.escape(line.rstrip())
                        for line in expected.strip("\n").split("\n"))
    return re.fullmatch(pattern, as_block(printed)) is not None


def commands_of(text):
    """Returns pairs of a command and its expected output; None if the block does not show it."""
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
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path.cwd(), help="root of the source tree")
    for name in ("lengthwise", "lengthwise_server", "lengthwise_worker"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--rewrite", action="store_true",
                        help="run only \"input of\" and \"printed by\" commands, and insert the output of the latter")
    options = parser.parse_args()
    text = options.document.read_text()
    programs = {name: getattr(options, name).absolute() for name in ("lengthwise", "lengthwise_server", "lengthwise_worker")}
    blocks = list(BLOCK.finditer(text))
    rewritten = text
    run = 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as directory:
        runner = Runner(options.root.absolute(), programs, pathlib.Path(directory))
        commands = [command for block in blocks if (block["mark"] or "").startswith("runs")
                    for command, _ in commands_of(block["text"])]
        if not options.rewrite and (missing := runner.missing(commands)):
            print(f"{options.document} runs {', '.join(missing)}, which is not installed; tests/run.sh installs it")
            return NOT_INSTALLED
        runner.warm(options.root.absolute(), commands)
        try:
            for block in blocks:
                kind, how = re.match(r"(runs|not run: .|input of|printed by|)(.*)", block["mark"] or "", re.S).groups()
                if options.rewrite and kind not in ("input of", "printed by"):
                    continue
                if not kind:
                    line = text[:block.start()].count("\n") + 1
                    runner.failures.append(f"line {line}: the block needs a comment on how it runs, or why it does not")
                if not kind or kind.startswith("not run"):
                    continue
                run += 1
                if kind == "input of":
                    runner.run(re.match(r" `([^`]+)`", how)[1], 0, None, given=block["text"])
                    continue
                if kind == "printed by":
                    shown = PRINTED.match(how.strip())
                    other_numbers = shown["processor"] != processor()
                    if other_numbers and not options.rewrite:
                        runner.cut("*.yaml")
                    printed = runner.printed(shown["command"])
                    if options.rewrite and printed is not None:
                        mark = f"<!-- printed by `{shown['command']}`, numbers of {processor()} -->\n"
                        rewritten = rewritten.replace(block[0], f"{mark}```\n{as_block(printed)}\n```")
                    elif printed is not None and not same(block["text"], printed, other_numbers):
                        runner.failures.append(f"$ {shown['command']}\nshould print\n{block['text']}\nbut prints\n"
                                               f"{printed}\ndocs/refresh_numbers.sh inserts new numbers")
                    continue
                if "few steps" in how:
                    runner.cut("experiments/*.yaml")
                    runner.cut("*.yaml")
                codes = [int(code) for code in (re.search(r"ends with ([\d ]+)", how) or ["", "0"])[1].split()]
                for hidden in re.findall(r"after\s+`([^`]+)`", how):
                    runner.run(hidden, 0, None)
                seconds = int((re.search(r"within (\d+) s", how) or ["", "0"])[1])
                for index, (command, printed) in enumerate(commands_of(block["text"])):
                    runner.run(command, codes[min(index, len(codes) - 1)], printed, "other numbers" in how, seconds)
        finally:
            runner.stop()
    if rewritten != text:
        options.document.write_text(rewritten)
    for failure in runner.failures:
        print(f"FAILED {options.document}: {failure}")
    print(f"{options.document}: {runner.commands} commands in {run} of {len(blocks)} blocks, {len(runner.failures)} failed")
    return 1 if runner.failures or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
