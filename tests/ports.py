"""Ports of this machine that nobody listens at."""

from __future__ import annotations

import random
import socket

_PORTS = range(20_000, 32_000)
"""Below those that Linux gives to connections, and above those that Ray gives to its workers."""

_draw = random.SystemRandom()  # not what a test seeds: two processes must not draw the same
_given: set[int] = set()


def free_port() -> int:
    """A port that was free a moment ago, and that this process was not given before."""
    while True:
        port = _draw.choice(_PORTS)
        if port in _given:
            continue
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
