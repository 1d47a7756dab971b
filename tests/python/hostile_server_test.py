"""Attacks the package, the program and a worker with servers that break the rules of HTTP/2 or gRPC, each in another way.
The clients end with an error of their own; the worker goes on until a real server is back.

$ACTS is the number of ways that the worker meets; the clients meet all.
"""
import itertools
import os
import random
import socket
import struct
import subprocess
import unittest

import service
from raw_server import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    GRPC,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    block,
    calls,
    frame,
)

lengthwise = service.lengthwise

ACTS_OF_WORKER = int(os.environ.get("ACTS", "6"))
WORKER = os.environ.get("WORKER", "worker/lengthwise_worker")
MEMORY_KIB = 2 << 20


def trailers(stream, *fields):
    """An answer of headers alone."""
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, block(GRPC, *fields))


def answer(stream, data, *fields, ends=True):
    begun = frame(HEADERS, END_HEADERS, stream, block(GRPC, *fields)) + frame(DATA, 0, stream, data)
    return begun + (frame(HEADERS, END_HEADERS | END_STREAM, stream, block(("grpc-status", "0"))) if ends else b"")


def message(data, size=None, flag=0):
    return struct.pack(">BI", flag, len(data) if size is None else size) + data


NOISE = random.Random(59).randbytes(4000)
# What is sent as soon as a connection is there, instead of HTTP/2.
AT_ONCE = {
    "nothing": b"",
    "a page": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "noise": NOISE,
    "TLS": b"\x15\x03\x03\x00\x02\x02\x28",
    "frames of noise": frame(SETTINGS, 0, 0) + NOISE,
    "settings that cannot be": frame(SETTINGS, 0, 0, struct.pack(">HI", 5, 1)),
    "a frame of 16 MiB": frame(SETTINGS, 0, 0) + b"\xff\xff\xff" + struct.pack(">BBI", DATA, 0, 1),
    "a window that overflows": frame(SETTINGS, 0, 0) + 2 * frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 1)),
    "goodbye": frame(SETTINGS, 0, 0) + frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)),
}
# How a call is answered, by its stream.
ANSWERS = {
    "status 503": lambda one: frame(HEADERS, END_HEADERS | END_STREAM, one, block(status=b"\x08\x03503")),
    "status 200 of a page": lambda one: frame(HEADERS, END_HEADERS, one, block(("content-type", "text/html")))
    + frame(DATA, END_STREAM, one, b"<p>healthy"),
    "no status": lambda one: frame(HEADERS, END_HEADERS, one, b"") + frame(DATA, END_STREAM, one, message(b"")),
    "grpc-status abc": lambda one: trailers(one, ("grpc-status", "abc")),
    "grpc-status -1": lambda one: trailers(one, ("grpc-status", "-1")),
    "empty grpc-status": lambda one: trailers(one, ("grpc-status", "")),
    "grpc-status 99": lambda one: trailers(one, ("grpc-status", "99")),
    "grpc-status 0 and no message": lambda one: trailers(one, ("grpc-status", "0")),
    "a message of escapes": lambda one: trailers(one, ("grpc-status", "13"), ("grpc-message", "%1b%5B31m%00%ff%")),
    "details that are no base64": lambda one: trailers(one, ("grpc-status", "13"), ("grpc-status-details-bin", "*!")),
    "a megabyte of fields": lambda one: frame(HEADERS, 0, one, block(GRPC))
    + b"".join(frame(CONTINUATION, 0, one, b"\0\1a\x7f\x81\x7f" + bytes(16384 - 6)) for _ in range(64)),
    "fields without an end": lambda one: frame(HEADERS, 0, one, block(GRPC)) + 3000 * frame(CONTINUATION, 0, one),
    "compression that nobody wrote": lambda one: frame(HEADERS, END_HEADERS | END_STREAM, one, b"\xff\xff\xff\xff\xff"),
    "64 MiB announced": lambda one: answer(one, message(b"", (64 << 20) + 1), ends=False),
    "4 GiB announced": lambda one: answer(one, message(b"", (1 << 32) - 1), ends=False),
    "half a message": lambda one: answer(one, message(b"\x0a\x05ab", 40)),
    "a message of noise": lambda one: answer(one, message(NOISE)),
    "compressed by nobody": lambda one: answer(one, message(b"x", flag=1)),
    "compressed by gzip": lambda one: answer(one, message(b"x", flag=1), ("grpc-encoding", "gzip")),
    "a flag that is none": lambda one: answer(one, message(b"", flag=7)),
    "two messages": lambda one: answer(one, 2 * message(b"")),
    "the stream's end": lambda one: frame(RST_STREAM, 0, one, struct.pack(">I", 2)),
    "an end for a reason of its own": lambda one: frame(RST_STREAM, 0, one, struct.pack(">I", 999)),
    "data before fields": lambda one: frame(DATA, 0, one, message(b"")),
    "data of no stream": lambda one: frame(DATA, 0, 0, message(b"")),
    "fields of a stream that nobody opened": lambda one: frame(HEADERS, END_HEADERS, one + 2, block(GRPC)),
    "goodbye in the middle": lambda one: frame(HEADERS, END_HEADERS, one, block(GRPC))
    + frame(GOAWAY, 0, 0, struct.pack(">II", 0, 11)),
    "pings": lambda one: 5000 * frame(PING, 0, 0, bytes(8)) + trailers(one, ("grpc-status", "13")),
}


class HostileServer:
    """Each connection meets the next act and is closed after it; later ones reach the server at `behind`."""

    def __init__(self, acts, behind=""):
        self._acts, self._behind = iter(acts), behind
        self.done = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        service.in_background(self._accept)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            act = next(self._acts, None)
            self.done += act is not None
            service.in_background(lambda connection=connection, act=act: self._serve(connection, act))

    def _serve(self, connection, act):
        with connection:
            try:
                if act is None:
                    self._forward(connection)
                else:
                    self._act(connection, act)
            except OSError:
                pass  # the client closed it first

    @staticmethod
    def _act(connection, act):
        with connection.makefile("rb") as received:
            if act in AT_ONCE:
                connection.sendall(AT_ONCE[act])
            else:
                received.read(24)
                connection.sendall(frame(SETTINGS, 0, 0))
                connection.sendall(ANSWERS[act](next(calls(received), 1)))
            connection.shutdown(socket.SHUT_WR)
            while received.read1():
                pass

    def _forward(self, connection):
        host, port = self._behind.split(":")
        with socket.create_connection((host, int(port))) as server:

            def pump(source, target):
                while data := source.recv(1 << 16):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)

            thread = service.in_background(lambda: pump(server, connection))
            pump(connection, server)
            thread.join()


class HostileServerTest(unittest.TestCase):
    def setUp(self):
        self.directory = service.new_directory()

    def meet(self, act):
        # Clients connect again a few times.
        server = HostileServer(itertools.repeat(act))
        self.addCleanup(server.close)
        return server

    def test_package_raises_its_own_errors(self):
        for act in [*AT_ONCE, *ANSWERS]:
            with self.subTest(act):
                server = self.meet(act)
                with (
                    lengthwise.Client(server.address, timeout=5) as client,
                    self.assertRaises(lengthwise.LengthwiseError) as caught,
                ):
                    client.experiments()
                self.assertTrue(str(caught.exception).isprintable(), str(caught.exception))
                self.assertGreater(len(str(caught.exception)), 10)
                self.assertGreater(server.done, 0)

    def test_program_ends_with_an_error_of_its_own(self):
        for act in [*AT_ONCE, *ANSWERS]:
            with self.subTest(act):
                server = self.meet(act)
                ended = subprocess.run(
                    ["bash", "-c", f'ulimit -d {MEMORY_KIB}; exec "$@"', "bash", str(service.ROOT / service.CLIENT), "list",
                     "--server", server.address],
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
                    env={**service.ENVIRONMENT, "HOME": str(self.directory)},
                )  # fmt: skip
                self.assertIn(ended.returncode, (1, 2, 3), ended)
                self.assertRegex(ended.stderr, r"^lengthwise: \S.{10}")
                self.assertTrue(ended.stderr.rstrip("\n").replace("\n", "").isprintable(), ended.stderr)
                self.assertGreater(server.done, 0)

    def test_worker_goes_on_with_the_real_server(self):
        real = service.Server()
        self.addCleanup(real.kill)
        acts = [*AT_ONCE, *ANSWERS]
        hostile = HostileServer(acts[:: max(1, len(acts) // ACTS_OF_WORKER)], real.address)
        self.addCleanup(hostile.close)
        with lengthwise.Client(real.address) as client:
            training = {"steps": 5, "batch_size": 2, "lengths": "1..2"}
            experiment = client.submit(service.specification("hostile", training=training, encodings="none", seeds=0))
            log = self.directory / "log"
            with log.open("wb") as output:
                worker = subprocess.Popen(
                    ["bash", "-c", f'ulimit -d {2 * MEMORY_KIB}; exec "$@"', "bash", str(service.ROOT / WORKER), "--server",
                     hostile.address, "--device", "cpu", "--threads", "1", "--data_cache_dir", str(self.directory / "cache")],
                    stdout=output, stderr=output, env={**service.ENVIRONMENT, "HOME": str(self.directory)},
                )  # fmt: skip
            try:
                experiment.wait(timeout=600)
                self.assertEqual(experiment.counts.succeeded, 1, log.read_text())
                self.assertIsNone(worker.poll(), log.read_text())
                self.assertGreaterEqual(hostile.done, ACTS_OF_WORKER)
                worker.terminate()
                self.assertEqual(worker.wait(timeout=service.DEADLINE), 0, log.read_text())
            finally:
                worker.kill()
                worker.wait()


if __name__ == "__main__":
    unittest.main()
