"""Three people judge real passages by keyboard, and find the order that was hidden."""

from __future__ import annotations

import gzip
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import select

from podium.data import Candidate, CandidateList
from podium.studio.projects.service import add_queries, project_row
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction, reading
from podium.studio.store.enums import Kind
from podium.studio.store.tables import LogEntry, ProjectQuery
from tests.studio.browser.chromium import Judging, signed_in
from tests.studio.databases import postgres_with_tables
from tests.studio.factories import make_people, make_project
from tests.studio.judging_helpers import Judges
from tests.studio.server import serving

PASSAGES = Path(__file__).parents[4] / "shared/data/preferences/trec-dl21"
QUERIES, ITEMS, K = 5, 20, 5
BAD = 5
"""So many of the last documents do not help at all."""
PAUSE_EVERY, UNDO_EVERY = 15, 17


def passages(count, items):
    """Questions with their passages; some made up where the collection is not at hand."""
    if not PASSAGES.exists():
        return {
            f"question {n}": {f"q{n}-{m}": f"Words of passage {m} on {n}." for m in range(items)}
            for n in range(count)
        }
    with gzip.open(PASSAGES / "passages.txt.gz", "rt") as lines:
        texts = dict(line.rstrip("\n").split("\t", 1) for line in lines)
    names = dict(
        line.split("\t", 1) for line in (PASSAGES / "questions.tsv").read_text().splitlines()
    )
    found: dict[str, dict[str, str]] = {}
    for line in (PASSAGES / "human.pref").read_text().splitlines():
        query, *pair = line.split()[:3]
        of_query = found.setdefault(names[query], {})
        of_query.update({item: texts[item] for item in pair if item in texts})
    full = [(name, of_query) for name, of_query in found.items() if len(of_query) >= items]
    return {name: dict(list(of_query.items())[:items]) for name, of_query in full[:count]}


class Truth:
    """What everyone thinks: two documents just below the top k are equally good."""

    def __init__(self, items, seed):
        order = sorted(items)
        random.Random(seed).shuffle(order)
        self.top = tuple(order[:K])
        self.worth = {item: ITEMS - position for position, item in enumerate(order)}
        self.worth[order[K + 2]] = self.worth[order[K + 1]]
        self.bad = set(order[-BAD:])

    def key(self, left, right):
        """The key that someone presses who sees these two."""
        bad = (left in self.bad, right in self.bad)
        if any(bad):
            return {(True, False): "1", (True, True): "2", (False, True): "3"}[bad]
        if self.worth[left] == self.worth[right]:
            return "ArrowDown"
        return "ArrowLeft" if self.worth[left] > self.worth[right] else "ArrowRight"


def answer_wrong_and_take_it_back(tab, key):
    wrong = {"ArrowLeft": "ArrowRight", "ArrowRight": "ArrowLeft"}.get(key, "2")
    tab.page.keyboard.press(wrong)
    tab.wait_until_saved()
    tab.page.keyboard.press("u")
    tab.page.wait_for_selector("text=was undone")


@pytest.mark.slow
def test_three_people_find_the_hidden_order(postgres, browser):
    database = postgres_with_tables(postgres)
    engine = connect(Settings(database=database))
    people = make_people(engine, 3)
    project = make_project(engine, people, queries=0, k=K)
    found = passages(QUERIES, ITEMS)
    entries = [
        CandidateList(
            f"q{n}",
            name,
            tuple(Candidate(item, title=item, text=text) for item, text in of.items()),
        )
        for n, (name, of) in enumerate(found.items())
    ]
    in_transaction(engine, lambda c: add_queries(c, project_row(c, project), entries))
    orders = {name: Truth(of, seed) for seed, (name, of) in enumerate(found.items())}

    with serving(Settings(database=database), job_child=True) as address:
        contexts = [signed_in(browser, engine, address, person) for person in people]
        tabs = [Judging(context.new_page(), project).open() for context in contexts]
        count, undone = 0, 0
        end = time.monotonic() + 900
        while not all(tab.screen == "done" for tab in tabs):
            assert time.monotonic() < end
            for tab in tabs:
                if not tab.accepts():
                    continue
                count += 1
                key = orders[tab.part("query")].key(*tab.titles())
                if count % PAUSE_EVERY == 0:
                    tab.page.keyboard.press("p")
                    assert tab.screen == "break"
                    tab.page.keyboard.press("p")
                if count % UNDO_EVERY == 0:
                    undone += 1
                    answer_wrong_and_take_it_back(tab, key)
                else:
                    tab.page.keyboard.press(key)
        for context in contexts:
            context.close()

    queries = reading(engine, lambda c: c.execute(select(ProjectQuery.__table__)).all())
    for query in queries:
        state = Judges(engine).state(project, query.id)
        assert state.mode.session.result().top == orders[query.text].top  # type: ignore[attr-defined]
    log = reading(engine, lambda c: c.execute(select(LogEntry.__table__)).all())
    kinds = Counter(entry.kind for entry in log)
    assert undone > 3
    assert kinds[Kind.UNDO] >= undone  # both documents bad are two entries
    assert kinds[Kind.BAD] > 0
    assert any(entry.kind == Kind.VERDICT and entry.value == 0 for entry in log)
    assert {entry.user_id for entry in log} == set(people)
    assert all(entry.seconds > 0 for entry in log if entry.kind == Kind.VERDICT)
    engine.dispose()
