"""Floods a Lengthwise server on this machine and reports what that costs the server.

Each flood speaks HTTP/2 on raw sockets, needs no token, and stops by itself. Meanwhile a probe makes one valid call
after another. Only servers on the loopback are flooded:

    floods.py --server 127.0.0.1:7070 --pid PID [--tls] [--scale 0.1] [FLOOD ...]
"""

import argparse
import dataclasses
import json
import pathlib
import select
import socket
import ssl
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
LARGEST_FRAME = 16384
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
METHOD = "/lengthwise.v1.ExperimentService/ListExperiments"
# Differs from the probe's address, as for a flood from another machine.
FLOOD_ADDRESS = "127.0.0.2"
# Entries 8 to 14 of HPACK's static table (RFC 7541, appendix A) are values of :status.
STATUSES = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Returns one HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name: str, value: str) -> bytes:
    """Returns one header as HPACK's literal without indexing, without Huffman coding."""

    def text(raw: bytes) -> bytes:
        if len(raw) < 127:
            return bytes([len(raw)]) + raw
        rest, encoded = len(raw) - 127, b"\x7f"
        while rest >= 128:
            encoded += bytes([rest % 128 + 128])
            rest //= 128
        return encoded + bytes([rest]) + raw

    return b"\x00" + text(name.encode()) + text(value.encode())


def request_headers(method: str, more: dict[str, str] | None = None) -> bytes:
    """Returns the header block of a gRPC call."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "flood",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    return b"".join(literal(name, value) for name, value in (headers | (more or {})).items())


def header_fields(block: bytes) -> dict[str, str]:
    """Returns the fields of a response's header blocks, which HPACK encoded without its dynamic table.

    Names of the static table other than :status, and text in Huffman coding, are not decoded.
    """
    at = 0

    def integer(bits: int) -> int:
        nonlocal at
        largest = (1 << bits) - 1
        value = block[at] & largest
        at += 1
        if value < largest:
            return value
        shift = 0
        while True:
            byte = block[at]
            at += 1
            value += (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text() -> str:
        nonlocal at
        is_huffman = block[at] & 0x80
        size = integer(7)
        raw = block[at : at + size]
        at += size
        return "Huffman " + raw.hex() if is_huffman else raw.decode("latin-1")

    fields = {}
    while at < len(block):
        first = block[at]
        if first & 0x80:
            index = integer(7)
            fields[":status" if index in STATUSES else f"field {index}"] = STATUSES.get(index, "")
        elif first & 0xE0 == 0x20:  # the new size of the dynamic table
            integer(5)
        else:
            index = integer(6 if first & 0x40 else 4)
            name = text() if index == 0 else ":status" if index in STATUSES else f"field {index}"
            fields[name] = text()
    return fields


@dataclasses.dataclass
class Sent:
    """What a flood sent. With less than `least`, it did not reach the limit that it tests."""

    amount: int
    least: int
    unit: str


@dataclasses.dataclass
class Target:
    """The server under test."""

    host: str
    port: int
    tls: bool
    pid: int
    token: str

    def memory(self, field: str) -> float:
        """Returns VmRSS or VmHWM in MB; 0 when the server is gone."""
        try:
            status = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        except OSError:
            return 0.0
        for line in status.splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1000
        return 0.0


class Connection:
    """An HTTP/2 connection that tracks its flow-control windows."""

    def __init__(self, target: Target, source: str = FLOOD_ADDRESS, timeout: float = 3) -> None:
        """Connects and sends the preface, with windows large enough for every answer."""
        self.socket: socket.socket = socket.create_connection((target.host, target.port), timeout, (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket)
        self.buffer = b""
        self.connection_window = 65535
        self.initial_window = 65535
        self.windows: dict[int, int] = {}
        self.blocks: dict[int, bytes] = {}  # header blocks of the answers, by stream
        self.ended: dict[int, int] = {}  # kind of the frame that ended the stream
        self.max_streams = 1 << 31
        self.closed = False
        # A table of size 0 makes each header block readable without the ones before it.
        settings = struct.pack(">HIHI", 1, 0, 4, 0x7FFFFFFF)
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))

    def send(self, data: bytes) -> bool:
        """Sends everything; False once the server has hung up."""
        try:
            self.socket.sendall(data)
        except OSError:
            self.closed = True
        return not self.closed

    def window(self, stream: int) -> int:
        """Returns how many bytes of DATA the stream may send."""
        return min(self.connection_window, self.windows.get(stream, self.initial_window))

    def read(self, timeout: float) -> bool:
        """Reads what has arrived, waiting at most `timeout` seconds. Returns False if nothing arrived."""
        pending = isinstance(self.socket, ssl.SSLSocket) and self.socket.pending() > 0
        if not pending:
            # Not select(), which does not accept descriptors above 1,023.
            waiting = select.poll()
            waiting.register(self.socket, select.POLLIN)
            if not waiting.poll(1000 * timeout):
                return False
        try:
            received = self.socket.recv(1 << 18)
        except OSError:
            received = b""
        if not received:
            self.closed = True
            return False
        self.buffer += received
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                break
            kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
            self.take(kind, flags, stream & 0x7FFFFFFF, self.buffer[9 : 9 + size])
            self.buffer = self.buffer[9 + size :]
        return True

    def take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Updates the connection's state from a frame."""
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                key, value = struct.unpack(">HI", payload[at : at + 6])
                if key == 4:
                    for open_stream in self.windows:
                        self.windows[open_stream] += value - self.initial_window
                    self.initial_window = value
                elif key == 3:
                    self.max_streams = value
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream == 0:
                self.connection_window += more
            else:
                self.windows[stream] = self.windows.get(stream, self.initial_window) + more
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind in (HEADERS, DATA, RST_STREAM):
            if kind == HEADERS:
                self.blocks[stream] = self.blocks.get(stream, b"") + payload
            if kind == RST_STREAM or flags & END_STREAM:
                self.ended.setdefault(stream, kind)
        elif kind == GOAWAY and payload[4:8] != b"\0\0\0\0":
            self.closed = True

    def send_data(self, stream: int, size: int, first: bytes, deadline: float) -> int:
        """Sends `first` and zeros, `size` bytes in total, as flow control permits. Returns the number of bytes sent."""
        sent = 0
        while sent < size and not self.closed and stream not in self.ended and time.monotonic() < deadline:
            part = min(LARGEST_FRAME, size - sent, self.window(stream))
            if part <= 0:
                self.read(0.2)
                continue
            payload = (first[sent : sent + part]).ljust(part, b"\0")
            if not self.send(frame(DATA, 0, stream, payload)):
                break
            sent += part
            self.connection_window -= part
            self.windows[stream] = self.windows.get(stream, self.initial_window) - part
            while self.read(0):
                pass
        return sent

    def close(self) -> None:
        """Closes the connection."""
        self.socket.close()


class Probe:
    """Makes valid calls until stopped, alternately on a kept and on a new connection. Records the slowest answer."""

    def __init__(self, target: Target) -> None:
        """Starts the thread."""
        self.target = target
        self.worst = 0.0
        self.calls = 0
        self.failures: list[str] = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def call(self, connection: Connection, stream: int) -> None:
        """Makes one call and checks that it succeeded."""
        more = {"authorization": "Bearer " + self.target.token} if self.target.token else {}
        connection.send(
            frame(HEADERS, END_HEADERS, stream, request_headers(METHOD, more))
            + frame(DATA, END_STREAM, stream, b"\0\0\0\0\0")
        )
        deadline = time.monotonic() + 10
        while stream not in connection.ended and not connection.closed and time.monotonic() < deadline:
            connection.read(0.5)
        if stream not in connection.ended:
            raise TimeoutError("hung up" if connection.closed else "no answer for 10 s")
        if connection.ended[stream] == RST_STREAM:
            raise ConnectionError("the call was reset")
        answer = header_fields(connection.blocks.get(stream, b""))
        if answer.get(":status") != "200" or answer.get("grpc-status") != "0":
            raise ValueError(f"the call failed: {answer}")

    def run(self) -> None:
        """Calls alternately on a kept connection and on a new one."""
        kept: Connection | None = None
        stream = 1
        while not self.stopping.is_set():
            for fresh in (False, True):
                start = time.monotonic()
                try:
                    if fresh:
                        connection = Connection(self.target, "127.0.0.1")
                        self.call(connection, 1)
                        connection.close()
                    else:
                        if kept is None:
                            kept = Connection(self.target, "127.0.0.1")
                            stream = 1
                        self.call(kept, stream)
                        stream += 2
                except (OSError, ValueError, IndexError) as error:
                    self.failures.append(f"{'new' if fresh else 'kept'} connection: {error}")
                    if not fresh:
                        kept = None
                self.calls += 1
                self.worst = max(self.worst, time.monotonic() - start)
            self.stopping.wait(0.02)
        if kept is not None:
            kept.close()

    def stop(self) -> None:
        """Ends the thread."""
        self.stopping.set()
        self.thread.join()


def descriptors(target: Target, scale: float) -> Sent:
    """Opens and closes more connections than the server may have descriptors."""
    connections = []
    count = int(2000 * scale)
    for _ in range(count):
        try:
            connections.append(socket.create_connection((target.host, target.port), 2, (FLOOD_ADDRESS, 0)))
        except OSError:
            break
    opened = len(connections)
    time.sleep(0.5)
    for connection in connections:
        connection.close()
    return Sent(opened, count // 2, "connections")


def gzip_bomb(target: Target, scale: float) -> Sent:
    """Sends one compressed message of 3 MB that is 3 GB of zeros."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = start + block * int(188 * scale)  # without the checksum, which would follow the zeros
    connection = Connection(target)
    connection.read(1)
    connection.send(frame(HEADERS, END_HEADERS, 1, request_headers(METHOD, {"grpc-encoding": "gzip"})))
    message = b"\x01" + struct.pack(">I", len(packed)) + packed
    sent = connection.send_data(1, len(message), message, time.monotonic() + 20)
    connection.send(frame(DATA, END_STREAM, 1))
    deadline = time.monotonic() + 10
    while 1 not in connection.ended and not connection.closed and time.monotonic() < deadline:
        connection.read(0.5)
    connection.close()
    # The server may refuse the call at its first frame.
    return Sent(sent, min(LARGEST_FRAME, len(message)), "bytes")


def large_message(target: Target, scale: float) -> Sent:
    """Sends one message of 700 MiB."""
    size = int(scale * 700) << 20
    connection = Connection(target)
    connection.read(1)
    connection.send(frame(HEADERS, END_HEADERS, 1, request_headers(METHOD)))
    sent = connection.send_data(1, size + 5, b"\0" + struct.pack(">I", size), time.monotonic() + 30)
    connection.close()
    # The first frame says how large the message is.
    return Sent(sent, min(LARGEST_FRAME, size), "bytes")


def resets(target: Target, scale: float) -> Sent:
    """Opens and resets 300,000 streams on four connections."""
    count = int(75_000 * scale)
    block = request_headers(METHOD)
    reset = struct.pack(">I", 8)
    sent = [0] * 4

    def flood(index: int) -> None:
        connection = Connection(target)
        for first in range(0, count, 500):
            batch = b"".join(
                frame(HEADERS, END_HEADERS, 2 * number + 1, block) + frame(RST_STREAM, 0, 2 * number + 1, reset)
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

    threads = [threading.Thread(target=flood, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The server reads the first 50 at once and 20 a second afterwards. The kernel takes this many in any case.
    return Sent(sum(sent), 4 * min(500, count), "streams")


def continuation(target: Target, scale: float) -> Sent:
    """Sends 2 GB of CONTINUATION frames that never end a header block."""
    connection = Connection(target)
    connection.send(frame(HEADERS, 0, 1, request_headers(METHOD)))
    payload = literal("x", "y" * 16000)
    one = frame(CONTINUATION, 0, 1, payload)
    sent = 0
    deadline = time.monotonic() + 30
    while sent < 2e9 * scale and time.monotonic() < deadline and connection.send(one):
        sent += len(one)
    connection.close()
    # Two frames exceed the limit of 16 KiB for a call's headers. The server may hang up on the second.
    return Sent(sent, 2 * len(one), "bytes")


def many(target: Target, count: int, each: Callable[[Connection, int], int], per_connection: int) -> int:
    """Runs `each` on `count` streams and keeps all open until the end. Returns the sum of its results."""
    connections: list[Connection] = []
    total = done = 0
    deadline = time.monotonic() + 40
    while done < count and time.monotonic() < deadline:
        try:
            connection = Connection(target)
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
        return connection.send_data(stream, size - (1 << 10), first, time.monotonic() + 2)

    count = int(300 * scale)
    # The server keeps at most 64 MiB of unfinished messages.
    return Sent(many(target, count, half, 10), min(64 << 20, count * size // 2), "bytes")


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


FLOODS: dict[str, Callable[[Target, float], Sent]] = {
    "descriptors": descriptors,
    "gzip": gzip_bomb,
    "large": large_message,
    "resets": resets,
    "continuation": continuation,
    "halves": half_messages,
    "streams": open_streams,
}


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
    sent = FLOODS[name](target, scale)
    seconds = time.monotonic() - start
    time.sleep(1)
    probe.stop()
    done.set()
    watcher.join()
    return {
        "flood": name,
        "sent": sent.amount,
        "least": sent.least,
        "unit": sent.unit,
        "seconds": round(seconds, 1),
        "before_mb": round(before),
        "peak_mb": round(peak),
        "after_mb": round(target.memory("VmRSS")),
        "probe_calls": probe.calls,
        "probe_worst_seconds": round(probe.worst, 2),
        "probe_failures": probe.failures[:3],
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
    if float(str(result["probe_worst_seconds"])) > max_seconds:
        found.append(f"a valid call took {result['probe_worst_seconds']} s; the limit is {max_seconds:g}")
    if result["probe_failures"]:
        found.append(f"valid calls failed: {result['probe_failures']}")
    return found


def main() -> int:
    """Runs the floods named on the command line. Exits with 1 if one exceeds the limits or sent too little."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("floods", nargs="*", metavar="FLOOD", help=f"one or more of {', '.join(FLOODS)}; default: all")
    parser.add_argument("--server", required=True, help="server address, on this machine")
    parser.add_argument("--pid", type=int, required=True, help="process id of the server, to read its memory")
    parser.add_argument("--tls", action="store_true", help="speak TLS; the certificate is not checked")
    parser.add_argument("--token_file", help="file with the probe's token; floods send no token")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the floods; 1 is the full size")
    parser.add_argument("--max_mb", type=float, default=500, help="limit for the server's memory, in MB")
    parser.add_argument("--max_seconds", type=float, default=2, help="limit for the probe's longest wait, in seconds")
    arguments = parser.parse_args()
    host, port = arguments.server.rsplit(":", 1)
    if not host.startswith("127."):
        parser.error("--server must be on the loopback, 127.0.0.0/8")
    token = pathlib.Path(arguments.token_file).read_text(encoding="ascii").strip() if arguments.token_file else ""
    target = Target(host, int(port), arguments.tls, arguments.pid, token)
    failed = False
    for name in arguments.floods or FLOODS:
        result = run(target, name, arguments.scale)
        print(json.dumps(result), flush=True)
        for problem in problems(result, arguments.max_mb, arguments.max_seconds):
            failed = True
            print(f"{name}: {problem}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
