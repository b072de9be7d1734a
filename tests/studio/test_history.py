"""The history of a project's judgments: at the times of the log, without those that were undone."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select, update

from podium.studio.judging.corrections import discard, restore
from podium.studio.projects.progress import project_progress
from podium.studio.reporting.dashboard import history_chart, judgment_history
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import LogEntry
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.judging_helpers import Judges, judge_all, queries_of
from tests.studio.test_corrections import manager_of

DATABASES = BOTH
MINUTE = 60.0


@pytest.fixture
def judged(engine):
    """A query that Ann judged to the end, the n-th answer in minute 10 n; and her number."""
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6, k=3)
    service = Judges(engine)
    judge_all(service, project, ann, service.next(project, ann, "t"))
    timed = update(LogEntry).values(at=10 * MINUTE * LogEntry.position + 30)
    in_transaction(engine, lambda c: c.execute(timed))
    return project, ann


def history_of(engine, project, now):
    return reading(engine, lambda c: judgment_history(c, project, now))


def test_counts_are_those_of_the_log_at_that_time(engine, judged):
    project, _ = judged
    count = reading(engine, lambda c: project_progress(c, project)).judgments
    end = 10 * MINUTE * count
    history = history_of(engine, project, end)
    assert len(history) <= 260
    assert history[0] == [0.0, 0]
    for at, made in history:
        # A judgment is in from the end of its minute on.
        assert made == min(int((at - MINUTE) // (10 * MINUTE)) + 1 if at >= MINUTE else 0, count)
    assert history[-1][1] == count


def test_discarded_judgments_are_not_in_it_until_they_are_restored(engine, judged):
    project, ann = judged
    query = queries_of(engine, project)[0].id
    manager = manager_of(engine, project, ann)
    judgments = lambda: reading(engine, lambda c: project_progress(c, project)).judgments  # noqa: E731
    whole = judgments()
    in_transaction(engine, lambda c: discard(c, manager, query, 1, None))
    assert judgments() == whole - 1
    now = reading(engine, lambda c: c.scalar(select(LogEntry.at).order_by(LogEntry.at.desc())))
    assert history_of(engine, project, now + MINUTE)[-1][1] == whole - 1
    in_transaction(engine, lambda c: restore(c, manager, query, 1))
    assert history_of(engine, project, now + 10 * MINUTE)[-1][1] == judgments() == whole


def test_the_chart_has_the_last_count_before_each_time():
    # Nothing happened for a long time: no line is drawn up through it.
    chart = str(history_chart([[0.0, 0], [1200.0, 40]], 2360.0, 46))
    values = [float(value) for value in re.findall(r"Judgments, [^:]+: ([\d.]+)", chart)]
    assert values == [0.0] * 30 + [40.0] * 29 + [46.0]
    assert "now" in chart
    days = str(history_chart([[0.0, 0], [90_000.0, 40]], 200_000.0, 46))
    assert ">1970-01-01T00:00Z<" in days  # pages write it in the reader's zone
    assert "h<" not in days


@pytest.mark.parametrize("age", [150, 700, 4000, 7300, 11_000, 40_000, 120_000])
def test_no_two_labels_of_a_chart_are_the_same(age):
    chart = str(history_chart([[0.0, 0]], age, 46))
    labels = re.findall(r"<text[^>]*>(now|-[^<]+)</text>", chart)
    assert len(set(labels)) == len(labels) == 12


def test_too_little_for_a_chart():
    assert history_chart([], 3000.0, 3) is None
    assert history_chart([[0.0, 0]], 90.0, 3) is None
