#!/usr/bin/env python3
"""Makes every alert of deploy/prometheus/alerts.yml fire and resolve, by doing what it warns of.

    tests/monitoring/every_alert.py [BIN]      BIN: where the programs are, by default bazel-bin

A real Prometheus scrapes real servers, on the loopback, twice a second. It reads a copy of the shipped rules in which every
duration (`for:` and the windows in brackets) is a 30th of the shipped one; nothing else differs. Prints a table of what was
done. Fails if an alert does not fire, does not resolve, or fires without a reason.

Needs Debian's packages prometheus, openssl, strace and libfaketime. If it cannot run, exits with 77 and the reason as its
last line. Stops by itself after a quarter of an hour.

How the deeds that do not fit into minutes are stood in for:
* a disk of terabytes: a file system of 128 MB in memory, in a mount namespace of its own
* a backup that is two days old: the server that made it ran three days ago, by libfaketime
* a slow disk: strace delays each sync of the running server by 300 ms
* a certificate or a token that expires within days: it was made for one day
* 65,536 file descriptors: a server that may open 1,500, and clients at several addresses of the loopback
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator

FACTOR = 30
PATIENCE = 240  # seconds, for what takes some seconds on an idle machine
LIMIT = 900  # seconds, for all
RULES = pathlib.Path("deploy/prometheus")
CLOCK = "/usr/lib/*/faketime/libfaketimeMT.so.1"
NO_WORKER = "LengthwiseNoWorkerForQueuedWork"
SPECIFICATION = """
name: {name}
tasks: bucket_sort
networks: {{name: encoder, blocks: 1, heads: 2, d_model: 16}}
encodings: sin_cos
learning_rates: {rate}
seeds: 0..{last_seed}
training:
  {{steps: {steps}, batch_size: 4, lengths: 1..4, report_every_steps: 1, checkpoint_every_steps: 1000000}}
evaluation: {{lengths: [4], sequences: 8}}
"""


def cannot(reason: str) -> None:
    print(f"the alerts were not tried: {reason}")
    sys.exit(77)


def shortened(rules: str) -> str:
    """The rules with every duration divided by FACTOR."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}

    def divide(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2]) * units[found[3]] * 1000 // FACTOR}ms{found[4]}"

    return re.sub(r"(\[|\bfor: )(\d+)([smhd])(\]|\n)", divide, rules)


ended = threading.Event()  # nobody waits any longer


def await_that(what: str, holds: Callable[[], bool], seconds: float = PATIENCE) -> float:
    """Waits until it holds; the seconds that it took."""
    start = time.monotonic()
    while not holds():
        if ended.is_set() or time.monotonic() > start + seconds:
            raise RuntimeError(f"waited {time.monotonic() - start:.0f} s in vain until {what}")
        time.sleep(0.2)
    return time.monotonic() - start


@dataclasses.dataclass
class Line:
    """A line of the table."""

    key: tuple[str, str]  # alert and instance
    fired_by: str
    fired_after: float
    resolved_by: str
    resolved_after: float


class Prometheus:
    """A real one, with shorter durations."""

    def __init__(self, directory: pathlib.Path, stack: contextlib.ExitStack) -> None:
        self._targets = directory / "targets.json"
        self.seen: set[tuple[str, str]] = set()
        for name in ("alerts.yml", "recording_rules.yml"):
            (directory / name).write_text(shortened((RULES / name).read_text("utf-8")), "utf-8")
        self.set_targets([])
        (directory / "prometheus.yml").write_text(
            "global: {scrape_interval: 500ms, evaluation_interval: 500ms}\n"
            "rule_files: [recording_rules.yml, alerts.yml]\n"
            "scrape_configs: [{job_name: lengthwise, file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]}]\n",
            "utf-8",
        )
        log = directory / "prometheus.log"
        start(
            [
                "prometheus",
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'tsdb'}",
                "--web.listen-address=127.0.0.1:0",
            ],
            log,
            stack,
        )
        await_that("Prometheus serves", lambda: "ready to receive web requests" in log.read_text("utf-8"))
        found = re.search(r"msg=\"Listening on\" address=(\S+)", log.read_text("utf-8"))
        assert found
        self._url = f"http://{found[1]}"
        threading.Thread(target=self._watch, daemon=True).start()

    def set_targets(self, addresses: list[str]) -> None:
        new = self._targets.with_suffix(".new")
        new.write_text(json.dumps([{"targets": addresses}] if addresses else []), "utf-8")
        new.rename(self._targets)

    def firing(self) -> dict[tuple[str, str], str]:
        """The firing alerts: name and instance, and the summary."""
        with urllib.request.urlopen(f"{self._url}/api/v1/alerts", timeout=30) as answer:
            alerts = json.load(answer)["data"]["alerts"]
        return {
            (one["labels"]["alertname"], one["labels"].get("instance", "")): one["annotations"]["summary"]
            for one in alerts
            if one["state"] == "firing"
        }

    def _watch(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                self.seen.update(self.firing())
            time.sleep(0.5)


def start(command: list[str], log: pathlib.Path, stack: contextlib.ExitStack, **environment: str) -> subprocess.Popen[bytes]:
    """Starts a program that is killed at the latest when the stack ends."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **environment}
        )

    def stop() -> None:
        process.kill()
        process.wait()

    stack.callback(stop)
    return process


class Server:
    """A real server of a story, with its workers and callers."""

    def __init__(self, programs: Programs, name: str, data: pathlib.Path | None = None) -> None:
        self._programs, self.name = programs, name
        self.directory = programs.directory / name
        self.directory.mkdir()
        self.data = data or self.directory / "data"
        self.flags: list[str] = []
        self.credentials: list[str] = []
        self._addresses = ["127.0.0.1:0", "127.0.0.1:0"]

    def start(self, *before: str, **environment: str) -> None:
        """Starts it, at the same addresses as before."""
        ready = self.directory / "ready"
        ready.unlink(missing_ok=True)
        addresses = [f"--listen={self._addresses[0]}", f"--metrics_listen={self._addresses[1]}"]
        program = [self._programs.path("server/lengthwise_server"), f"--data_dir={self.data}", f"--ready_file={ready}"]
        command = [*before, *program, *addresses, *self.flags]
        self.process = start(command, self.directory / "server.log", self._programs.stack, **environment)
        await_that(f"{self.name} serves", lambda: ready.exists() or self.process.poll() is not None)
        if not ready.exists():
            raise RuntimeError((self.directory / "server.log").read_text("utf-8"))
        self._addresses = ready.read_text("utf-8").split()

    @property
    def instance(self) -> str:
        return self._addresses[1]

    @property
    def address(self) -> str:
        return self._addresses[0]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def call(self, *arguments: str, fails: bool = False) -> str:
        """What the command line prints."""
        program = self._programs.path("client/lengthwise")
        done = subprocess.run(
            [program, *arguments, f"--server={self.address}", *self.credentials],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if (done.returncode != 0) != fails:
            raise RuntimeError(f"{' '.join(arguments)} exited with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def watcher(self, experiment: str) -> subprocess.Popen[bytes]:
        """Watches, with a pipe that nobody reads."""
        program = self._programs.path("client/lengthwise")
        process = subprocess.Popen(
            [program, "watch", experiment, "--output=json", f"--server={self.address}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self._programs.stack.callback(process.wait)
        self._programs.stack.callback(process.kill)
        return process

    def submit(self, name: str, rate: str = "0.001", trials: int = 1, steps: int = 10_000_000) -> str:
        file = self.directory / f"{name}.yaml"
        file.write_text(SPECIFICATION.format(name=name, rate=rate, last_seed=trials - 1, steps=steps), "utf-8")
        self.call("submit", str(file))
        return f"{name}-1"

    def worker(self, *flags: str) -> subprocess.Popen[bytes]:
        program = self._programs.path("worker/lengthwise_worker")
        spool = [f"--spool_dir={self.directory / 'spool'}", "--device=cpu", "--threads=1"]
        log = self.directory / "worker.log"
        return start([program, f"--server={self.address}", *spool, *flags], log, self._programs.stack)

    def metric(self, name: str) -> float:
        """The sum of its values."""
        with urllib.request.urlopen(f"http://{self.instance}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


class Programs:
    """Starts servers, and keeps the table."""

    def __init__(self, built: pathlib.Path, directory: pathlib.Path, stack: contextlib.ExitStack) -> None:
        self._built, self.directory, self.stack = built, directory, stack
        self.table: list[Line] = []
        self.prometheus = Prometheus(directory, stack)

    def path(self, program: str) -> str:
        return str(self._built / program)

    @contextlib.contextmanager
    def fires(self, alert: str, server: Server | None, fired_by: str, resolved_by: str, says: str = "") -> Iterator[None]:
        """The alert fires now; what is done in the block resolves it. `says` is in its summary."""
        key = alert, server.instance if server else ""

        def fires() -> bool:
            firing = self.prometheus.firing()
            return key in firing and says in firing[key]

        took = await_that(f"{key} fires", fires)
        print(f"{alert} fires ({fired_by}): {self.prometheus.firing().get(key)}", flush=True)
        yield
        resolved = await_that(f"{key} resolves", lambda: key not in self.prometheus.firing())
        self.table.append(Line(key, fired_by, took, resolved_by, resolved))
        print(f"{alert} is resolved: {resolved_by}", flush=True)


def workers_and_crashes(programs: Programs, server: Server) -> None:
    experiment = server.submit("waiting", trials=3)
    server.worker("--worker_id=other", "--experiment=experiments/other-1")
    waiting = "3 trials, and a worker for another experiment"
    with programs.fires(NO_WORKER, server, waiting, "3 workers", says="3 trials are queued"):
        workers = [server.worker(f"--worker_id=w{i}") for i in range(3)]
    await_that("all train", lambda: server.metric("lengthwise_leases") == 3)
    for worker in workers:
        worker.kill()
    lost = "3 workers killed with SIGKILL"
    with programs.fires("LengthwiseWorkersLost", server, lost, "time", says="3 workers"):
        with programs.fires("LengthwiseLeaseExpiriesRising", server, lost, "time", says="3 leases expired"):
            server.call("cancel", experiment, "--yes")
    server.submit("diverging", rate="1e30")
    server.worker("--worker_id=w3")
    with programs.fires("LengthwiseLossNotFinite", server, "a learning rate of 1e30", "time"):
        pass
    server.kill()
    with programs.fires("LengthwiseServerDown", server, "the server killed with SIGKILL", "its start"):
        server.start()
    for _ in range(2):
        await_that("it is scraped", lambda: ("LengthwiseServerDown", server.instance) not in programs.prometheus.firing())
        time.sleep(1.5)
        server.kill()
        server.start()
    with programs.fires("LengthwiseServerRestarts", server, "the server killed and started three times", "time"):
        pass


def paused_queue(programs: Programs, server: Server) -> None:
    server.call("queue", "pause", "--reason", "new disks")
    with programs.fires("LengthwiseQueuePaused", server, "queue pause", "queue resume"):
        server.call("queue", "resume")


def slow_disk(programs: Programs, server: Server) -> None:
    delay = ["strace", "--follow-forks", "--quiet=all", "--inject=fdatasync,fsync:delay_exit=300000"]
    log = server.directory / "strace.log"
    tracer = start([*delay, f"--output={server.directory / 'trace'}", f"--attach={server.process.pid}"], log, programs.stack)
    enough = threading.Event()

    def write() -> None:
        while not enough.is_set():
            server.call("queue", "pause")
            server.call("queue", "resume")

    with concurrent.futures.ThreadPoolExecutor() as pool:
        writer = pool.submit(write)
        try:
            with programs.fires("LengthwiseCommitsSlow", server, "each sync of the disk delayed by 300 ms", "no delay"):
                tracer.terminate()
                tracer.wait()
        finally:
            enough.set()
        writer.result()


def full_disk(programs: Programs, server: Server) -> None:
    filler = server.data.parent / "filler"
    free = os.statvfs(server.data.parent)

    def fill(left: int) -> None:
        """Leaves so many bytes free."""
        free = os.statvfs(server.data.parent)
        with filler.open("ab") as file:
            file.write(b"\0" * max(0, free.f_bavail * free.f_frsize - left))

    experiment = server.submit("storing")
    fill(free.f_blocks * free.f_frsize // 20)
    with programs.fires("LengthwiseDiskNearlyFull", server, "all but 5 % of the file system filled", "the file deleted"):
        # Not before: the server would fill the disk and give up its reserve, more than 10 %, before the alert fires.
        server.worker()
        await_that("it trains", lambda: server.metric("lengthwise_points_stored_total") > 0)
        with contextlib.suppress(OSError):
            fill(-1 << 20)
        filled = "the file system filled", "the file deleted"
        with contextlib.ExitStack() as both:
            both.enter_context(programs.fires("LengthwiseDiskFull", server, *filled))
            both.enter_context(programs.fires("LengthwiseCommitsFail", server, *filled))
            assert "disk" in server.call("backup", "nightly", fails=True)
            with programs.fires("LengthwiseBackupFailed", server, "backup on the full file system", "backup"):
                filler.unlink()
                await_that("there is room", lambda: server.metric("lengthwise_disk_full") == 0)
                server.call("backup", "nightly")
    server.call("cancel", experiment, "--yes")


def old_backup(programs: Programs, server: Server) -> None:
    with programs.fires("LengthwiseBackupOld", server, "a backup of three days ago", "backup", says="3d"):
        server.call("backup", "new")


def slow_watcher(programs: Programs, server: Server) -> None:
    experiment = server.submit("watched", trials=20_000)
    # A history of 120,000 events, which fits into no buffer.
    for _ in range(3):
        server.call("cancel", experiment, "--yes")
        server.call("retry", experiment, "--cancelled")
    watcher = server.watcher(experiment)
    assert watcher.stdout is not None
    with programs.fires("LengthwiseWatcherLag", server, "a watch into a pipe that nobody reads", "a reader"):
        threading.Thread(target=collections.deque, args=(watcher.stdout, 0), daemon=True).start()
    server.call("cancel", experiment, "--yes")


def open_files(programs: Programs, server: Server) -> None:
    connections: list[socket.socket] = []
    host, port = server.address.rsplit(":", 1)

    def are_most_open() -> bool:
        """An address may have at most 128 connections without a call, and a connection takes three descriptors."""
        for _ in range(20):
            source = f"127.0.1.{len(connections) // 100 + 1}", 0
            connections.append(socket.create_connection((host, int(port)), 30, source))
            # The beginning of HTTP/2, with empty settings.
            connections[-1].sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        return server.metric("process_open_fds") > 0.81 * server.metric("process_max_fds")

    await_that("four in five descriptors are open", are_most_open)
    with programs.fires("LengthwiseOpenFilesNearlyUsedUp", server, f"{len(connections)} connections", "their end"):
        for connection in connections:
            connection.close()


def certificates_and_tokens(programs: Programs, server: Server, make_certificate: Callable[[int], None]) -> None:
    says = "(server) expires in"
    with programs.fires("LengthwiseCertificateExpires", server, "a certificate for a day", "one for 30 days", says):
        make_certificate(30)
    right, key = server.directory / "right.key", server.directory / "server.key"
    key.rename(right)
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    key.chmod(0o600)
    with programs.fires("LengthwiseCertificateFilesUnusable", server, "another certificate's key", "the right key"):
        right.rename(key)
    create = ["auth", "create-token", "tom", "--role=submitter"]
    server.call(*create, f"--out={server.directory / 'tom.token'}", "--lifetime=1d")
    with programs.fires("LengthwiseTokenExpires", server, "a token for a day", "one for 90 days", says="expires in"):
        server.call(*create, f"--out={server.directory / 'new.token'}")
    create = ["auth", "create-token", "ada", "--role=viewer"]
    server.call(*create, f"--out={server.directory / 'ada.token'}", "--lifetime=1m")
    with programs.fires("LengthwiseTokenExpires", server, "a token that has expired", "revoke-token", says="has expired"):
        server.call("auth", "revoke-token", "--principal=ada")


def make_certificates(server: pathlib.Path) -> Callable[[int], None]:
    """Makes an authority, and a function that makes a server's certificate for so many days."""
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

    def run(*command: str) -> None:
        subprocess.run(command, cwd=server, check=True, capture_output=True)

    run(*new, "-x509", "-days", "40", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=house")
    run(*new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1")
    (server / "server.key").chmod(0o600)

    def make(days: int) -> None:
        authority = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-copy_extensions", "copy"]
        run("openssl", "x509", "-req", "-in", "server.csr", *authority, "-days", str(days), "-out", "new.pem")
        (server / "new.pem").rename(server / "server.pem")

    make(1)
    return make


def stories(programs: Programs) -> list[tuple[Server, Callable[[Programs, Server], None]]]:
    """Starts a server for each story."""
    work = programs.directory
    small = work / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", small], check=True)
    programs.stack.callback(lambda: subprocess.run(["umount", "--lazy", small], check=True))
    short_leases = ["--lease_duration=3s", "--heartbeat_interval=500ms"]
    plain, paused, slow, watched = (Server(programs, name) for name in ("plain", "paused", "slow", "watched"))
    plain.flags += short_leases
    disk = Server(programs, "disk", data=small / "data")
    for server in (plain, paused, slow, watched, disk):
        server.start()
    files = Server(programs, "files")
    files.start("prlimit", "--nofile=1500:1500")
    backup = Server(programs, "backup")
    [clock] = glob.glob(CLOCK)
    backup.start(LD_PRELOAD=clock, FAKETIME="-3d", FAKETIME_DONT_FAKE_MONOTONIC="1")
    backup.call("backup", "old")
    backup.stop()
    backup.start()
    secure = Server(programs, "secure")
    make_certificate = make_certificates(secure.directory)
    token, authority = secure.directory / "admin.token", secure.directory / "ca.pem"
    create = [programs.path("server/lengthwise_server"), f"--data_dir={secure.data}", f"--create_admin_token={token}"]
    subprocess.run(create, check=True, capture_output=True)
    secure.credentials = [f"--token_file={token}", f"--tls_ca={authority}"]
    secure.flags += [f"--tls_certificate={secure.directory / 'server.pem'}", f"--tls_key={secure.directory / 'server.key'}"]
    secure.start()
    return [
        (plain, workers_and_crashes),
        (paused, paused_queue),
        (slow, slow_disk),
        (watched, slow_watcher),
        (disk, full_disk),
        (files, open_files),
        (backup, old_backup),
        (secure, lambda programs, server: certificates_and_tokens(programs, server, make_certificate)),
    ]


def run(built: pathlib.Path) -> None:
    def stop(number: int, _: object) -> None:
        raise RuntimeError(f"stopped by {signal.Signals(number).name}")

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lengthwise-alerts-")))
        stack.callback(ended.set)
        programs = Programs(built, work, stack)
        told = stories(programs)
        prometheus = programs.prometheus
        addresses = [server.instance for server, _ in told]
        with programs.fires("LengthwiseServerDown", None, "no target", "targets", says="Prometheus finds no server"):
            prometheus.set_targets(addresses)
        with concurrent.futures.ThreadPoolExecutor(len(told)) as pool:
            running = {pool.submit(story, programs, server): server for server, story in told}
            try:
                for done in concurrent.futures.as_completed(running):
                    done.result()
            except BaseException as error:
                print(f"failed: {error}", file=sys.stderr, flush=True)
                ended.set()
                raise
        await_that("no alert is left", lambda: not prometheus.firing())
        # Its workers have been killed, or cannot store what they trained.
        expected = {line.key for line in programs.table} | {(NO_WORKER, told[i][0].instance) for i in (0, 3, 4)}
        surprises = prometheus.seen - expected
        if surprises:
            servers = {server.instance: server.name for server, _ in told}
            raise RuntimeError(f"fired without a reason: {sorted(surprises)}; servers: {servers}")
    alerts = set(re.findall(r"- alert: (\w+)", (RULES / "alerts.yml").read_text("utf-8")))
    tried = {line.key[0] for line in programs.table}
    if alerts != tried:
        raise RuntimeError(f"not tried: {sorted(alerts - tried)}")
    print()
    for line in sorted(programs.table, key=lambda line: line.key):
        fired = f"{line.fired_by} ({line.fired_after:.0f} s)"
        print(f"{line.key[0]:34} {fired:58} {line.resolved_by} ({line.resolved_after:.0f} s)")
    print(f"\n{len(alerts)} alerts fired and resolved, durations divided by {FACTOR}")


def main() -> None:
    os.chdir(pathlib.Path(__file__).resolve().parent.parent.parent)
    arguments = sys.argv[1:]
    if arguments[:1] == ["--inside"]:
        run(pathlib.Path(arguments[1]))
        return
    for program in ("mount", "openssl", "prlimit", "prometheus", "strace", "unshare"):
        if shutil.which(program) is None:
            cannot(f"{program} is not installed")
    if not glob.glob(CLOCK):
        cannot("libfaketime is not installed")
    # All processes end with the first one of their namespace, and mounts with theirs.
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    apart += ["--map-root-user"] if os.getuid() != 0 else []
    if subprocess.run([*apart, "true"], check=False).returncode != 0:
        cannot("the kernel allows no namespace")
    built = pathlib.Path(arguments[0] if arguments else "bazel-bin").resolve()
    os.execvp(apart[0], [*apart, sys.executable, "-B", __file__, "--inside", str(built)])


if __name__ == "__main__":
    main()
