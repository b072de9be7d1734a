"""Servers and the database are killed while people judge; at full size in benchmarks/studio.py."""

from __future__ import annotations

import pytest

from benchmarks._studio_faults import judge_under_faults


@pytest.mark.slow
@pytest.mark.usefixtures("postgres")  # where there is none, this is skipped
def test_nothing_is_lost_or_counted_twice_when_things_are_killed():
    found = judge_under_faults(
        people=16,
        queries=8,
        items=8,
        k=4,
        server_kills=2,
        database_kills=1,
        think=2.0,
        lease=5.0,
    )
    assert (found.server_kills, found.database_kills) == (2, 1)
    assert found.acknowledged > 50
    assert found.left > 0
    wrong = (found.lost, found.twice, found.held_by_two, found.blocked, found.wrong)
    assert wrong == (0, 0, 0, 0, 0), found
