"""A day of judging in a shop: its files, what is true, and people who judge by it or not."""

from __future__ import annotations

import csv
import io
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import httpx2
import numpy as np

from podium.data import Judgments, Rankings
from tests.studio.factories import PASSWORD
from tests.studio.http_client import Browser

_WORDS = ("red", "warm", "light", "wide", "dry", "small", "cheap", "long", "soft", "old")
_THINGS = ("tent", "shoe", "jacket", "rope", "lamp", "stove", "sock", "boot", "bag", "map")
_ENDS = ("done", "yours-done", "blocked")
_SENSES = 3
"""How many columns of the features file say something, each with noise."""


@dataclass
class Shop:
    """The queries of a shop with their products, and what everyone should think of them.

    Attributes:
        worth: For each query and product how good it is; all differ.
        k: How many products are to be put in order.
    """

    worth: dict[str, dict[str, float]]
    k: int

    @classmethod
    def stock(cls, queries: int, items: int, k: int) -> Shop:
        """A shop of so many queries with so many products each."""
        rng = random.Random(11)
        names = [f"{word} {thing}" for word in _WORDS for thing in _THINGS][:queries]
        worth = {}
        for number, name in enumerate(names):
            order = list(range(items))
            rng.shuffle(order)
            worth[name] = {
                f"sku-{number}-{item}": float(items - rank) for rank, item in enumerate(order)
            }
        return cls(worth, k)

    @property
    def truth(self) -> Judgments:
        """The labels that a day without mistakes ends with."""
        rows = [
            (query, item, max(0, self.k - rank))
            for query, of in self.worth.items()
            for rank, item in enumerate(sorted(of, key=of.__getitem__, reverse=True))
        ]
        return Judgments.from_columns(*map(list, zip(*rows, strict=True)))

    @property
    def table(self) -> bytes:
        """The spreadsheet of products: its columns are called what the shop calls them."""
        rows = [
            [query, item, f"Product {item}", f"What the shop says of {item}.", "in stock"]
            for query, of in self.worth.items()
            for item in of
        ]
        return _csv(["Searched for", "Article", "Product", "Blurb", "Stock"], rows)

    @property
    def gold(self) -> bytes:
        """Pairs that nobody who looks gets wrong: the best against the worst."""
        rows = []
        for number, (query, of) in enumerate(self.worth.items()):
            best, worst = max(of, key=of.__getitem__), min(of, key=of.__getitem__)
            pair = [best, worst, "left"] if number % 2 else [worst, best, "right"]
            rows.append([query, *pair])
        return _csv(["query_id", "left", "right", "outcome"], rows)

    @property
    def features(self) -> bytes:
        """What the shop's search knows of each product."""
        rng = random.Random(12)
        rows = [
            [query, item, *(f"{worth + rng.gauss(0, 3):.3f}" for _ in range(_SENSES))]
            for query, of in self.worth.items()
            for item, worth in of.items()
        ]
        return _csv(["query_id", "document_id", "bm25", "clicks", "freshness"], rows)

    def top_share(self, labels: Judgments) -> float:
        """The mean share of a query's true top k that has a label."""
        shares = []
        for query, of in self.worth.items():
            best = set(sorted(of, key=of.__getitem__, reverse=True)[: self.k])
            chosen = {
                document
                for name, document, label in zip(
                    labels.query_id_of_row().to_pylist(),
                    labels.document_ids.to_pylist(),
                    labels.labels.tolist(),
                    strict=True,
                )
                if name == query and label > 0
            }
            shares.append(len(best & chosen) / self.k)
        return float(np.mean(shares))


def as_run(labels: Judgments) -> Rankings:
    """Labels as a ranking by them."""
    return Rankings.from_columns(
        labels.query_id_of_row(), labels.document_ids, labels.labels, name="judged"
    )


def _csv(header: list[str], rows: list[list[str]]) -> bytes:
    stream = io.StringIO()
    csv.writer(stream).writerows([header, *rows])
    return stream.getvalue().encode("utf-8-sig")  # as spreadsheets write it


@dataclass
class Assessor:
    """Someone who judges through the API of the judging page, signed in as a browser is.

    Attributes:
        name: What the dashboard calls them.
        noise: The standard deviation of what they think a product is worth; products that follow
            each other are 1 apart. None is someone who does not look.
        every: In every how many rounds they answer.
        seconds: How long they take for an answer.
    """

    name: str
    noise: float | None = 0.4
    every: int = 1
    seconds: float = 8.0
    answers: int = 0
    state: str = "task"
    _rng: random.Random = field(init=False)
    _client: Browser | None = None
    _path: str = field(init=False)
    _csrf: str = field(init=False)
    _task: dict | None = None

    def __post_init__(self) -> None:
        self._rng = random.Random(self.name)

    @property
    def email(self) -> str:
        return f"{self.name.lower()}@example.org"

    def join(self, link: str) -> None:
        """Follow an invitation link, as someone who has no account."""
        address, path = re.fullmatch(r"(https?://[^/]+)(/.*)", link).groups()
        self._client = Browser(address)
        form = re.search(r'name="form" value="([^"]+)"', self._client.get(path).text).group(1)
        values = {"form": form, "name": self.name, "email": self.email, "password": PASSWORD}
        joined = self._client.post(path, data=values)
        assert joined.status_code == 303, joined.text

    def take_over(self, address: str, cookies: httpx2.Cookies) -> None:
        """Go on in the session of a browser."""
        self._client = Browser(address)
        self._client.cookies = cookies

    def open(self, project: int) -> None:
        """Open the judging page."""
        self._path = f"/api/v1/projects/{project}"
        page = self._client.get(f"/projects/{project}/judge").text
        self._csrf = re.search(r'data-csrf="([^"]+)"', page).group(1)
        self._tab = uuid4().hex

    def look(self) -> None:
        """Ask whether there is something to judge."""
        self._take(self._post("/next", {"tab": self._tab}))

    def answer(self, shop: Shop) -> None:
        """Answer a task if there is one."""
        if self._task is None:
            self.look()
            return
        body = {
            "token": self._task["token"],
            "choice": self._choice(shop, self._task),
            "seconds": self.seconds,
            "tab": self._tab,
        }
        self.answers += 1
        self._take(self._post("/answers", body)["next"])

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _choice(self, shop: Shop, task: dict) -> str:
        if self.noise is None:
            return self._rng.choice(["left", "right"])
        noise = self.noise
        left, right = (
            shop.worth[task["query"]][side["documents"][0]["title"].removeprefix("Product ")]
            + self._rng.gauss(0, noise)
            for side in task["sides"]
        )
        return "left" if left > right else "right"

    def _take(self, following: dict) -> None:
        self.state, self._task = following["state"], following["task"]

    def _post(self, path: str, body: dict) -> dict:
        answer = self._client.post(
            self._path + path, json=body, headers={"x-csrf-token": self._csrf}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def at_work(*people: Assessor) -> Iterator[list[Assessor]]:
    """People whose connections are closed at the end of the day."""
    try:
        yield list(people)
    finally:
        for person in people:
            person.close()


def judge_until_done(shop: Shop, people: list[Assessor], patience: float = 600.0) -> int:
    """Let people judge in turn until nothing is left for any of them; gives the answers."""
    before = sum(person.answers for person in people)
    number, last, end = 0, before, time.monotonic() + patience
    while True:
        for person in people:
            if number % person.every == 0:
                person.answer(shop)
        if all(person.state in _ENDS for person in people):
            return sum(person.answers for person in people) - before
        number += 1
        answers = sum(person.answers for person in people)
        if answers > last:
            last, end = answers, time.monotonic() + patience
        elif time.monotonic() > end:
            raise TimeoutError({person.name: person.state for person in people})
        else:
            time.sleep(0.02)  # they wait for each other
