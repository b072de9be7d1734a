"""Sanitises HTML in a process of its own; `podium.studio.store.sanitizing` starts it.

It runs as a script and imports nothing of Podium, so that it starts at once. For each document
that comes in on standard input, as its length in eight bytes and then UTF-8, the cleaned HTML goes
out in the same form. The process ends when its input does.
"""

from __future__ import annotations

import resource
import struct
import sys

import nh3

LENGTH = struct.Struct("<Q")
_MEMORY = 512 << 20
_URL_SCHEMES = {"http", "https", "mailto"}


def main() -> None:
    """Answer until there is no more input."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(LENGTH.size):
        markup = source.read(LENGTH.unpack(head)[0]).decode()
        cleaned = nh3.clean(markup, url_schemes=_URL_SCHEMES).encode()
        target.write(LENGTH.pack(len(cleaned)) + cleaned)
        target.flush()


if __name__ == "__main__":
    main()
