"""Floods a Lengthwise server on this machine and reports what that costs the server.

Each flood speaks HTTP/2 on raw sockets, from 64 addresses, and stops by itself, at the latest when the server needs 2 GB.
Those of neighbours, submitters and workers use a token of their own, the others none.
Meanwhile a worker sends heartbeats and points, which a watch waits for, and new clients make valid calls. Only servers on
the loopback are flooded:

    floods.py --server 127.0.0.1:7070 --pid PID [--tls] [--scale 0.1] [FLOOD ...]
"""

import argparse
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import re
import socket
import ssl
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator

from wire import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Connection,
    Target,
    authorization,
    call,
    field,
    frame,
    literal,
    message,
    request_headers,
    varint,
)

METHOD = "/lengthwise.v1.ExperimentService/ListExperiments"
# Differ from the probe's, as for a flood from other machines.
FLOOD_ADDRESSES = [f"127.0.1.{number}" for number in range(1, 65)]
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
SYNCHRONIZE = "/lengthwise.v1.WorkerService/Synchronize"
CREATE_TOKEN = "/lengthwise.v1.AccessService/CreateToken"
STREAM_EVENTS = "/lengthwise.v1.WorkerService/StreamEvents"
REGISTER = "/lengthwise.v1.WorkerService/RegisterWorker"
UPLOAD = "/lengthwise.v1.WorkerService/UploadArtifact"
RESOLVE = "/lengthwise.v1.CatalogueService/ResolveSpecification"
LIST_CATALOGUE = "/lengthwise.v1.CatalogueService/ListCatalogueEntries"
EXPERIMENTS = "/lengthwise.v1.ExperimentService/"
CREATE_EXPERIMENT = EXPERIMENTS + "CreateExperiment"
SPECIFICATION = """{{name: flood, tasks: [{tasks}], networks: {{name: encoder, blocks: 1, heads: 1, d_model: 8}},
encodings: [{encodings}], learning_rates: 1e-3, seeds: {seeds}, training: {{steps: 1, batch_size: 1, lengths: 1..5}},
evaluation: {{lengths: {lengths}, sequences: 1}}}}"""
# Roles of tokens.
VIEWER, SUBMITTER, WORKER = 1, 2, 3
# The version of the workers' API (kWorkerApiVersion).
API_VERSION = 6
# Floods stop when the server needs this much: they share the machine with others.
TOO_MUCH_MB = 2000


@dataclasses.dataclass
class Sent:
    """What a flood sent. With less than `least`, it did not reach the limit that it tests."""

    amount: int
    least: int
    unit: str


def specification(tasks: list[str], encodings: list[str], seeds: str, lengths: str, comment: int = 0) -> bytes:
    """Returns a SpecificationText, with a comment of so many bytes."""
    text = SPECIFICATION.format(tasks=", ".join(tasks), encodings=", ".join(encodings), seeds=seeds, lengths=lengths)
    text += "\n#" + "x" * comment
    return b"\x08\x01" + field(2, text.encode())  # YAML


def randomized(count: int) -> list[str]:
    """Returns so many different encodings."""
    return [f"{{name: sin_cos, randomized: true, max_position: {1_000_000 + n}, label: e{n}}}" for n in range(count)]


def resolve_request(tasks: list[str], encodings: list[str], lengths: str = "5", comment: int = 0) -> bytes:
    """Returns a ResolveSpecificationRequest, with a comment of so many bytes."""
    return field(1, specification(tasks, encodings, "0", lengths, comment))


def worker_call(worker: str, experiment: bytes, packs: int = 1) -> bytes:
    """Returns the start of a SynchronizeRequest: of a new session, for packs of so many trials of one experiment."""
    fields = field(1, worker.encode()) + field(3, packs) + field(4, API_VERSION) + field(5, experiment)
    # A worker of an earlier flood had the same id.
    return field(1, fields) + field(2, os.urandom(8).hex().encode())


class Trial:
    """A trial that a worker leases."""

    def __init__(self, target: Target, worker: str) -> None:
        """Creates its experiment. `worker` is an id."""
        self.target = target
        self.experiment = create(target, "0", "5")
        self.worker = worker_call(worker, self.experiment)
        self.calls, self.events = itertools.count(1), itertools.count(1)
        connection = Connection(target, "127.0.0.1", timeout=60)
        lease = call(target, connection, 1, SYNCHRONIZE, self.request() + field(6, 1))
        connection.close()
        found = re.search(rb"(lease-([0-9]+)-[0-9a-f]+).*?(experiments/[\w.-]+/trials/[\w.-]+)", lease, re.DOTALL)
        assert found is not None
        self.lease = field(1, found[1]) + field(2, int(found[2]))
        self.name = found[3]

    def request(self) -> bytes:
        """Returns the start of the worker's next SynchronizeRequest."""
        return self.worker + field(3, next(self.calls))

    def heartbeat(self, connection: Connection, stream: int) -> None:
        """Renews the lease."""
        call(self.target, connection, stream, SYNCHRONIZE, self.request() + field(4, self.lease))

    def record(self, connection: Connection, stream: int, fact: bytes) -> None:
        """Stores an event of attempt 1 at step 1."""
        event = field(2, self.name) + field(3, 1) + field(4, next(self.events)) + field(5, 1) + fact
        call(self.target, connection, stream, STREAM_EVENTS, self.lease + field(3, event))


class Probe:
    """A worker that sends heartbeats on one connection, its points on another, where a watch waits for each, and clients
    that each make one call on a new connection, until stopped. Records how long each took."""

    def __init__(self, target: Target) -> None:
        """Leases the trial and starts the threads."""
        self.target = target
        self.heartbeats: list[float] = []
        self.points: list[float] = []
        self.clients: list[float] = []
        self.failures: list[str] = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.come)]
        if self.timed("lease", [], self.begin):
            self.threads += [threading.Thread(target=work) for work in (self.beat, self.report)]
        for thread in self.threads:
            thread.start()

    def begin(self) -> None:
        """Leases the worker's trial."""
        self.trial = Trial(self.target, "flood")

    def timed(self, name: str, seconds: list[float], work: Callable[[], None]) -> bool:
        """Does the work and records its time, or its failure, which it returns as False."""
        start = time.monotonic()
        try:
            work()
        except (OSError, ValueError, IndexError, AssertionError) as error:
            self.failures.append(f"{name}: {error}")
        seconds.append(time.monotonic() - start)
        return not self.failures

    def beat(self) -> None:
        """Sends heartbeats, on one connection unless a call fails."""
        connection: Connection | None = None
        stream = 1

        def one() -> None:
            nonlocal connection, stream
            if connection is None:
                connection, stream = Connection(self.target, "127.0.0.1"), 1
            self.trial.heartbeat(connection, stream)
            stream += 2

        while not self.stopping.is_set():
            if not self.timed("heartbeat", self.heartbeats, one):
                connection = None
            self.stopping.wait(0.02)
        if connection is not None:
            connection.close()

    def report(self) -> None:
        """Watches the trial's experiment, and sends points on the same connection until one fails to arrive."""
        connection: Connection | None = None
        headers = request_headers(EXPERIMENTS + "WatchExperiment", authorization(self.target.token))
        asked = message(field(1, self.trial.experiment))
        # Columns of one step: loss, accuracy, norm of the gradient and length.
        columns = b"\x0a\x01\x01" + b"".join(field(number, bytes(4)) for number in (2, 3, 4)) + b"\x2a\x01\x01"
        points = field(11, columns)

        def one() -> None:
            nonlocal connection
            if connection is None:
                connection = Connection(self.target, "127.0.0.1")
                connection.send(frame(HEADERS, END_HEADERS, 1, headers) + frame(DATA, END_STREAM, 1, asked))
            sent = len(self.points) + 1
            self.trial.record(connection, 2 * sent + 1, points)
            deadline = time.monotonic() + 60
            while connection.data.get(1, b"").count(points) < sent:
                if connection.closed or 1 in connection.ended or time.monotonic() > deadline:
                    raise TimeoutError(f"point {sent} did not come")
                connection.read(0.5)

        while not self.stopping.is_set() and self.timed("watch", self.points, one):
            self.stopping.wait(0.02)
        if connection is not None:
            connection.close()

    def come(self) -> None:
        """Makes one call on each new connection."""

        def one() -> None:
            connection = Connection(self.target, "127.0.0.1", timeout=60)
            call(self.target, connection, 1, RESOLVE, resolve_request(["bucket_sort"], ["none"]))
            connection.close()

        while not self.stopping.is_set():
            self.timed("new client", self.clients, one)
            self.stopping.wait(0.05)

    def stop(self) -> None:
        """Ends the threads."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def addresses(count: int) -> Iterator[str]:
    """Returns so many addresses, each of FLOOD_ADDRESSES in turn."""
    return itertools.islice(itertools.cycle(FLOOD_ADDRESSES), count)


def at_once(count: int, work: Callable[[str], int]) -> int:
    """Does the work in so many threads, from one address each. Returns the sum of the results."""

    def one(address: str) -> int:
        # The server may accept no connection.
        with contextlib.suppress(OSError):
            return work(address)
        return 0

    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        return sum(threads.map(one, addresses(count)))


def descriptors(target: Target, scale: float) -> Sent:
    """Opens and closes more connections than the server takes from strangers, or has descriptors for."""
    connections = []
    count = int(2000 * scale)
    for address in addresses(count):
        try:
            connections.append(socket.create_connection((target.host, target.port), 2, (address, 0)))
        except OSError:
            break
    opened = len(connections)
    time.sleep(0.5)
    for connection in connections:
        connection.close()
    return Sent(opened, count // 2, "connections")


def gzip_bomb(target: Target, scale: float) -> Sent:
    """Sends, from each address, one compressed message of 3 MB that is 3 GB of zeros."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = start + block * int(188 * scale)  # without the checksum, which would follow the zeros
    message = b"\x01" + struct.pack(">I", len(packed)) + packed

    def bomb(address: str) -> int:
        connection = Connection(target, address)
        connection.read(1)
        connection.send(frame(HEADERS, END_HEADERS, 1, request_headers(METHOD, {"grpc-encoding": "gzip"})))
        sent = connection.send_data(1, len(message), message, time.monotonic() + 20)
        connection.send(frame(DATA, END_STREAM, 1))
        deadline = time.monotonic() + 10
        while 1 not in connection.ended and not connection.closed and time.monotonic() < deadline:
            connection.read(0.5)
        connection.close()
        return sent

    # The server may refuse each call at once.
    return Sent(at_once(len(FLOOD_ADDRESSES), bomb), 64_000, "bytes")


def large_message(target: Target, scale: float) -> Sent:
    """Sends, from each address, one message of 700 MiB."""
    size = int(scale * 700) << 20

    def large(address: str) -> int:
        connection = Connection(target, address)
        connection.read(1)
        connection.send(frame(HEADERS, END_HEADERS, 1, request_headers(METHOD)))
        sent = connection.send_data(1, size + 5, b"\0" + struct.pack(">I", size), time.monotonic() + 30)
        connection.close()
        return sent

    # The server may refuse each call at once.
    return Sent(at_once(len(FLOOD_ADDRESSES), large), 64_000, "bytes")


def resets(target: Target, scale: float) -> Sent:
    """Opens and resets 300,000 streams on 64 connections."""
    connections = [Connection(target, address) for address in FLOOD_ADDRESSES]
    # The server reads the first 50 at once and 20 a second afterwards. The kernel takes this many in any case.
    return rapid_resets(connections, METHOD, "", int(4_700 * scale))


def rapid_resets(connections: list[Connection], method: str, token: str, count: int) -> Sent:
    """Opens and resets so many streams on each connection."""
    block = request_headers(method, authorization(token))
    reset = struct.pack(">I", 8)
    sent = [0] * len(connections)

    def flood(index: int) -> None:
        connection = connections[index]
        for first in range(0, count, 500):
            # A connection that has made a call has used stream 1.
            batch = b"".join(
                frame(HEADERS, END_HEADERS, 2 * number + 3, block) + frame(RST_STREAM, 0, 2 * number + 3, reset)
                for number in range(first, min(first + 500, count))
            )
            if not connection.send(batch):
                break
            while connection.read(0):
                pass
            if connection.closed:
                break
            sent[index] = min(first + 500, count)
        connection.close()

    threads = [threading.Thread(target=flood, args=(index,)) for index in range(len(connections))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Sent(sum(sent), len(connections) * min(500, count), "streams")


def continuation(target: Target, scale: float) -> Sent:
    """Sends, on 64 connections, 2 GB of CONTINUATION frames that never end a header block."""
    one = frame(CONTINUATION, 0, 1, literal("x", "y" * 16000))
    most = 2e9 * scale / len(FLOOD_ADDRESSES)

    def endless(address: str) -> int:
        connection = Connection(target, address)
        connection.send(frame(HEADERS, 0, 1, request_headers(METHOD)))
        sent = 0
        deadline = time.monotonic() + 30
        while sent < most and time.monotonic() < deadline and connection.send(one):
            sent += len(one)
        connection.close()
        return sent

    # Two frames exceed the limit of 16 KiB for a call's headers. The server may hang up on the second. On a busy machine some
    # connections take too long.
    return Sent(at_once(len(FLOOD_ADDRESSES), endless), len(FLOOD_ADDRESSES) * len(one), "bytes")


def many(target: Target, count: int, each: Callable[[Connection, int], int], per_connection: int) -> int:
    """Runs `each` on `count` streams, of connections from each address in turn, and keeps all open until the end. Returns
    the sum of its results."""
    connections: list[Connection] = []
    total = done = 0
    deadline = time.monotonic() + 40
    while done < count and time.monotonic() < deadline:
        try:
            connection = Connection(target, FLOOD_ADDRESSES[len(connections) % len(FLOOD_ADDRESSES)])
        except OSError:
            break
        connections.append(connection)
        connection.read(1)
        for number in range(min(per_connection, connection.max_streams, count - done)):
            total += each(connection, 2 * number + 1)
            done += 1
            if connection.closed or time.monotonic() > deadline:
                break
        if connection.closed and len(connections) > 2 * count // max(per_connection, 1) + 50:
            break
    time.sleep(1)
    for connection in connections:
        connection.close()
    return total


def half_messages(target: Target, scale: float) -> Sent:
    """Sends most of the 4 MiB of 300 messages and leaves the calls open."""
    size = 4 << 20

    def half(connection: Connection, stream: int) -> int:
        connection.send(frame(HEADERS, END_HEADERS, stream, request_headers(METHOD)))
        first = b"\0" + struct.pack(">I", size)
        return int(connection.send_data(stream, size - (1 << 10), first, time.monotonic() + 2) > 0)

    count = int(300 * scale)
    # The server may refuse each call at once.
    return Sent(many(target, count, half, 4), count // 2, "messages")


def open_streams(target: Target, scale: float) -> Sent:
    """Opens 50,000 streams and sends nothing on them."""
    block = request_headers(METHOD)

    def one(connection: Connection, stream: int) -> int:
        sent = connection.send(frame(HEADERS, END_HEADERS, stream, block))
        connection.read(0)
        return int(sent)

    count = int(50_000 * scale)
    # The server lets a connection open 16.
    return Sent(many(target, count, one, 50_000), min(1000, count), "streams")


def goes_on(target: Target, end: float, sent: int, least: int) -> bool:
    """Returns whether a flood goes on: until `end`, and on a busy machine up to 20 s longer, until it has sent `least`."""
    longest = end if sent >= least else end + 20
    return time.monotonic() < longest and 0 < target.memory("VmRSS") < TOO_MUCH_MB


def unread(target: Target, method: str, messages: bytes, size: int, seconds: float, token: str = "") -> Sent:
    """Opens 16 streams on each of 64 connections, reads no answer, and sends `messages` again and again.

    Sends frames of `size` bytes, as flow control permits. Opens new streams where the server has ended all.
    """
    block = request_headers(method, authorization(token))
    connections: list[Connection] = []
    streams: dict[int, list[int]] = {}
    opened, least = 0, 16 * len(FLOOD_ADDRESSES)

    @functools.cache
    def frames(stream: int) -> bytes:
        return b"".join(frame(DATA, 0, stream, messages[at : at + size]) for at in range(0, len(messages), size))

    end = time.monotonic() + seconds
    for address in FLOOD_ADDRESSES:
        try:
            connections.append(Connection(target, address, timeout=0.5, window=0))
        except OSError:
            continue
    while goes_on(target, end, opened, least):
        busy = False
        for connection in connections:
            if opened >= least and time.monotonic() > end:
                break
            while connection.read(0):
                pass
            alive = [stream for stream in streams.get(id(connection), []) if stream not in connection.ended]
            first = max(streams.get(id(connection), [-1])) + 2
            if not alive and not connection.closed and first < 1900:
                alive = streams[id(connection)] = list(range(first, first + 32, 2))
                connection.send(b"".join(frame(HEADERS, END_HEADERS, stream, block) for stream in alive))
                opened += len(alive)
                busy = True
            for stream in alive:
                if connection.closed or connection.window(stream) < len(messages):
                    continue
                busy = True
                connection.connection_window -= len(messages)
                connection.windows[stream] = connection.windows.get(stream, connection.initial_window) - len(messages)
                connection.send(frames(stream))
        if not busy:
            time.sleep(0.01)
    for connection in connections:
        connection.close()
    return Sent(opened, least, "streams")


def reflection(target: Target, scale: float) -> Sent:
    """Asks for reflection with empty messages on streams whose answers nobody reads."""
    return unread(target, REFLECTION, message(b"") * 800, 5, 20 * scale)


def health_watch(target: Target, scale: float) -> Sent:
    """Watches the server's health on streams that nobody reads, with more messages than the call has."""
    return unread(target, HEALTH_WATCH, message(b"") * 800, 5, 20 * scale)


def health_check(target: Target, scale: float) -> Sent:
    """Checks the server's health in frames of one byte on streams that nobody reads."""
    return unread(target, HEALTH_CHECK, message(b"") * 800, 1, 20 * scale)


def tiny_frames(target: Target, scale: float) -> Sent:
    """Sends a message of 4 MB in frames of one byte, of which the server never gets the end."""
    return unread(target, METHOD, b"\0\0\x3f\0\0" + bytes(3995), 1, 20 * scale)


def key_updates(target: Target, scale: float) -> Sent:
    """Changes the keys of 64 TLS connections without end."""
    library = ctypes.CDLL("libssl.so.3")
    for name, arguments in {
        "SSL_CTX_new": [ctypes.c_void_p],
        "SSL_CTX_set_alpn_protos": [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint],
        "SSL_new": [ctypes.c_void_p],
        "SSL_set_fd": [ctypes.c_void_p, ctypes.c_int],
        "SSL_connect": [ctypes.c_void_p],
        "SSL_key_update": [ctypes.c_void_p, ctypes.c_int],
        "SSL_do_handshake": [ctypes.c_void_p],
        "SSL_free": [ctypes.c_void_p],
    }.items():
        getattr(library, name).argtypes = arguments
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(library, name).restype = ctypes.c_void_p
    context = library.SSL_CTX_new(library.TLS_client_method())
    library.SSL_CTX_set_alpn_protos(context, b"\x02h2", 3)
    end = time.monotonic() + 20 * scale
    sent = [0] * len(FLOOD_ADDRESSES)

    def flood(index: int) -> None:
        while time.monotonic() < end:
            try:
                plain = socket.create_connection((target.host, target.port), 30, (FLOOD_ADDRESSES[index], 0))
            except OSError:
                return
            plain.settimeout(None)
            # A server that waits must not make this thread wait for ever.
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 2, 0))
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 30, 0))
            connection = library.SSL_new(context)
            library.SSL_set_fd(connection, plain.fileno())
            going = library.SSL_connect(connection) == 1
            while going and time.monotonic() < end:
                # Several before the end is looked at; each is a record of its own.
                for _ in range(50):
                    going = library.SSL_key_update(connection, 0) == 1 and library.SSL_do_handshake(connection) == 1
                    if not going:
                        break
                    sent[index] += 1
            library.SSL_free(connection)
            plain.close()

    threads = [threading.Thread(target=flood, args=(index,)) for index in range(len(sent))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Sent(sum(sent), 1000 * len(sent), "KeyUpdates")


def client_hellos(target: Target, scale: float) -> Sent:
    """Repeats a recorded ClientHello on new connections: the server signs each, this flood nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    recorded = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), recorded).do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = recorded.read()
    end = time.monotonic() + 20 * scale
    sent = 0
    waiting: list[socket.socket] = []
    for address in itertools.cycle(FLOOD_ADDRESSES):
        if time.monotonic() > end:
            break
        try:
            connection = socket.create_connection((target.host, target.port), 2, (address, 0))
            connection.sendall(hello)
        except OSError:
            time.sleep(0.01)
            continue
        sent += 1
        waiting.append(connection)
        if len(waiting) == 300:
            waiting.pop(0).close()
        time.sleep(0.002)
    for connection in waiting:
        connection.close()
    return Sent(sent, int(1000 * scale), "ClientHellos")


def slow_starts(target: Target, scale: float) -> Sent:
    """Begins 512 connections from 64 addresses a byte at a time, again where the server closes them."""
    # The start of a ClientHello, or of HTTP/2's preface.
    start = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" if target.tls else PREFACE
    open_ones: list[tuple[socket.socket, int]] = []
    end = time.monotonic() + 20 * scale
    opened = 0
    while time.monotonic() < end:
        while len(open_ones) < 512:
            source = (FLOOD_ADDRESSES[opened % len(FLOOD_ADDRESSES)], 0)
            try:
                open_ones.append((socket.create_connection((target.host, target.port), 0.5, source), 0))
            except OSError:
                break
            opened += 1
        going = []
        for connection, at in open_ones:
            try:
                connection.sendall(start[at : at + 1])
                going.append((connection, at + 1))
            except OSError:
                connection.close()
        open_ones = going
        time.sleep(0.1)
    for connection, _ in open_ones:
        connection.close()
    return Sent(opened, 256, "connections")


def neighbour(target: Target, role: int = VIEWER) -> str:
    """Returns a token of another user, who may only read, or of workers."""
    connection = Connection(target, "127.0.0.1", timeout=60)
    answer = call(target, connection, 1, CREATE_TOKEN, field(1, b"neighbour") + field(2, role))
    connection.close()
    found = re.search(rb"lw_[0-9a-f]+_[0-9a-f]+", answer)
    assert found is not None
    return found[0].decode()


def neighbours_halves(target: Target, scale: float) -> Sent:
    """Sends, with a token, most of the 2 MB of each of 512 messages and leaves the calls open."""
    token = neighbour(target)
    size = 2_000_000
    sent = 0
    connections: list[Connection] = []
    end = time.monotonic() + 40 * scale
    for address in FLOOD_ADDRESSES:
        try:
            connections.append(Connection(target, address))
            call(target, connections[-1], 1, METHOD, token=token)
            for stream in range(3, 19, 2):
                headers = request_headers(METHOD, authorization(token))
                connections[-1].send(frame(HEADERS, END_HEADERS, stream, headers))
                first = b"\0" + struct.pack(">I", size)
                sent += connections[-1].send_data(stream, size - 1000, first, time.monotonic() + 2)
                if time.monotonic() > end or not 0 < target.memory("VmRSS") < TOO_MUCH_MB:
                    break
        except OSError:
            continue
    for connection in connections:
        connection.close()
    return Sent(sent, int((400 << 20) * scale), "bytes")


def neighbours_reflection(target: Target, scale: float) -> Sent:
    """Asks for reflection, with a token, with empty messages on streams whose answers are not read."""
    return unread(target, REFLECTION, message(b"") * 800, 5, 20 * scale, neighbour(target))


def neighbours_descriptors(target: Target, scale: float) -> Sent:
    """Asks for reflection, with a token, with names whose answers are large and not read."""
    asked = message(field(4, b"lengthwise.v1.ExperimentService"))  # file_containing_symbol
    return unread(target, REFLECTION, asked * 80, len(asked) * 80, 20 * scale, neighbour(target))


def neighbours_resolves(target: Target, scale: float) -> Sent:
    """Has 64 large specifications resolved at once, with a token."""
    return resolves(target, ["bucket_sort", "reverse_string", "parity_check"], 5000, "5", int(64 * scale))


def neighbours_specifications(target: Target, _scale: float) -> Sent:
    """Has 64 small specifications of 600 MB resolved at once, with a token."""
    return resolves(target, ["bucket_sort"], 2000, "1..100000", 64)


def resolves(target: Target, tasks: list[str], encodings: int, lengths: str, calls: int) -> Sent:
    """Has a specification resolved by several calls at once, with a token. The server may refuse them."""
    token = neighbour(target)
    request = resolve_request(tasks, randomized(encodings), lengths)

    def one(address: str) -> int:
        connection = Connection(target, address, timeout=60)
        with contextlib.suppress(OSError, ValueError):
            call(target, connection, 1, RESOLVE, request, token)
        connection.close()
        return 1

    return Sent(at_once(calls, one), calls, "calls")


def repeated(target: Target, connections: list[Connection], frames: bytes, count: int, seconds: float) -> Sent:
    """Sends `frames`, which are `count`, again and again on all connections, and reads nothing."""
    end = time.monotonic() + seconds
    sent = 0
    for connection in connections:
        connection.socket.settimeout(0.01)
    while time.monotonic() < end and 0 < target.memory("VmRSS") < TOO_MUCH_MB:
        for connection in connections:
            with contextlib.suppress(OSError):
                sent += connection.socket.send(frames) * count // len(frames)
    for connection in connections:
        connection.close()
    return Sent(sent, 50 * len(connections), "frames")


def control_frames() -> bytes:
    """Returns 800 frames that carry nothing and cost work."""
    settings = [struct.pack(">HI", key, value) for key, value in ((1, 0), (1, 1 << 30), (4, 0), (4, 0x7FFFFFFF))]
    return (
        b"".join(frame(SETTINGS, 0, 0, each) for each in settings)
        + frame(PING, 0, 0, bytes(8)) * 4
        + frame(PRIORITY, 0, 1, b"\0\0\0\0\x10") * 4
        + frame(RST_STREAM, 0, 1, struct.pack(">I", 8)) * 4
    ) * 50


def control(target: Target, scale: float) -> Sent:
    """Sends SETTINGS, PING, PRIORITY and RST_STREAM frames without end."""
    connections = [Connection(target, address) for address in FLOOD_ADDRESSES]
    return repeated(target, connections, control_frames(), 800, 20 * scale)


def trusted(target: Target) -> list[Connection]:
    """Returns a connection from each address that has made a call with a token."""
    token = neighbour(target)
    connections = [Connection(target, address, timeout=60) for address in FLOOD_ADDRESSES]
    for connection in connections:
        call(target, connection, 1, METHOD, token=token)
    return connections


def neighbours_control(target: Target, scale: float) -> Sent:
    """Sends, with a token, control frames without end."""
    return repeated(target, trusted(target), control_frames(), 800, 20 * scale)


def neighbours_pings(target: Target, scale: float) -> Sent:
    """Sends, with a token, PINGs without end."""
    return repeated(target, trusted(target), frame(PING, 0, 0, bytes(8)) * 800, 800, 20 * scale)


def neighbours_tiny(target: Target, scale: float) -> Sent:
    """Sends, with a token, empty messages in frames of one byte to a call that takes one."""
    return unread(target, METHOD, message(b"") * 800, 1, 20 * scale, neighbour(target))


def create(target: Target, seeds: str, lengths: str) -> bytes:
    """Creates an experiment. Returns its name."""
    request = field(4, specification(["bucket_sort"], ["none"], seeds, lengths))
    connection = Connection(target, "127.0.0.1", timeout=60)
    answer = call(target, connection, 1, CREATE_EXPERIMENT, request)
    connection.close()
    found = re.search(rb"experiments/[a-z]+-[0-9]+", answer)
    assert found is not None
    return found[0]


def store_attention_maps(target: Target, count: int) -> bytes:
    """Creates an experiment with `count` attention maps of 6 MB. Returns its name."""
    trial = Trial(target, "maps")
    connection = Connection(target, "127.0.0.1", timeout=60)
    tokens = 1200
    packed = field(2, bytes(tokens)) + field(3, bytes(tokens))
    attention = b"\x08\x05" + packed + b"\x20\x01\x28\x01" + field(6, bytes(4 * tokens * tokens))
    for number in range(count):
        trial.record(connection, 2 * number + 1, field(13, attention))
    connection.close()
    return trial.experiment


def submitters_grids(target: Target, scale: float) -> Sent:
    """Submits, with a token, grids of nearly 64 MiB in texts of 17 KB again and again. To spare the disk, the first ten are
    stored and the others checked."""
    token = neighbour(target, SUBMITTER)
    request = field(4, specification(["bucket_sort"], randomized(235), "0", "1..100000"))
    numbers = itertools.count()
    end = time.monotonic() + 20 * scale

    def submit(address: str) -> int:
        stored = 0
        connection = Connection(target, address, timeout=60)
        for stream in itertools.count(1, 2):
            is_check = next(numbers) >= 10
            # The server may refuse it.
            with contextlib.suppress(OSError, ValueError):
                call(target, connection, stream, CREATE_EXPERIMENT, request + field(2, int(is_check)), token)
                stored += not is_check
            if connection.closed or time.monotonic() > end or not 0 < target.memory("VmRSS") < TOO_MUCH_MB:
                break
        connection.close()
        return stored

    return Sent(at_once(max(1, int(64 * scale)), submit), max(1, int(10 * scale)), "stored submissions")


def unread_answers(
    target: Target, asked: list[tuple[str, bytes]], token: str, seconds: float, most: int = 1 << 31, window: int = 1000
) -> Sent:
    """Asks again and again on 64 connections, at most `most` times in all, and reads `window` bytes of each answer."""
    calls = [(request_headers(method, authorization(token)), message(request)) for method, request in asked]
    connections = [Connection(target, address, window=window) for address in FLOOD_ADDRESSES]
    end = time.monotonic() + seconds
    opened, least = 0, min(most, 640)
    for stream in itertools.count(1, 2):
        if opened >= most:
            time.sleep(max(0.0, end - time.monotonic()))
        if not goes_on(target, end, opened, least):
            break
        headers, request = calls[stream // 2 % len(calls)]
        for connection in connections:
            while connection.read(0):
                pass
            frames = frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, END_STREAM, stream, request)
            with contextlib.suppress(OSError):
                connection.socket.settimeout(0.01)
                opened += connection.socket.send(frames) == len(frames)
    for connection in connections:
        connection.close()
    return Sent(opened, least, "calls")


def unread_requests(target: Target, next_call: Callable[[int], tuple[str, bytes]], token: str, seconds: float) -> int:
    """Makes numbered calls, from 0, on 64 connections and reads no answer. Returns the number of bytes sent."""
    connections = [Connection(target, address, window=0) for address in FLOOD_ADDRESSES]
    end = time.monotonic() + seconds
    sent = 0
    for number in itertools.count():
        if time.monotonic() > end or not 0 < target.memory("VmRSS") < TOO_MUCH_MB:
            break
        connection = connections[number % len(connections)]
        stream = number // len(connections) * 2 + 1
        method, payload = next_call(number)
        request = message(payload)
        connection.settle()
        connection.send(frame(HEADERS, END_HEADERS, stream, request_headers(method, authorization(token))))
        sent += connection.send_data(stream, len(request), request, min(end, time.monotonic() + 2))
        connection.send(frame(DATA, END_STREAM, stream))
    for connection in connections:
        connection.close()
    return sent


def neighbours_requests(target: Target, scale: float) -> Sent:
    """Sends requests of a megabyte, with a token, and reads no answer: it is small, or repeats the request."""
    calls = [
        (RESOLVE, resolve_request(["bucket_sort"], ["none"], comment=1_000_000)),
        (REFLECTION, field(4, b"x" * 1_000_000)),  # file_containing_symbol
    ]
    sent = unread_requests(target, lambda number: calls[number % 2], neighbour(target), 40 * scale)
    return Sent(sent, int((400 << 20) * scale), "bytes")


def neighbours_fields(target: Target, scale: float) -> Sent:
    """Sends, with a token, requests of a megabyte whose empty fields need thirty and more in memory."""
    calls = [
        (RESOLVE, resolve_request(["bucket_sort"], ["none"]) + field(15, b"") * 500_000),  # unknown
        # Its specification has empty encodings. A viewer may not make this call, but it is parsed first.
        (CREATE_EXPERIMENT, field(3, field(7, b"") * 500_000)),
    ]
    sent = unread_requests(target, lambda number: calls[number % 2], neighbour(target), 40 * scale)
    return Sent(sent, int((50 << 20) * scale), "bytes")


def neighbours_metadata(target: Target, scale: float) -> Sent:
    """Opens, with a token, 8,192 calls with 15 KB of headers each and sends nothing on them."""
    connections = trusted(target)
    block = request_headers(METHOD) + literal("x", "y" * 15_000)
    sent = 0
    for stream in range(3, 3 + 2 * int(128 * scale), 2):
        for connection in connections:
            # The server ends one of them where the headers have too many bytes.
            if 0 < target.memory("VmRSS") < TOO_MUCH_MB:
                sent += connection.send(frame(HEADERS, END_HEADERS, stream, block))
    time.sleep(2)
    for connection in connections:
        connection.close()
    return Sent(sent, int(32 * 64 * scale), "calls")


def neighbours_resets(target: Target, scale: float) -> Sent:
    """Opens and resets, with a token, 300,000 streams on 64 connections."""
    return rapid_resets(trusted(target), RESOLVE, neighbour(target), int(4_700 * scale))


def neighbours_windows(target: Target, scale: float) -> Sent:
    """Sends, with a token, WINDOW_UPDATE frames of one byte without end."""
    return repeated(target, trusted(target), frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 800, 800, 20 * scale)


def neighbours_held(target: Target, scale: float) -> Sent:
    """Asks, with a token, for the catalogue, reads nothing of it, and goes on with PRIORITY frames, which wait for their turn."""
    connections = trusted(target)
    block = request_headers(LIST_CATALOGUE, authorization(neighbour(target)))
    for connection in connections:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        for stream in range(3, 203, 2):
            connection.send(frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, message(b"")))
    return repeated(target, connections, frame(PRIORITY, 0, 1, b"\0\0\0\0\x10") * 800, 800, 20 * scale)


def neighbours_connections(target: Target, scale: float) -> Sent:
    """Makes a call with a token on each of 256 connections and keeps them all."""
    token = neighbour(target)
    connections: list[Connection] = []
    end = time.monotonic() + 40 * scale
    for address in FLOOD_ADDRESSES * 4:
        if time.monotonic() > end:
            break
        # The server may refuse the call, and close a connection without one that it answered.
        with contextlib.suppress(OSError, ValueError):
            connections.append(Connection(target, address))
            call(target, connections[-1], 1, METHOD, token=token)
    time.sleep(10 * scale)
    for connection in connections:
        connection.close()
    return Sent(len(connections), 40, "connections")


def workers_calls(target: Target, scale: float) -> Sent:
    """Sends, with a token of workers, calls of a megabyte whose answers are held or not read."""

    def next_call(number: int) -> tuple[str, bytes]:
        if number % 3 == 2:
            return REGISTER, field(15, b"x" * 1_000_000)
        # A call of each worker, which wants a lease and waits for it for 60 s.
        waiting = worker_call(f"flood-{number}", b"experiments/none-1") + field(3, 1) + field(6, 1) + field(11, b"\x08\x3c")
        # An unknown field, or empty progress of many trials.
        return SYNCHRONIZE, waiting + (field(15, b"x" * 1_000_000) if number % 3 else field(7, b"") * 500_000)

    sent = unread_requests(target, next_call, neighbour(target, WORKER), 40 * scale)
    return Sent(sent, int((50 << 20) * scale), "bytes")


def workers_events(target: Target, scale: float) -> Sent:
    """Sends, with a token of workers, batches of events to a lease that does not exist, and reads no answer."""
    lease = field(1, b"lease-1") + field(2, 1)
    event = field(2, b"experiments/none-1/trials/t0") + field(3, 1) + field(4, 1) + field(5, 1)
    batches = [
        lease + field(3, event) + field(15, b"x" * 7_000_000),
        field(1, b"x" * 1_000_000) + field(3, event),  # the answer would repeat it
        lease + field(3, b"") * 500_000,
        lease + field(3, event) * 9_000,
    ]
    token = neighbour(target, WORKER)
    sent = unread_requests(target, lambda number: (STREAM_EVENTS, batches[number % 4]), token, 40 * scale)
    return Sent(sent, int((50 << 20) * scale), "bytes")


def workers_uploads(target: Target, scale: float) -> Sent:
    """Sends, with a token of workers, more bytes of checkpoints at once than a message of an upload may have."""
    token = neighbour(target, WORKER)
    sent = unread_requests(target, lambda _: (UPLOAD, field(2, b"x" * 7_000_000)), token, 40 * scale)
    return Sent(sent, int((50 << 20) * scale), "bytes")


def workers_leases(target: Target, scale: float) -> Sent:
    """Asks, with a token of workers, again and again for a lease of megabytes, and reads nothing of it."""
    start = worker_call("leases", create(target, "0..99", "1..20000"), packs=100)
    asked = [(SYNCHRONIZE, start + field(3, number) + field(6, 1)) for number in range(1, 5000)]
    return unread_answers(target, asked, neighbour(target, WORKER), 20 * scale)


def workers_resets(target: Target, scale: float) -> Sent:
    """Opens and resets, with a token of workers, 300,000 streams on 64 connections."""
    token = neighbour(target, WORKER)
    connections = [Connection(target, address, timeout=60) for address in FLOOD_ADDRESSES]
    for number, connection in enumerate(connections):
        first = worker_call(f"resets-{number}", b"experiments/none-1") + field(3, 1)
        call(target, connection, 1, SYNCHRONIZE, first, token)
    return rapid_resets(connections, SYNCHRONIZE, token, int(4_700 * scale))


def neighbours_small_answers(target: Target, scale: float) -> Sent:
    """Asks, with a token, for answers of 44 KB that nobody reads."""
    name = create(target, "0", "1..20000")
    return unread_answers(target, [(EXPERIMENTS + "GetExperiment", field(1, name))], neighbour(target), 20 * scale)


def neighbours_catalogue(target: Target, scale: float) -> Sent:
    """Asks, with a token, for the catalogue, which the server has in memory, and reads nothing of it."""
    return unread_answers(target, [(LIST_CATALOGUE, b"")], neighbour(target), 20 * scale)


def neighbours_long_answers(target: Target, scale: float) -> Sent:
    """Asks, with a token, for lists of megabytes and for attention maps, and reads little of them."""
    maps = store_attention_maps(target, 3)
    for _ in range(20):
        name = create(target, "0..99", "1..20000")
    asked = [
        (EXPERIMENTS + "ListTrials", field(1, name)),
        (EXPERIMENTS + "ListExperiments", b""),
        (EXPERIMENTS + "QueryAttentionMaps", field(1, maps)),
        (EXPERIMENTS + "SummarizeExperiment", field(1, name)),
    ]
    return unread_answers(target, asked, neighbour(target), 20 * scale)


def neighbours_watchers(target: Target, scale: float) -> Sent:
    """Watches, with a token, an experiment with attention maps 704 times and reads nothing of it."""
    watch = field(1, store_attention_maps(target, 3)) + b"\x18\x01"  # follows
    return unread_answers(target, [(EXPERIMENTS + "WatchExperiment", watch)], neighbour(target), 20 * scale, most=704)


def neighbours_pages(target: Target, scale: float) -> Sent:
    """Watches, with a token, an experiment with many points 2,048 times, and stops reading at the second page, a large one."""
    trial = Trial(target, "points")
    connection = Connection(target, "127.0.0.1", timeout=60)
    points = 600
    steps = b"".join(varint(step) for step in range(1, points + 1))
    columns = b"".join(field(number, bytes(4 * points)) for number in (2, 3, 4))
    for number in range(60):
        trial.record(connection, 2 * number + 1, field(11, field(1, steps) + columns + field(5, b"\x01" * points)))
    connection.close()
    watch = field(1, trial.experiment) + b"\x18\x01"  # follows
    asked = [(EXPERIMENTS + "WatchExperiment", watch)]
    return unread_answers(target, asked, neighbour(target), 20 * scale, most=2048, window=20_000)


FLOODS: dict[str, Callable[[Target, float], Sent]] = {
    "descriptors": descriptors,
    "gzip": gzip_bomb,
    "large": large_message,
    "resets": resets,
    "continuation": continuation,
    "halves": half_messages,
    "streams": open_streams,
    "reflection": reflection,
    "health_watch": health_watch,
    "health_check": health_check,
    "tiny": tiny_frames,
    "control": control,
    "slow": slow_starts,
    "neighbours_halves": neighbours_halves,
    "neighbours_reflection": neighbours_reflection,
    "neighbours_descriptors": neighbours_descriptors,
    "neighbours_resolves": neighbours_resolves,
    "neighbours_specifications": neighbours_specifications,
    "neighbours_control": neighbours_control,
    "neighbours_pings": neighbours_pings,
    "neighbours_tiny": neighbours_tiny,
    "neighbours_requests": neighbours_requests,
    "neighbours_small_answers": neighbours_small_answers,
    "neighbours_catalogue": neighbours_catalogue,
    "neighbours_long_answers": neighbours_long_answers,
    "neighbours_watchers": neighbours_watchers,
    "neighbours_pages": neighbours_pages,
    "neighbours_fields": neighbours_fields,
    "neighbours_metadata": neighbours_metadata,
    "neighbours_resets": neighbours_resets,
    "neighbours_windows": neighbours_windows,
    "neighbours_held": neighbours_held,
    "neighbours_connections": neighbours_connections,
    "submitters_grids": submitters_grids,
    "workers_resets": workers_resets,
    "workers_calls": workers_calls,
    "workers_events": workers_events,
    "workers_uploads": workers_uploads,
    "workers_leases": workers_leases,
}
# Only for servers with TLS.
TLS_FLOODS: dict[str, Callable[[Target, float], Sent]] = {
    "key_updates": key_updates,
    "hellos": client_hellos,
}


def percentile(seconds: list[float], part: float) -> float:
    """Returns the value that `part` of the times do not exceed."""
    return round(sorted(seconds)[min(int(len(seconds) * part), len(seconds) - 1)], 3) if seconds else 0.0


def run(target: Target, name: str, scale: float) -> dict[str, object]:
    """Runs one flood beside the probe. Returns its cost."""
    peak = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.01):
            peak = max(peak, target.memory("VmRSS"))

    watcher = threading.Thread(target=watch)
    before = target.memory("VmRSS")
    watcher.start()
    probe = Probe(target)
    start = time.monotonic()
    try:
        sent = (FLOODS | TLS_FLOODS)[name](target, scale)
    except (OSError, ValueError, AssertionError) as error:
        sent = Sent(0, 1, f"of the flood, which failed: {error!r}")
    seconds = time.monotonic() - start
    time.sleep(1)
    probe.stop()
    done.set()
    watcher.join()
    # The server has 30 s to give its memory back.
    end = time.monotonic() + 30
    while target.memory("VmRSS") > before + 50 and time.monotonic() < end:
        time.sleep(0.1)
    return {
        "flood": name,
        "sent": sent.amount,
        "least": sent.least,
        "unit": sent.unit,
        "seconds": round(seconds, 1),
        "before_mb": round(before),
        "peak_mb": round(peak),
        "after_mb": round(target.memory("VmRSS")),
        "heartbeats": len(probe.heartbeats),
        "heartbeats_p99": percentile(probe.heartbeats, 0.99),
        "heartbeats_max": percentile(probe.heartbeats, 1),
        "points": len(probe.points),
        "points_max": percentile(probe.points, 1),
        "clients": len(probe.clients),
        "clients_max": percentile(probe.clients, 1),
        "failures": probe.failures[:3],
    }


def problems(result: dict[str, object], max_mb: float, max_seconds: float) -> list[str]:
    """Returns what is wrong with the cost of a flood, or with the flood itself."""
    found = []
    if float(str(result["sent"])) < float(str(result["least"])):
        found.append(f"sent {result['sent']} {result['unit']}; at least {result['least']} make it a flood")
    if float(str(result["peak_mb"])) > max_mb:
        found.append(f"the server used {result['peak_mb']} MB; the limit is {max_mb:g}")
    if float(str(result["after_mb"])) == 0:
        found.append("the server ended")
    elif float(str(result["after_mb"])) > float(str(result["before_mb"])) + 50:
        found.append(f"the server kept {result['after_mb']} MB; it had {result['before_mb']} before")
    for what, unit, most in (
        ("heartbeats_max", "a heartbeat", max_seconds),
        ("heartbeats_p99", "99 % of heartbeats", max_seconds - 1),
        ("points_max", "a point of a watch", max_seconds - 1),
        ("clients_max", "a new client's call", max_seconds),
    ):
        if float(str(result[what])) > most:
            found.append(f"{unit} took {result[what]} s; the limit is {most:g}")
    if result["failures"]:
        found.append(f"valid calls failed: {result['failures']}")
    return found


def main() -> int:
    """Runs the floods named on the command line. Exits with 1 if one exceeds the limits or sent too little."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "floods", nargs="*", metavar="FLOOD", help=f"one or more of {', '.join(FLOODS | TLS_FLOODS)}; default: all"
    )
    parser.add_argument("--server", required=True, help="server address, on this machine")
    parser.add_argument("--pid", type=int, required=True, help="process id of the server, to read its memory")
    parser.add_argument("--tls", action="store_true", help="speak TLS; the certificate is not checked")
    parser.add_argument("--token_file", help="file with the probe's token; floods send no token")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the floods; 1 is the full size")
    parser.add_argument("--max_mb", type=float, default=500, help="limit for the server's memory, in MB")
    parser.add_argument(
        "--max_seconds",
        type=float,
        default=2,
        help="limit for the longest wait of a heartbeat or a new client, in seconds. 99 %% of heartbeats and each point of "
        "a watch get a second less",
    )
    arguments = parser.parse_intermixed_args()
    host, port = arguments.server.rsplit(":", 1)
    if not host.startswith("127."):
        parser.error("--server must be on the loopback, 127.0.0.0/8")
    token = pathlib.Path(arguments.token_file).read_text(encoding="ascii").strip() if arguments.token_file else ""
    target = Target(host, int(port), arguments.tls, arguments.pid, token)
    failed = False
    for name in arguments.floods or (FLOODS | TLS_FLOODS if arguments.tls else FLOODS):
        result = run(target, name, arguments.scale)
        print(json.dumps(result), flush=True)
        for problem in problems(result, arguments.max_mb, arguments.max_seconds):
            failed = True
            print(f"{name}: {problem}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
