"""Attacks both clients with answers of a real server in which something is changed: a field, a number, some bytes, or the
status in place of an answer. The package then raises its own errors, `lengthwise` and `python -m lengthwise` print one,
nothing crashes, takes much memory or sends control characters to a terminal.

$CASES is the number of mutated answers for the package, $CASES_OF_PROGRAM that for the program; $FIRST_CASE repeats one.
"""
import contextlib
import io
import itertools
import os
import pathlib
import random
import re
import resource
import struct
import subprocess
import sys
import threading
import traceback
import unittest
import unittest.mock
import urllib.parse
import urllib.request
from concurrent import futures

# gRPC's threads would write into the output of the program between fork and exec.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
import grpc
import service
from lengthwise import command_line, connection

lengthwise = service.lengthwise

CASES = int(os.environ.get("CASES", "400"))
CASES_OF_PROGRAM = int(os.environ.get("CASES_OF_PROGRAM", "120"))
FIRST_CASE = int(os.environ.get("FIRST_CASE", "0"))
# Far above what the answers need, far below what a number in an answer may ask for.
MEMORY = 2 << 30
NUMBERS = (0, 1, 2, 99, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
REALS = (0.0, -1.0, 1e-320, 1e308, float("inf"), float("-inf"), float("nan"))
TEXTS = (b"", b"\x1b]0;title\x07", b"\xff\xfe", b"\x00", b"..", b"/", b"%s%n", b"experiments/", b"\xe2\x80\xae", b"9" * 400, b"x" * 70000)
# Of those that do not mean that a later attempt may succeed, which is made for minutes.
CODES = [getattr(grpc.StatusCode, name) for name in (
    "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "FAILED_PRECONDITION", "OUT_OF_RANGE",
    "UNIMPLEMENTED", "DATA_LOSS", "UNAUTHENTICATED",
)]  # fmt: skip
STREAMS = {"WatchExperiment", "DownloadModel", "QueryAnalyses", "QueryAttentionMaps", "QueryProjections"}


def varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def split(data: bytes) -> "list[tuple[int, int, bytes]] | None":
    """Number, wire type and value of each field; None if these bytes are no message."""

    def number(at: int) -> "tuple[int, int]":
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128 or shift > 63:
                return value, at

    found, at = [], 0
    try:
        while at < len(data):
            tag, at = number(at)
            kind, first = tag & 7, at
            if kind == 0:
                _, at = number(at)
            elif kind == 2:
                size, first = number(at)
                at = first + size
            else:
                at += {1: 8, 5: 4}[kind]
            if at > len(data) or tag < 8:
                return None
            found.append((tag >> 3, kind, data[first:at]))
    except (IndexError, KeyError):
        return None
    return found


def join(fields: "list[tuple[int, int, bytes]]") -> bytes:
    return b"".join(
        varint(number << 3 | kind) + (varint(len(value)) if kind == 2 else b"") + value for number, kind, value in fields
    )


class Mutator:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def bytes(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randint(0, len(changed))
            more = self.random.choice([b"", self.random.randbytes(3), b"\xff" * 8, bytes(4)])
            changed[at : at + self.random.randint(0, 8)] = more
        return bytes(changed)

    def message(self, data: bytes) -> bytes:
        """Of its fields, however deep, one has another value, is missing, or is there many times."""
        fields = split(data)
        if not fields or self.random.random() < 0.1:
            return self.bytes(data)
        at = self.random.randrange(len(fields))
        number, kind, value = fields[at]
        what = self.random.random()
        if what < 0.1:
            del fields[at]
        elif what < 0.2:
            fields[at:at] = [fields[at]] * self.random.choice([1, 2, 200])
        elif what < 0.25:
            fields[at] = (self.random.randint(1, 30), kind, value)
        else:
            fields[at] = (number, kind, self._value(kind, value))
        return join(fields)

    def _value(self, kind: int, value: bytes) -> bytes:
        if kind == 0:
            return varint(self.random.choice(NUMBERS))
        if kind == 1:
            return struct.pack("<d", self.random.choice(REALS))
        if kind == 5:
            return struct.pack("<f", self.random.choice((0.0, -1.0, float("inf"), float("nan"))))
        what = self.random.random()
        if what < 0.7 and split(value):
            return self.message(value)
        if what < 0.8 and len(value) >= 8:  # of packed doubles or lengths
            at = self.random.randrange(len(value) // 8) * 8
            return value[:at] + struct.pack("<d", self.random.choice(REALS)) + value[at + 8 :]
        return self.random.choice([*TEXTS, self.bytes(value), value[: len(value) // 2]])


class LongTraining:
    """Lets every experiment have been trained on lengths up to 10^8, in place of a Mutator."""

    _RANGE = b"\x08\x01\x10"  # of lengths from 1
    random = unittest.mock.Mock(random=lambda: 1.0)  # changes each answer

    def __init__(self) -> None:
        self.changed = 0

    def message(self, data: bytes) -> bytes:
        if data == self._RANGE + b"\x04":
            self.changed += 1
            return self._RANGE + varint(10**8)
        fields = split(data) if self._RANGE in data else None
        if fields is None:
            return data
        return join([(number, kind, self.message(value) if kind == 2 else value) for number, kind, value in fields])


# Runs a command and writes the most memory that it had, in MiB, at the end of its errors.
MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10, file=sys.stderr)
sys.exit(code)
"""


class Proxy(grpc.GenericRpcHandler):
    """Passes calls to a real server and keeps its answers; `attack` lets it give these, with one of them changed."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._answers: dict[tuple[str, bytes], list[bytes]] = {}
        self._of_method: dict[str, list[bytes]] = {}
        self._lock = threading.Lock()
        self._mutator: Mutator | LongTraining | None = None
        self._changed = -1
        self.served = 0
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self) -> None:
        self._server.stop(None).wait()
        self._channel.close()

    def attack(self, mutator: "Mutator | LongTraining | None", changed: int = -1) -> None:
        """Changes answer number `changed`; None: no answer."""
        with self._lock:
            self._mutator, self._changed, self.served = mutator, changed, 0

    def _recorded(self, method: str, request: bytes) -> "list[bytes]":
        name = method.rpartition("/")[2]
        if self._mutator is not None:
            return self._answers.get((method, request), self._of_method.get(method, []))
        stub = (self._channel.unary_stream if name in STREAMS else self._channel.unary_unary)(method)
        answers = list(stub(request)) if name in STREAMS else [stub(request)]
        self._answers[method, request] = self._of_method[method] = answers
        return answers

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        method = details.method

        def answers(request: bytes, context: grpc.ServicerContext):
            try:
                recorded = self._recorded(method, request)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())
            for answer in recorded:
                with self._lock:
                    number, self.served = self.served, self.served + 1
                if self._mutator is not None and number == self._changed:
                    if self._mutator.random.random() < 0.1:
                        details = self._mutator.random.choice([answer, self._mutator.bytes(b"\x08\x03\x12\x01x\x1a\x02\x0a\x00")])
                        context.set_trailing_metadata((("grpc-status-details-bin", details),))
                        context.abort(self._mutator.random.choice(CODES), "no \x1b[31m" * self._mutator.random.randint(0, 2))
                    answer = self._mutator.message(answer)
                yield answer
            if not recorded:
                context.abort(grpc.StatusCode.NOT_FOUND, "there is no such thing")

        if method.rpartition("/")[2] in STREAMS:
            return grpc.unary_stream_rpc_method_handler(answers)
        return grpc.unary_unary_rpc_method_handler(lambda request, context: next(answers(request, context)))


def controls(text: str) -> "list[str]":
    """Characters that a terminal would obey, or show in another order."""
    return [one for one in text if one not in "\n\t" and (ord(one) < 32 or 127 <= ord(one) < 160 or one in "\u202e\u2066")]


class MutatedAnswersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = service.Server()
        cls.proxy = Proxy(cls.server.address)
        with lengthwise.Client(cls.server.address) as client:
            submitted = client.submit(service.specification("attacked"))
            cls.experiment, cls.trial = submitted.id, submitted.trials()[3].id
        service.Worker(cls.server).run_all()
        # A call that the server asks to repeat is repeated for a short time.
        cls.enterClassContext(unittest.mock.patch.object(connection, "_PATIENCE_SECONDS", 0.2))

    @classmethod
    def tearDownClass(cls):
        cls.proxy.close()
        cls.server.kill()

    def operations_of_package(self, directory):
        """What a notebook does with an experiment and its trials; each returns text that it would show."""
        name, trial = self.experiment, f"{self.experiment}/3"

        def of_experiment(look):
            def call(client):
                return look(client.experiment(name))

            return call

        def of_trial(look):
            def call(client):
                return look(client.trial(trial))

            return call

        def about(one):
            return f"{one!r} {one._repr_html_()} {one.name} {one.specification} {one.create_time} {one.end_time}"

        def command(*arguments):
            def call(client):
                out, err = io.StringIO(), io.StringIO()
                code = command_line.main([*arguments, "--server", client.server], out, err)
                self.assertIn(code, (0, 1, 2, 3), arguments)
                self.assertEqual(err.getvalue().startswith("lengthwise: ") or code == 0, True, err.getvalue())
                return out.getvalue() + err.getvalue()

            return call

        numbers = itertools.count()
        return [
            lambda client: "".join(map(about, client.experiments())),
            lambda client: str(client.validate(service.specification("attacked"))),
            lambda client: about(client.submit(service.specification("attacked"), request_id="again")),
            of_experiment(lambda one: about(one) + str(one.counts)),
            of_experiment(lambda one: "".join(about(trial) + str(trial.provenance) for trial in one.trials())),
            of_experiment(lambda one: str(list(one.watch(timeout=10)))),
            of_experiment(lambda one: about(one.wait(timeout=10))),
            of_experiment(lambda one: str(one.results())),
            of_experiment(lambda one: str(one.results(all=True))),
            of_experiment(lambda one: str(one.trial_table())),
            of_experiment(lambda one: str(one.accuracies(intervals=True))),
            of_experiment(lambda one: str(one.seconds_to_accuracy(0.5))),
            of_experiment(lambda one: str(one.answer_errors())),
            of_experiment(lambda one: str(one.losses())),
            of_experiment(lambda one: one.export("csv", directory / str(next(numbers))).name),
            of_trial(lambda one: about(one) + str((one.seen_accuracy, one.training_seconds, one.start_time))),
            of_trial(lambda one: str(one.losses())),
            of_trial(lambda one: str(one.attention_maps())),
            of_trial(lambda one: str(one.projections())),
            of_trial(lambda one: str(one.sequence_scores())),
            of_trial(lambda one: str(one.noise_accuracies())),
            of_trial(lambda one: str(one.model())),
            command("compare", name, name),
            command("compare", name, name, "--output", "json"),
            command("analyze", "noise", name),
            command("plot", name, "--figure", "accuracy_by_length", "--output", "json"),
            command("plot", name, "--figure", "loss", "--output", "json"),
            of_experiment(lambda one: one.report(directory / f"{next(numbers)}.html").name),
        ]

    def test_package_raises_its_own_errors(self):
        operations = self.operations_of_package(service.new_directory())
        with lengthwise.Client(self.proxy.address, timeout=30) as client, contextlib.redirect_stdout(io.StringIO()):
            counts = []
            for one in operations:
                self.proxy.served = 0
                with contextlib.suppress(lengthwise.LengthwiseError):
                    one(client)
                counts.append(self.proxy.served)
            self.assertTrue(all(counts), counts)
            soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
            resource.setrlimit(resource.RLIMIT_DATA, (2 * MEMORY, hard))
            self.addCleanup(resource.setrlimit, resource.RLIMIT_DATA, (soft, hard))
            refused = 0
            foreign = []
            for case in range(FIRST_CASE, FIRST_CASE + CASES):
                mutator = Mutator(f"package {case}")
                # The last one takes a second.
                number = -1 if case % 400 == 399 else case % (len(operations) - 1)
                self.proxy.attack(mutator, mutator.random.randrange(counts[number]))
                try:
                    shown = operations[number](client)
                    self.assertEqual(controls(shown), [], f"case {case}")
                except (lengthwise.LengthwiseError, TimeoutError) as error:
                    refused += 1
                    self.assertEqual(controls(str(error)), [], f"case {case}")
                except Exception as error:  # noqa: BLE001  which one is the question
                    where = [one for one in traceback.extract_tb(error.__traceback__) if "lengthwise" in one.filename][-1]
                    foreign.append(f"case {case}: {error!r} at {where.filename}:{where.lineno}")
        self.assertEqual(foreign, [], "\n".join(foreign))
        self.assertGreaterEqual(refused, CASES // 20, "hardly an answer was wrong")

    def test_program_ends_with_an_error_of_its_own(self):
        name, trial = self.experiment, f"{self.experiment}/3"
        directory = service.new_directory()
        specification = directory / "attacked.json"
        specification.write_text(lengthwise.client.json.dumps(service.specification("attacked")))
        commands = [
            ["list"], ["list", "--output", "json"], ["show", name], ["show", trial], ["show", trial, "--output", "json"],
            ["results", name], ["results", name, "--output", "csv"], ["results", name, "--output", "json"],
            ["results", trial], ["watch", name], ["logs", trial], ["workers"], ["storage"], ["doctor"],
            ["attention", trial], ["submit", str(specification)], ["retry", name],
        ]  # fmt: skip

        limit = ["bash", "-c", f'ulimit -d {MEMORY >> 10}; exec "$@"', "bash"]

        def run(arguments):
            return subprocess.run(
                [*limit, str(service.ROOT / service.CLIENT), *arguments, "--server", self.proxy.address],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
                env={**service.ENVIRONMENT, "HOME": str(directory)},
            )  # fmt: skip

        counts = []
        for arguments in commands:
            self.proxy.attack(None)
            run(arguments)
            counts.append(self.proxy.served)
        known = [number for number, count in enumerate(counts) if count > 0]
        self.assertGreater(len(known), 12, counts)
        refused = 0
        for case in range(FIRST_CASE, FIRST_CASE + CASES_OF_PROGRAM):
            mutator = Mutator(f"program {case}")
            number = known[case % len(known)]
            self.proxy.attack(mutator, mutator.random.randrange(counts[number]))
            ended = run(commands[number])
            output = (ended.stdout + ended.stderr).decode(errors="surrogateescape")
            what = f"case {case}, {commands[number]}, code {ended.returncode}: {output[-2000:]!r}"
            self.assertIn(ended.returncode, (0, 1, 2, 3), what)
            self.assertEqual(controls(output), [], what)
            if ended.returncode != 0:
                refused += 1
                self.assertTrue(output.strip(), what)
        self.assertGreaterEqual(refused, CASES_OF_PROGRAM // 20, "hardly an answer was wrong")

    def test_long_training_takes_no_memory(self):
        directory = service.new_directory()
        server = ["--server", self.proxy.address]
        program = [str(service.ROOT / service.CLIENT)]
        package = [sys.executable, "-m", "lengthwise"]
        notebook = (
            "import lengthwise, sys; client = lengthwise.Client(sys.argv[1]); one = client.experiment(sys.argv[2])\n"
            "for shown in (one, one.results(all=True), one.trial_table(), one.accuracies(), *one.trials()):\n"
            "    print(shown, getattr(shown, '_repr_html_', str)())"
        )
        name = self.experiment
        # Each with the most MiB that it may have. One byte for each length would be a hundred more.
        commands = [
            (100, [*program, "results", name, *server]),
            (100, [*program, "results", name, "--output", "json", *server]),
            (100, [*program, "show", name, *server]),
            (100, [*program, "watch", name, *server]),
            (400, [*package, "compare", name, name, *server]),
            (400, [*package, "report", name, "-o", str(directory / "report.html"), *server]),
            (400, [*package, "plot", name, "--figure", "accuracy_by_length", "-o", str(directory / "a.svg"), *server]),
            (400, [sys.executable, "-c", notebook, self.proxy.address, name]),
        ]
        mutator = LongTraining()
        self.addCleanup(self.proxy.attack, None)
        for attack in (None, mutator):
            self.proxy.attack(attack, unittest.mock.ANY)
            for most, command in commands:
                ended = subprocess.run(
                    [sys.executable, "-c", MEASURE, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
                    env={**service.ENVIRONMENT, "HOME": str(directory)},
                )  # fmt: skip
                self.assertEqual(ended.returncode, 0, f"{command}: {ended.stderr}")
                self.assertLess(int(ended.stderr.split()[-1]), most, command)
            self.assertLess(self.memory_of_web_page(), 400)
        self.assertGreater(mutator.changed, 20)

    def memory_of_web_page(self):
        """The most memory of `lengthwise web`, in MiB, after it has shown the experiment."""
        web = subprocess.Popen(
            [sys.executable, "-m", "lengthwise", "web", "--listen", "127.0.0.1:0", "--server", self.proxy.address],
            stdout=subprocess.PIPE, env=service.ENVIRONMENT, text=True,
        )  # fmt: skip
        try:
            page = next(found[0] for line in web.stdout if (found := re.search(r"http://\S+token=\S+", line)))
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            browser.open(page, timeout=service.DEADLINE)
            of_experiment = urllib.parse.urljoin(page, f"/experiments/{self.experiment}")
            for part in ("", "?part=summary", "?part=heat", "?part=results", "?part=trials", f"/trials/{self.trial}"):
                self.assertEqual(browser.open(of_experiment + part, timeout=service.DEADLINE).status, 200)
            status = pathlib.Path(f"/proc/{web.pid}/status").read_text()
            return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) >> 10
        finally:
            web.kill()
            web.wait()
            web.stdout.close()


if __name__ == "__main__":
    unittest.main()
