"""The real server, the Python client as pip installs it, and a worker with known numbers."""
import hashlib
import importlib
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import threading
import time

import installed_package

ROOT = pathlib.Path.cwd()  # the runfiles of the Bazel test, or the checkout with SERVER and CLIENT set
SERVER = os.environ.get("SERVER", "server/lengthwise_server")
CLIENT = os.environ.get("CLIENT", "client/lengthwise")
DEADLINE = 60.0
# Third-party data files, which are not in this repository.
DATA_DIRECTORY = os.environ.get("LENGTHWISE_DATA_DIR", "")


def new_directory() -> pathlib.Path:
    return pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))


# Survives the test, for what takes long to make and does not depend on it.
SHARED = installed_package.shared(sys.executable) or new_directory()
os.environ["MPLCONFIGDIR"] = str(SHARED / "matplotlib")  # has Matplotlib's list of the machine's fonts
SITE = installed_package.installed(sys.executable, ROOT, new_directory())
sys.path.insert(0, str(SITE))
importlib.invalidate_caches()

import lengthwise  # noqa: E402
import numpy  # noqa: E402
import safetensors.numpy  # noqa: E402
from lengthwise._proto import event_pb2, worker_service_pb2  # noqa: E402
from lengthwise.connection import Connection, Settings  # noqa: E402

# Excludes the user's settings.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("LENGTHWISE_")}
ENVIRONMENT["LENGTHWISE_CONFIG"] = ""
# Makes the command line start the package under test.
ENVIRONMENT["LENGTHWISE_PYTHON"] = sys.executable
ENVIRONMENT["PYTHONPATH"] = str(SITE)
ENVIRONMENT["LENGTHWISE_CLIENT_BINARY"] = str(ROOT / CLIENT)
for name in [name for name in os.environ if name.startswith("LENGTHWISE_")]:
    del os.environ[name]
os.environ["LENGTHWISE_CONFIG"] = ""
os.environ["LENGTHWISE_CLIENT_BINARY"] = str(ROOT / CLIENT)


class Server:
    """A server that can be killed and restarted on its port."""

    def __init__(
        self, data: pathlib.Path | None = None, largest_file_kib: int = 0, lease_duration: str = "30s"
    ) -> None:
        self.directory = new_directory() if data is None else data.parent
        self.address = "127.0.0.1:0"
        self._lease_duration = lease_duration
        self._limit: list[str] = []
        if largest_file_kib > 0:  # makes a write fail in the middle, as on a full disk
            limit = f"trap '' XFSZ; ulimit -f {largest_file_kib}; exec \"$@\""
            self._limit = ["bash", "-c", limit, "bash"]
        self.start()

    def start(self) -> None:
        ready = self.directory / "ready"
        ready.unlink(missing_ok=True)
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._limit, SERVER, "--listen", self.address, "--metrics_listen", "127.0.0.1:0",
                 "--data_dir", str(self.directory / "data"), "--ready_file", str(ready),
                 "--heartbeat_interval", "100ms", "--lease_duration", self._lease_duration, "--allow_python_networks"],
                stdout=log, stderr=log, env=ENVIRONMENT,
            )  # fmt: skip
        end = time.monotonic() + DEADLINE
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self.directory / "server.log").read_text())
            time.sleep(0.01)
        self.address = ready.read_text().splitlines()[0]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def specification(name: str, **more) -> dict:
    """Two encodings, two seeds: four trials."""
    return {
        "name": name,
        "tasks": "bucket_sort",
        "networks": [{"name": "encoder", "blocks": 1, "heads": 2, "d_model": 16}],
        "encodings": ["none", "sin_cos"],
        "learning_rates": 0.001,
        "seeds": [0, 1],
        "training": {"steps": 200, "batch_size": 4, "lengths": "1..4", "report_every_steps": 50},
        "evaluation": {"lengths": [2, 4, 6, 8], "sequences": 10, "every_steps": 100, "interval_lengths": [2, 6],
                       "attention_lengths": [3]},
        **more,
    }  # fmt: skip


class Numbers:
    """The measurements of a trial by its index in the grid. They differ by index, so that tests can tell trials apart.
    """

    STEPS = [50, 100, 150, 200]
    LENGTHS = [2, 4, 6, 8]
    INTERVAL_LENGTHS = [2, 6]

    def __init__(self, index: int) -> None:
        self.index = index

    def loss(self, step: int) -> float:
        return float(numpy.float32(2.0 / step + self.index))

    def accuracy(self, length: int, step: int = 200) -> float:
        return round(1.0 / length + step / 1000 + self.index / 100, 6)

    def digits_accuracy(self, length: int, step: int = 200) -> float:
        """LengthAccuracies.metrics."""
        return self.accuracy(length, step) / 2

    def attention(self) -> numpy.ndarray:
        """[layers, heads, tokens, tokens] at length 3, with 3 output tokens; rows sum to 1."""
        raw = numpy.arange(1, 1 + 2 * 2 * 6 * 6, dtype=numpy.float32).reshape(2, 2, 6, 6) + self.index
        return (raw / raw.sum(axis=3, keepdims=True)).astype("<f4")

    def projection(self) -> numpy.ndarray:
        """[depths, sequences, tokens, 2]."""
        return (numpy.arange(2 * 3 * 4 * 2, dtype=numpy.float32).reshape(2, 3, 4, 2) + self.index).astype("<f4")

    def weights(self) -> dict:
        return {
            "embedding": numpy.full((5, 3), self.index + 0.5, numpy.float32),
            "blocks.0.attention.query": numpy.arange(12, dtype=numpy.float32).reshape(3, 2, 2) + self.index,
        }

    def model(self) -> bytes:
        return safetensors.numpy.save({f"parameters/{name}": value for name, value in self.weights().items()})


class Worker:
    """Runs a server's trials, each in one go, optionally on a background thread."""

    max_pack_size = 1

    def __init__(self, server: Server, worker_id: str = "python-1") -> None:
        self._connection = Connection(Settings(server=server.address), timeout=30)
        self._worker = worker_service_pb2.WorkerDescription(
            worker_id=worker_id, max_pack_size=self.max_pack_size, api_version=6
        )
        self._session = secrets.token_hex(8)
        self._calls = 0
        self._held: list[worker_service_pb2.HeldLease] = []
        self.call()

    def call(self, wants_lease: bool = False, **more) -> worker_service_pb2.SynchronizeResponse:
        self._calls += 1
        return self._connection.call(
            worker_service_pb2.SynchronizeRequest(
                worker=self._worker,
                session=self._session,
                number=self._calls,
                leases=self._held,
                wants_lease=wants_lease,
                **more,
            ),
            worker_service_pb2.SynchronizeResponse,
        )

    def acquire(self) -> worker_service_pb2.Lease | None:
        answer = self.call(wants_lease=True)
        if not answer.HasField("lease"):
            return None
        lease = answer.lease
        self.hold([lease])
        return lease

    def hold(self, leases: list) -> None:
        """Lists these leases in later calls."""
        self._held = [
            worker_service_pb2.HeldLease(lease_id=lease.lease_id, fencing_token=lease.fencing_token) for lease in leases
        ]

    def run_all(self) -> int:
        """Runs until the queue is empty. Returns the number of trials."""
        done = 0
        while lease := self.acquire():
            for trial in lease.trials:
                self.train(lease, trial)
                self.finish(lease, trial)
                done += 1
        return done

    def train(self, lease, leased) -> None:
        """Sends everything except the end."""
        numbers = Numbers(self.index_of(leased))
        model = numbers.model()
        checkpoint = event_pb2.Checkpoint(sha256=hashlib.sha256(model).hexdigest(), size_bytes=len(model))
        self._upload(lease, leased, model, checkpoint)
        points = event_pb2.TrainingPoints(
            steps=numbers.STEPS,
            losses=[numbers.loss(step) for step in numbers.STEPS],
            accuracies=[0.5] * 4,
            gradient_norms=[1.5] * 4,
            lengths=[1, 2, 3, 4],
        )
        first = event_pb2.TrainingPoints(
            steps=points.steps[:2], losses=points.losses[:2], accuracies=points.accuracies[:2],
            gradient_norms=points.gradient_norms[:2], lengths=points.lengths[:2],
        )  # fmt: skip
        rest = event_pb2.TrainingPoints(
            steps=points.steps[2:], losses=points.losses[2:], accuracies=points.accuracies[2:],
            gradient_norms=points.gradient_norms[2:], lengths=points.lengths[2:],
        )  # fmt: skip
        attention, projection = numbers.attention(), numbers.projection()
        parts = [
            event_pb2.AttentionMap(
                length=3, tokens=[4, 2, 3, 5, 5, 5], positions=range(6), layers=1, first_layer=layer, heads=2,
                probabilities=attention[layer].tobytes(),
            )
            for layer in range(2)
        ]  # fmt: skip
        self._send(
            lease,
            leased,
            1,
            [
                event_pb2.Event(step=100, log_line=event_pb2.LogLine(severity="INFO", text="hello")),
                event_pb2.Event(step=100, training_points=first),
                event_pb2.Event(step=100, length_accuracies=self._accuracies(numbers, 100, numbers.INTERVAL_LENGTHS)),
                event_pb2.Event(step=200, training_points=rest),
                event_pb2.Event(step=200, checkpoint=checkpoint),
                event_pb2.Event(step=200, length_accuracies=self._accuracies(numbers, 200, numbers.LENGTHS)),
                event_pb2.Event(
                    step=200,
                    sequence_scores=event_pb2.SequenceScores(
                        length=6,
                        accuracies=[1, 0.5],
                        losses=[0.25, 2],
                        wrong_answers=[
                            event_pb2.SequenceScores.WrongAnswer(sequence=1, places=[0, 3], carry_into_first=True)
                        ],
                    ),
                ),
                event_pb2.Event(
                    step=200,
                    noise_accuracies=event_pb2.NoiseAccuracies(deviations=[0.1], accuracies=[0.75], losses=[0.5]),
                ),
                event_pb2.Event(
                    step=200,
                    answer_errors=event_pb2.AnswerErrors(
                        length=6, answers=8, wrong_by_place=[2, 1], answers_by_wrong_digits=[5, 3],
                        first_wrong_with_carry=1, first_wrong_without_carry=2,
                    ),
                ),
                *[event_pb2.Event(step=200, attention_map=part) for part in parts],
                event_pb2.Event(
                    step=200,
                    projection=event_pb2.Projection(
                        fitted_length=4, length=4, sequences=3, tokens=4, depths=2,
                        coordinates=projection.tobytes(), explained_variance=[0.5, 0.25, 0.75, 0.125],
                    ),
                ),
            ],
        )  # fmt: skip

    def finish(self, lease, leased) -> None:
        numbers = Numbers(self.index_of(leased))
        outcome = event_pb2.Outcome(
            kind="COMPLETED", training_seconds=2, evaluation_seconds=1, training_steps=200,
            seen_accuracy=numpy.mean([numbers.accuracy(2), numbers.accuracy(4)]),
            unseen_accuracy=numpy.mean([numbers.accuracy(6), numbers.accuracy(8)]),
        )  # fmt: skip
        self._send(lease, leased, 13, [event_pb2.Event(step=200, outcome=outcome)])

    @staticmethod
    def index_of(leased) -> int:
        """The trial's index in the grid of `specification`."""
        return 2 * (leased.specification.encoding.name == "sin_cos") + leased.specification.weight_seed

    @staticmethod
    def _accuracies(numbers: Numbers, step: int, lengths: list) -> event_pb2.LengthAccuracies:
        return event_pb2.LengthAccuracies(
            final=step == 200, lengths=lengths, accuracies=[numbers.accuracy(length, step) for length in lengths],
            losses=[0.25] * len(lengths), sequences=10, training_seconds=step / 100,
            training_accuracy=0.875 if step == 200 else None,
            metrics=[
                event_pb2.LengthAccuracies.Metric(
                    name="digits_accuracy", values=[numbers.digits_accuracy(length, step) for length in lengths]
                )
            ],
        )  # fmt: skip

    def _send(self, lease, leased, sequence: int, all_events: list) -> None:
        for i, event in enumerate(all_events):
            event.trial, event.attempt, event.sequence = leased.trial, leased.attempt, sequence + i
            event.time.FromSeconds(1_700_000_000 + sequence + i)
        stream = self._connection._channel.stream_stream(
            "/lengthwise.v1.WorkerService/StreamEvents",
            request_serializer=worker_service_pb2.StreamEventsRequest.SerializeToString,
            response_deserializer=worker_service_pb2.StreamEventsResponse.FromString,
        )
        request = worker_service_pb2.StreamEventsRequest(
            lease_id=lease.lease_id, fencing_token=lease.fencing_token, events=all_events
        )
        for answer in stream(iter([request]), timeout=DEADLINE):
            if answer.refusal:
                raise RuntimeError(f"refused: {answer}")

    def _upload(self, lease, leased, model: bytes, checkpoint, step: int = 200) -> None:
        header = worker_service_pb2.UploadArtifactRequest.Header(
            lease_id=lease.lease_id, fencing_token=lease.fencing_token, trial=leased.trial, sha256=checkpoint.sha256,
            size_bytes=checkpoint.size_bytes, step=step,
        )  # fmt: skip
        stub = self._connection._channel.stream_unary(
            "/lengthwise.v1.WorkerService/UploadArtifact",
            request_serializer=worker_service_pb2.UploadArtifactRequest.SerializeToString,
            response_deserializer=worker_service_pb2.UploadArtifactResponse.FromString,
        )
        requests = [
            worker_service_pb2.UploadArtifactRequest(header=header),
            worker_service_pb2.UploadArtifactRequest(data=model),
        ]
        stub(iter(requests), timeout=DEADLINE)


def in_background(function) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread
