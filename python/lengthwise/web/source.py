"""The server whose experiments are shown."""
from __future__ import annotations

import threading
from collections.abc import Callable

from lengthwise.connection import Connection


class Source:
    """Opens the connection again if its server has ended for good: the one of a `lengthwise run` on a data directory. After
    it, a private server reads the directory.
    """

    def __init__(self, open_connection: Callable[[], Connection]) -> None:
        self._open = open_connection
        self._lock = threading.Lock()
        self.connection = open_connection()

    def reopen(self, failed: Connection) -> None:
        """LengthwiseError if there is no server."""
        with self._lock:
            if self.connection is failed:
                self.connection = self._open()

    def close(self) -> None:
        self.connection.close()
