"""A TCP proxy on the loopback interface that counts the bytes clients send through it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PIECE = 1 << 18


class CountingProxy:
    """Pass connections on to a port; `sent` is how many bytes, headers and all, clients have sent so far."""

    def __init__(self, port: int) -> None:
        """Listen on a free port for what is to go to `port`."""
        self.sent = 0
        self._target = port
        self._counting = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @contextmanager
    def running(self) -> Iterator["CountingProxy"]:
        """Take connections until the end of the block."""
        threading.Thread(target=self._accept, daemon=True).start()
        try:
            yield self
        finally:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed at the end
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                threading.Thread(target=self._pass_on, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(server, client, False), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_counted: bool) -> None:
        with suppress(OSError):  # either side hung up
            while piece := source.recv(_PIECE):
                if is_counted:
                    with self._counting:
                        self.sent += len(piece)
                target.sendall(piece)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
