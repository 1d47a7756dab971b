"""HTTP/2 endpoints that give answers which no gRPC server can be told to give."""
import socket
import struct

import service

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4
OK = b"\x88"  # :status 200
GRPC = ("content-type", "application/grpc")


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def block(*fields, status=OK):
    """Without compression."""

    def text(value):
        size = len(value)
        if size < 127:
            return bytes([size]) + value
        return bytes([127, (size - 127) & 127 | 128, (size - 127) >> 7 & 127 | 128, (size - 127) >> 14]) + value

    return status + b"".join(b"\0" + text(name.encode()) + text(value.encode()) for name, value in fields)


def calls(received):
    """The streams of the calls that arrive."""
    while header := received.read(9):
        received.read(int.from_bytes(header[:3], "big"))
        if header[3] == HEADERS:
            yield int.from_bytes(header[5:], "big")


class RawServer:
    """Answers every call of one connection with these fields, this data and nothing more."""

    def __init__(self, fields=(), data=b"", ends=True):
        self._fields, self._data, self._ends = fields, data, ends
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = service.in_background(self._serve)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self):
        with self._listener.accept()[0] as connection, connection.makefile("rb") as received:
            received.read(24)
            connection.sendall(frame(SETTINGS, 0, 0))
            for stream in calls(received):
                at_once = END_STREAM if self._ends and not self._data else 0
                connection.sendall(frame(HEADERS, END_HEADERS | at_once, stream, block(*self._fields)))
                if self._data:
                    connection.sendall(frame(DATA, END_STREAM if self._ends else 0, stream, self._data))
