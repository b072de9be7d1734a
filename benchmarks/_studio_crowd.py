"""Simulated assessors over HTTP, frugal: on one machine they share its cores with the servers."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_FIRST_TASKS = 100
"""How many first tasks a second are handed out at the least."""
_PEOPLE_PER_ADDRESS = 200


class HttpError(Exception):
    """The server answered with a status that is not success."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status


class Line:
    """One connection to a server, kept open."""

    def __init__(self, port: int, token: str, source: str) -> None:
        self._port = port
        self._source = source
        self._head = (
            f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, unless it is connected."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                "127.0.0.1", self._port, local_addr=(self._source, 0)
            )
        return self._streams

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send JSON and return what comes back."""
        reader, writer = await self.open()
        content = json.dumps(body)
        writer.write(
            f"POST {path} HTTP/1.1\r\n{self._head}{len(content)}\r\n\r\n{content}".encode()
        )
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        start = head.index(b"content-length:") + 15
        length = int(head[start : head.index(b"\r\n", start)])
        answer = json.loads(await reader.readexactly(length))
        status = int(head[9:12])
        if status >= 300:
            raise HttpError(status, str(answer.get("detail")))
        return answer

    def cut(self) -> None:
        """Drop the connection without a word."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


@dataclass
class Seen:
    """What an assessor was given, and what became of it.

    Attributes:
        token: The token of the lease.
        query: The query.
        pair: The positions of the two documents, lower first.
        user: Who was given it.
        shown_at: When it came.
        expires_at: Until when it was theirs.
        answered_at: When the server said that it has the answer, if it did.
        counts: Whether the server said that the answer counts.
        left_at: When the assessor went away with it or fell asleep over it, if so.
        closed: Whether the server knows that it was given up.
    """

    token: str
    query: int
    pair: tuple[int, int]
    user: int
    shown_at: float
    expires_at: float
    answered_at: float | None = None
    counts: bool = False
    left_at: float | None = None
    closed: bool = False


@dataclass
class Crowd:
    """Many assessors who judge by the truth: the document of the lower position is better.

    Attributes:
        project: The project they judge.
        ports: The servers; each assessor keeps to one while it answers.
        tokens: An API token each.
        think: How long an assessor takes, in seconds, drawn anew each time.
        cuts: How often a connection is cut after a request was sent, without hearing the answer.
        again: How often an answer is sent a second time.
        leave: How often an assessor goes away with a task at hand and without a word, as a browser
            that crashed, to come back as a new tab.
        close: How often an assessor closes the tab, which the page reports to the server, to come
            back as a new one.
        late: How often an assessor answers only after the lease has ended.
        renews: Whether their pages renew leases, which are short then.
        seed: Draws all of that.
        seconds: How long each answer took.
        answered: When each came, by the monotonic clock.
        seen: What everyone was judged.
        waits: When someone had to wait for a task: from when to when.
        errors: What they met, by name.
    """

    project: int
    ports: Sequence[int]
    tokens: Sequence[str]
    think: Callable[[], float] = lambda: 0.0
    cuts: float = 0.0
    again: float = 0.0
    leave: float = 0.0
    close: float = 0.0
    late: float = 0.0
    renews: bool = False
    seed: int = 0
    seconds: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)

    async def judge(self, until: float | None = None) -> None:
        """Judge until the project is done, or until some time by the monotonic clock."""
        tasks = [
            asyncio.create_task(self._assess(number, token))
            for number, token in enumerate(self.tokens)
        ]
        left = None if until is None else until - time.monotonic()
        done, late = await asyncio.wait(tasks, timeout=left)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        await asyncio.sleep(0)  # closed connections are let go in the loop's next turn
        for task in done:
            task.result()

    def judge_quickly(self, seconds: float) -> float:
        """Let everyone judge as fast as answers come; judgments per second.

        Everyone asks for a first task before; that time does not count.
        """
        self.think = lambda: 0.0
        self.answered.clear()
        start = len(self.tokens) / _FIRST_TASKS
        begun = time.monotonic()
        asyncio.run(self.judge(begun + start + seconds))
        counted = [at for at in self.answered if begun + start <= at <= begun + start + seconds]
        return len(counted) / seconds

    def judge_steadily(self, rate: float, seconds: float) -> list[float]:
        """Let everyone judge at a rate between them; the seconds that each answer took."""
        rng = random.Random(1)
        mean = len(self.tokens) / rate
        self.think = lambda: min(rng.expovariate(1 / mean), 4 * mean)
        # Everyone asks for a task at once in the beginning: that time does not count.
        start = time.monotonic() + len(self.tokens) / _FIRST_TASKS
        self.seconds.clear()
        self.answered.clear()
        asyncio.run(self.judge(start + seconds))
        return [took for took, at in zip(self.seconds, self.answered, strict=True) if at >= start]

    async def _assess(self, number: int, token: str) -> None:
        rng = random.Random(f"{self.seed} {number}")
        tab = f"tab{number}"
        # A server takes 500 connections from an address: people come from many.
        source = f"127.0.1.{1 + number // _PEOPLE_PER_ADDRESS}"
        lines = [Line(port, token, source) for port in self.ports]
        try:
            await self._assess_on(lines, number, tab, rng)
        finally:
            for line in lines:
                line.cut()

    async def _assess_on(
        self, lines: list[Line], number: int, tab: str, rng: random.Random
    ) -> None:
        line_number = number
        path = f"/api/v1/projects/{self.project}"
        waiting_since: float | None = None
        state: Any = None
        waiting: dict[str, Any] | None = None
        judged: Seen | None = None
        while True:
            line = lines[line_number % len(lines)]
            try:
                if waiting is not None and judged is not None:
                    if self.cuts and rng.random() < self.cuts:
                        await self._send_and_cut(line, waiting)
                    started = time.perf_counter()
                    answer = await line.post(f"{path}/answers", waiting)
                    self.seconds.append(time.perf_counter() - started)
                    self.answered.append(time.monotonic())
                    judged.answered_at, judged.counts = time.time(), answer["counts"]
                    if self.again and rng.random() < self.again:
                        await line.post(f"{path}/answers", waiting)
                    waiting, state = None, answer["next"]
                elif state is None:
                    ask = {"tab": tab, "renews": self.renews}
                    state = await line.post(f"{path}/next", ask)
                if state is None:
                    continue
                if state["state"] in ("done", "yours-done"):
                    break
                if state["state"] != "task":
                    waiting_since = waiting_since or time.time()
                    await asyncio.sleep(state["wait_seconds"] * rng.uniform(0.5, 1))
                    state = None
                    continue
                if waiting_since is not None:
                    self.waits.append((waiting_since, time.time()))
                    waiting_since = None
                task = state["task"]
                judged = self._note(task, number)
                drawn = rng.random()
                if drawn < self.leave + self.close:
                    tab = f"tab{number}-{rng.getrandbits(32)}"
                    judged.left_at = time.time()
                    judged.closed = drawn >= self.leave
                    state = None
                    if judged.closed:
                        lease = {"token": task["token"], "expires_at": task["expires_at"]}
                        await line.post(f"{path}/release", lease)
                    continue
                pause = self.think()
                if drawn > 1 - self.late:
                    judged.left_at = time.time()
                    pause = max(task["expires_at"] - time.time(), 0.0) + 0.5
                if pause:
                    await asyncio.sleep(pause)
                waiting = self._answer(task, pause, tab)
                state = None
            except (HttpError, OSError, EOFError, ValueError) as error:
                name = str(error) if isinstance(error, HttpError) else type(error).__name__
                self.errors[name] = self.errors.get(name, 0) + 1
                if isinstance(error, HttpError) and error.status not in (429, 500, 503):
                    raise
                line.cut()
                line_number += 1
                await asyncio.sleep(rng.uniform(0.05, 0.3))

    async def _send_and_cut(self, line: Line, waiting: dict[str, Any]) -> None:
        """Send an answer and hang up before the server says anything."""
        await line.open()  # a connection that is given up while it is made would be left open
        try:
            await asyncio.wait_for(
                line.post(f"/api/v1/projects/{self.project}/answers", waiting), 0.002
            )
        except TimeoutError:
            pass
        finally:
            line.cut()

    def _note(self, task: dict[str, Any], number: int) -> Seen:
        one, other = sorted(_pair_of(task))
        seen = Seen(
            task["token"],
            task["query_id"],
            (one, other),
            number,
            time.time(),
            task["expires_at"],
        )
        self.seen.append(seen)
        return seen

    def _answer(self, task: dict[str, Any], seconds: float, tab: str) -> dict[str, Any]:
        left, right = _pair_of(task)
        return {
            "token": task["token"],
            "choice": "left" if left < right else "right",
            "seconds": seconds,
            "tab": tab,
            "renews": self.renews,
        }


def _pair_of(task: dict[str, Any]) -> list[int]:
    """The positions of a task's documents, from their titles: the API has random references."""
    return [int(side["documents"][0]["title"].rpartition(" ")[2]) for side in task["sides"]]
