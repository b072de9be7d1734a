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
_STYLES = {
    "background-color", "border", "border-bottom", "border-collapse", "border-color",
    "border-left", "border-radius", "border-right", "border-spacing", "border-style", "border-top",
    "border-width", "color", "direction", "font-size", "font-style", "font-variant", "font-weight",
    "letter-spacing", "line-height", "list-style-type", "margin", "margin-bottom", "margin-left",
    "margin-right", "margin-top", "max-width", "padding", "padding-bottom", "padding-left",
    "padding-right", "padding-top", "text-align", "text-decoration", "text-indent",
    "text-transform", "vertical-align", "white-space", "width", "word-break",
}  # fmt: skip
"""How text may look: none of these loads anything."""
_ATTRIBUTES = {**nh3.ALLOWED_ATTRIBUTES, "*": {"style", "dir", "lang"}}


def main() -> None:
    """Answer until there is no more input."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(LENGTH.size):
        markup = source.read(LENGTH.unpack(head)[0]).decode()
        cleaned = nh3.clean(
            markup,
            attributes=_ATTRIBUTES,
            filter_style_properties=_STYLES,
            url_schemes=_URL_SCHEMES,
        ).encode()
        target.write(LENGTH.pack(len(cleaned)) + cleaned)
        target.flush()


if __name__ == "__main__":
    main()
