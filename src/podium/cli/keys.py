"""Single key presses, from a terminal or from lines of a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ARROWS = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left"}
_ARROWS |= {code.replace("[", "O"): name for code, name in _ARROWS.items()}

END = "end of input"


@contextmanager
def key_presses() -> Iterator[Callable[[], str]]:
    """Yield a function that waits for a key: a character, an arrow's name, or `END`.

    Where standard input is not a terminal, each of its lines is a key, so that a session can be
    scripted.
    """
    if not sys.stdin.isatty():
        yield _line
    elif sys.platform == "win32":
        yield _windows_key
    else:
        import termios
        import tty

        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        tty.setcbreak(terminal)
        try:
            yield lambda: _posix_key(terminal)
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _line() -> str:
    line = sys.stdin.readline()
    return line.strip() if line else END


def _posix_key(terminal: int) -> str:
    pressed = os.read(terminal, 16)
    if pressed in (b"", b"\x04"):
        return END
    # Of keys pressed at once only the first counts: nobody can have judged the next pair yet.
    text = pressed.decode(errors="replace")
    return _ARROWS.get(text, text[:1])


def _windows_key() -> str:
    import msvcrt

    arrows = {"H": "up", "P": "down", "M": "right", "K": "left"}
    pressed: str = msvcrt.getwch()  # type: ignore[attr-defined]
    if pressed in ("\x00", "\xe0"):
        return arrows.get(msvcrt.getwch(), "")  # type: ignore[attr-defined]
    return END if pressed in ("\x04", "\x1a") else pressed
