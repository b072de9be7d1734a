"""What ``podium judge`` shows: two documents side by side, and the top k at the end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from podium.cli.text import shown
from podium.judging import Mark, Outcome, Pair, Session, SessionFile, Verdict
from podium.judging.entries import active_entries, seconds_spent


class Stopwatch:
    """Counts the seconds of one judgment, pauses left out.

    Args:
        clock: Tells the time in seconds.

    Example:
        >>> times = iter([0.0, 4.0, 64.0, 65.5])
        >>> watch = Stopwatch(lambda: next(times))  # starts at 0
        >>> watch.pause()  # at 4, for a minute
        >>> watch.resume()  # at 64
        >>> watch.lap()  # at 65.5
        5.5
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counted = 0.0
        self._since: float | None = clock()

    @property
    def running(self) -> bool:
        """Whether time counts at the moment."""
        return self._since is not None

    def pause(self) -> None:
        """Stop counting; does nothing if it is stopped."""
        if self._since is not None:
            self._counted += self._clock() - self._since
            self._since = None

    def resume(self) -> None:
        """Count again; does nothing if it counts."""
        if self._since is None:
            self._since = self._clock()

    def lap(self) -> float:
        """The seconds counted since the last lap; the next lap starts now."""
        now = self._clock()
        seconds = self._counted + (0.0 if self._since is None else now - self._since)
        self._counted, self._since = 0.0, now
        return seconds


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
    # Only the first of keys pressed at once counts: nobody can have judged the next pair yet.
    text = pressed.decode(errors="replace")
    return _ARROWS.get(text, text[:1])


def _windows_key() -> str:
    import msvcrt

    arrows = {"H": "up", "P": "down", "M": "right", "K": "left"}
    pressed: str = msvcrt.getwch()  # type: ignore[attr-defined]
    if pressed in ("\x00", "\xe0"):
        return arrows.get(msvcrt.getwch(), "")  # type: ignore[attr-defined]
    return END if pressed in ("\x04", "\x1a") else pressed


_OUTCOMES = {
    "left": Outcome.LEFT,
    "a": Outcome.LEFT,
    "right": Outcome.RIGHT,
    "b": Outcome.RIGHT,
    "down": Outcome.TIE,
    "=": Outcome.TIE,
    "t": Outcome.TIE,
}
_HELP = (
    ("← a", "left"),
    ("→ b", "right"),
    ("↓ =", "tie"),
    ("1 2", "bad"),
    ("space", "more"),
    ("u", "undo"),
    ("p", "pause"),
    ("q", "quit"),
)
_FRAME = 4
"""Columns taken by a panel's border and padding."""

_AROUND = 7
"""Lines of the screen that are not used for the documents."""


def judge(journal: SessionFile, assessor: str) -> bool:
    """Ask about pairs until none is open or the assessor leaves; returns whether none is open."""
    console = Console()
    asked_again: set[frozenset[str]] = set()
    with key_presses() as press:
        while True:
            pair, note = _next_pair(journal.session, assessor, asked_again)
            if pair is None:
                return True
            watch = Stopwatch()
            key = _answer(_Screen(console, journal, pair, note), press, watch)
            now, seconds = time.time(), round(watch.lap(), 2)
            if key in ("q", END):
                return False
            if key == "u":
                journal.undo(assessor, at=now)
                continue
            if note:
                asked_again.add(frozenset(pair))
            if key in ("1", "2"):
                item = pair.left if key == "1" else pair.right
                journal.add(Mark(item, assessor, now, seconds))
            else:
                journal.add(Verdict(*pair, _OUTCOMES[key], assessor, now, seconds))


def print_result(journal: SessionFile) -> None:
    """Print the top k, final or so far, and the judgments and time it took."""
    console = Console()
    if console.is_terminal:
        console.clear()
    session = journal.session
    result = session.result()
    so_far = "" if result.complete else " so far"
    table = Table(title=f"The top {len(result.top)}{so_far}", title_justify="left", box=None)
    table.add_column("", justify="right")
    table.add_column("document", overflow="fold")
    table.add_column("title", overflow="ellipsis", no_wrap=True)
    table.add_column("")
    equal = {item for level in result.levels for item in level[1:]}
    for rank, item in enumerate(result.top, 1):
        same = "= as the one above" if item in equal else ""
        table.add_row(str(rank), shown(item), shown(_about_item(journal, item, "title")), same)
    console.print(table)
    minutes = seconds_spent(session.log) / 60
    state = "done" if result.complete else f"about {session.expected_left():.0f} to go"
    judged = len(active_entries(session.log))
    console.print(f"{judged} judgments, {minutes:.1f} minutes, {state}", highlight=False)


def _next_pair(
    session: Session, assessor: str, asked_again: set[frozenset[str]]
) -> tuple[Pair[str] | None, str]:
    """Return an open pair; if there is none, a pair of a contradiction, asked again only once."""
    pairs = session.open_pairs(assessor)
    if pairs:
        return pairs[0], ""
    for contradiction in session.contradictions():
        if frozenset(contradiction.ask_again) not in asked_again:
            note = f"Once more: {len(contradiction.loop)} verdicts form a cycle."
            return contradiction.ask_again, note
    return None, ""


def _answer(screen: _Screen, press: Callable[[], str], watch: Stopwatch) -> str:
    """Show a pair until a key is pressed that judges it or quits."""
    screen.show()
    while True:
        key = press()
        if key in ("q", END, "u", "1", "2", *_OUTCOMES):
            return key
        if key in (" ", "m"):
            screen.turn_page()
        elif key == "p":
            watch.pause()
            screen.say("Paused. Press any key to go on.")
            if press() == END:
                return END
            watch.resume()
            screen.show()


class _Screen:
    """A pair of documents side by side, one page at a time."""

    def __init__(self, console: Console, journal: SessionFile, pair: Pair[str], note: str) -> None:
        self._console = console
        self._about = journal.about
        self._note = note
        self._page = 0
        self._judged = len(active_entries(journal.session.log))
        self._left = journal.session.expected_left()
        width = max(console.width // 2 - _FRAME, 1)
        self._lines = [_lines(console, journal, item, width) for item in pair]
        longest = max(map(len, self._lines))
        self._page_height = max(console.height - _AROUND, 3) if console.is_terminal else longest

    def turn_page(self) -> None:
        """Show the next page, or the first one after the last."""
        longest = max(map(len, self._lines))
        self._page = 0 if (self._page + 1) * self._page_height >= longest else self._page + 1
        self.show()

    def say(self, text: str) -> None:
        self._console.print(Text(text, "bold yellow"))

    def show(self) -> None:
        console = self._console
        if console.is_terminal:
            console.clear()
        head = shown(_text(self._about.get("query")))
        head.stylize("bold")
        head.append_text(Text("  ")).append_text(shown(_text(self._about.get("description"))))
        head.truncate(console.width, overflow="ellipsis")
        console.print(head)
        progress = Table.grid(padding=(0, 2))
        progress.add_row(
            ProgressBar(self._judged + self._left, self._judged, width=min(30, console.width // 3)),
            Text(f"{self._judged} judged, about {self._left:.0f} to go"),
            Text(self._note, "bold yellow"),
        )
        console.print(progress)
        sides = Table.grid(padding=0)
        sides.add_row(*(self._side(side) for side in range(2)))
        console.print(sides)
        keys = [Text.assemble((key, "bold cyan"), " ", what) for key, what in _HELP]
        console.print(Text("  ").join(keys))

    def _side(self, side: int) -> Panel:
        lines = self._lines[side]
        begin = self._page * self._page_height
        more = len(lines) > begin + self._page_height
        return Panel(
            Group(*lines[begin : begin + self._page_height]),
            width=self._console.width // 2,
            height=self._page_height + 2 if self._console.is_terminal else None,
            title=("left", "right")[side],
            subtitle="space for more" if more else None,
            border_style="cyan",
        )


def _lines(console: Console, journal: SessionFile, item: str, width: int) -> list[Text]:
    """Wrap a document to a width."""
    title = shown(_about_item(journal, item, "title") or item)
    title.stylize("bold")
    url = shown(_about_item(journal, item, "url"))
    url.stylize("blue")
    text = _about_item(journal, item, "text")
    body = [shown(line.expandtabs(4)) for line in text.splitlines()]
    parts = [title, *([url] if url.plain else []), *body]
    return [line for part in parts for line in part.wrap(console, width) or [Text("")]]


def _about_item(journal: SessionFile, item: str, name: str) -> str:
    """Return a field of a document; the file is untrusted, so the field may be of any type."""
    texts = journal.about.get("texts")
    values = texts.get(item) if isinstance(texts, dict) else None
    return _text(values.get(name)) if isinstance(values, dict) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
