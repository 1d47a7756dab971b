"""A client of gRPC by hand, on a raw socket: it sends what no library would, and sees what comes back.

HTTP/2 (RFC 9113) with HPACK (RFC 7541) that writes literals alone, and fields of Protocol Buffers.
"""

import dataclasses
import pathlib
import select
import socket
import ssl
import struct
import time

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
LARGEST_FRAME = 16384
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
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


def authorization(token: str) -> dict[str, str]:
    """Returns the header that shows the token; none without one."""
    return {"authorization": "Bearer " + token} if token else {}


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

    def __init__(self, target: Target, source: str, timeout: float = 3, window: int = 0x7FFFFFFF) -> None:
        """Connects from the address `source` and sends the preface. `window` is how much of each answer may come before it
        is read."""
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
        self.data: dict[int, bytes] = {}  # of the answers
        self.ended: dict[int, int] = {}  # kind of the frame that ended the stream
        self.max_streams = 1 << 31
        self.settled = False
        self.closed = False
        # A table of size 0 makes each header block readable without the ones before it.
        settings = struct.pack(">HIHI", 1, 0, 4, window)
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
        at = 0
        while len(self.buffer) >= at + 9:
            size = int.from_bytes(self.buffer[at : at + 3], "big")
            if len(self.buffer) < at + 9 + size:
                break
            kind, flags, stream = struct.unpack_from(">BBI", self.buffer, at + 3)
            self.take(kind, flags, stream & 0x7FFFFFFF, self.buffer[at + 9 : at + 9 + size])
            at += 9 + size
        self.buffer = self.buffer[at:]
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
            self.settled = True
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
            elif kind == DATA:
                self.data[stream] = self.data.get(stream, b"") + payload
            if kind == RST_STREAM or flags & END_STREAM:
                self.ended.setdefault(stream, kind)
        elif kind == GOAWAY and payload[4:8] != b"\0\0\0\0":
            self.closed = True

    def settle(self) -> None:
        """Waits for the server's settings, as gRPC's clients do: before them, gRPC may reset a stream with much data."""
        deadline = time.monotonic() + 60
        while not self.settled and not self.closed and time.monotonic() < deadline:
            self.read(0.5)

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


def message(payload: bytes) -> bytes:
    """Returns a gRPC message with its prefix."""
    return b"\0" + struct.pack(">I", len(payload)) + payload


def field(number: int, value: bytes | int) -> bytes:
    """Returns a field of a Protobuf message: text, a message or a number that is not negative."""
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(value: int) -> bytes:
    """Returns a number as Protobuf encodes it."""
    encoded = b""
    while value >= 128:
        encoded += bytes([value % 128 + 128])
        value //= 128
    return encoded + bytes([value])


def call(target: Target, connection: Connection, stream: int, method: str, payload: bytes = b"", token: str = "") -> bytes:
    """Makes one call with the target's token, or another, checks that it succeeded, and returns the answer."""
    headers = request_headers(method, authorization(token or target.token))
    connection.settle()
    connection.send(frame(HEADERS, END_HEADERS, stream, headers))
    sent = message(payload)
    connection.send_data(stream, len(sent), sent, time.monotonic() + 60)
    connection.send(frame(DATA, END_STREAM, stream))
    deadline = time.monotonic() + 60
    while stream not in connection.ended and not connection.closed and time.monotonic() < deadline:
        connection.read(0.5)
    if stream not in connection.ended:
        raise TimeoutError("hung up" if connection.closed else "no answer for 60 s")
    if connection.ended[stream] == RST_STREAM:
        raise ConnectionError("the call was reset")
    answer = header_fields(connection.blocks.get(stream, b""))
    if answer.get(":status") != "200" or answer.get("grpc-status") != "0":
        raise ValueError(f"the call failed: {answer}")
    return connection.data.get(stream, b"")[5:]
