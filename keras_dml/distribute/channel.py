"""Messages between processes that share a secret, over any network."""

import hmac
import json
import secrets
import socket
import time
from typing import Any

# Bytes of a random number in hexadecimal digits.
NONCE = 32


class Channel:
    """Sends and receives JSON over a connection that strangers may open.

    Each side first sends a random number. These two and the secret make the
    key of the connection, `HMAC(secret, numbers)`, and each message carries
    `HMAC(key, sender, number of the message, message)`. So nobody without the
    secret can make a message, or send one of this or another connection again.

    Args:
        link: The connection.
        secret: What both sides know.
        listens: Whether this side accepted the connection.
        patience: Seconds until the other side must have shown that it knows
            the secret.
        longest: The most bytes of a message that is received.

    Raises:
        OSError: If the connection ends, or the other side does not answer in
            time.
    """

    def __init__(
        self,
        link: socket.socket,
        secret: bytes,
        *,
        listens: bool,
        patience: float,
        longest: int,
    ) -> None:
        self._link = link
        self._listens = listens
        self._deadline: float | None = time.monotonic() + patience
        self._longest = longest + 2 * NONCE
        self._received = b""
        # Numbers of the messages of the listening side, and of the other.
        self._counts = {True: 0, False: 0}
        own = secrets.token_hex(NONCE // 2).encode()
        link.sendall(own + b"\n")
        other = self._line(NONCE)
        numbers = own + other if listens else other + own
        self._key = hmac.digest(secret, numbers, "sha256")

    def say(self, message: Any) -> None:
        """Sends a message."""
        text = json.dumps(message).encode()
        code = self._code(self._listens, text)
        self._link.sendall(code + text + b"\n")

    def hear(self) -> Any:
        """Waits for a message.

        Raises:
            OSError: If the connection ends, or the message is too long or
                was not made by the other side.
        """
        line = self._line(self._longest)
        code, text = line[: 2 * NONCE], line[2 * NONCE :]
        if not hmac.compare_digest(code, self._code(not self._listens, text)):
            raise ConnectionError("The other side does not know the secret.")
        # From now on the caller judges how long to wait.
        self._deadline = None
        return json.loads(text)

    def _code(self, listens: bool, text: bytes) -> bytes:
        """Returns the code of the next message of one side."""
        self._counts[listens] += 1
        start = f"{listens} {self._counts[listens]} ".encode()
        return hmac.digest(self._key, start + text, "sha256").hex().encode()

    def _line(self, longest: int) -> bytes:
        while b"\n" not in self._received:
            if len(self._received) > longest:
                raise ConnectionError("The message is too long.")
            left = None
            if self._deadline is not None:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
            self._link.settimeout(left)
            piece = self._link.recv(4096)
            if not piece:
                raise ConnectionError("The connection has ended.")
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        return line
