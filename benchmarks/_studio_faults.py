"""Judging while servers and the database are killed: nothing may be lost or counted twice."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import defaultdict
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select

from benchmarks._studio_crowd import Crowd, Seen
from benchmarks._studio_server import Server, create_data, running
from podium.studio.judging.judged import load_judged_query
from podium.studio.projects.service import project_row
from podium.studio.settings import Settings
from podium.studio.store.database import connect, reading
from podium.studio.store.tables import LogEntry, ProjectQuery
from tests.ports import free_port
from tests.studio.postgres import Postgres

_CLOCK = 0.25
"""Seconds by which a client's view of when something was given may lag behind the server's."""


_A_MINUTE = 60.0


@dataclass
class Faults:
    """What happened, and what of it was wrong.

    Attributes:
        judgments: Answers in the log that count.
        late: Answers that do not count, because they came when others had been asked.
        acknowledged: Answers that the server confirmed.
        lost: How many of those are not in the log.
        twice: Pairs with more than one verdict that counts.
        held_by_two: Tasks given to someone while another held them.
        blocked: Tasks that someone left, and that others waited for more than a minute for.
        left: Tasks that someone left: tabs that were closed or crashed, answers that came late.
        wrong: Queries whose top k is not the true one, or that are not done.
        server_kills: How often a server process was killed.
        database_kills: How often the database was.
        seconds: How long it took.
        errors: What assessors met, by name.
    """

    judgments: int
    late: int
    acknowledged: int
    lost: int
    twice: int
    held_by_two: int
    blocked: int
    left: int
    wrong: int
    server_kills: int
    database_kills: int
    seconds: float
    errors: dict[str, int]


def judge_under_faults(
    *,
    people: int,
    queries: int,
    items: int,
    k: int,
    server_kills: int,
    database_kills: int,
    think: float,
    lease: float = 10.0,
    seed: int = 0,
) -> Faults:
    """Let many judge a project to its end while things are killed at random moments.

    They think so many seconds on average that the killing falls into the time of judging. Some
    close their tab, some crash with a task at hand, and some answer only after its lease ended.
    """
    with Postgres() as postgres:
        url = postgres.create("faults")
        project, tokens = create_data(
            url, people=people, queries=queries, items=items, k=k, lease_seconds=lease
        )
        servers = [Server(url, free_port()) for _ in range(2)]
        rng = random.Random(seed)
        crowd = Crowd(
            project,
            [server.port for server in servers],
            tokens,
            think=lambda: rng.uniform(0.25, 1.75) * think,
            cuts=0.05,
            again=0.05,
            leave=0.02,
            close=0.04,
            late=0.03,
            renews=True,
            seed=seed,
        )
        started = time.monotonic()
        with running(servers):
            done = asyncio.run(
                _judge_and_kill(crowd, servers, postgres, server_kills, database_kills, rng)
            )
        seconds = time.monotonic() - started
        return _verdict(url, project, k, crowd, done, seconds)


async def _judge_and_kill(
    crowd: Crowd,
    servers: list[Server],
    postgres: Postgres,
    server_kills: int,
    database_kills: int,
    rng: random.Random,
) -> tuple[int, int]:
    judging = asyncio.create_task(crowd.judge())
    plan = ["server"] * server_kills + ["database"] * database_kills
    rng.shuffle(plan)
    done = {"server": 0, "database": 0}
    for what in plan:
        await asyncio.sleep(rng.uniform(0.2, 1.5))
        if judging.done():
            break
        if what == "server":
            # One that is still starting would not be missed by anyone, and waiting for it where
            # starting takes long would let the judging end before the killing does.
            up = await asyncio.to_thread(lambda: [each for each in servers if each.is_up()])
            server = rng.choice(up or servers)
            await asyncio.to_thread(server.wait)
            await asyncio.to_thread(server.kill)
            server.start()
        else:
            await asyncio.to_thread(postgres.stop)
            await asyncio.sleep(rng.uniform(0.0, 0.5))
            await asyncio.to_thread(postgres.start)
        done[what] += 1
    await judging
    return done["server"], done["database"]


def _verdict(
    url: str, project: int, k: int, crowd: Crowd, kills: tuple[int, int], seconds: float
) -> Faults:
    engine = connect(Settings(database=url))
    rows = reading(
        engine,
        lambda c: c.execute(
            select(
                LogEntry.token,
                LogEntry.query_id,
                LogEntry.left,
                LogEntry.right,
                LogEntry.counts,
            )
        ).all(),
    )
    tokens = {row.token for row in rows}
    acknowledged = [seen for seen in crowd.seen if seen.answered_at is not None]
    verdicts: dict[tuple[int, int, int], int] = defaultdict(int)
    for row in rows:
        if row.counts:
            verdicts[row.query_id, min(row.left, row.right), max(row.left, row.right)] += 1
    faults = Faults(
        judgments=sum(verdicts.values()),
        late=sum(not row.counts for row in rows),
        acknowledged=len(acknowledged),
        lost=sum(UUID(seen.token) not in tokens for seen in acknowledged),
        twice=sum(count > 1 for count in verdicts.values()),
        held_by_two=_held_by_two(crowd.seen),
        blocked=_blocked(crowd),
        left=sum(seen.left_at is not None for seen in crowd.seen),
        wrong=_wrong(url, project, k),
        server_kills=kills[0],
        database_kills=kills[1],
        seconds=seconds,
        errors=crowd.errors,
    )
    engine.dispose()
    return faults


def _held_by_two(seen: list[Seen]) -> int:
    """How often someone was given what another still held, by the server's own answers.

    One who comes back may be given the same task again: it ends for both tabs when it is answered
    or given up in one.
    """
    held: dict[tuple[int, tuple[int, int]], list[Seen]] = defaultdict(list)
    ends: dict[str, list[float]] = defaultdict(list)
    for each in seen:
        held[each.query, each.pair].append(each)
        ends[each.token] += [
            at for at in (each.answered_at, each.left_at if each.closed else None) if at is not None
        ]
    count = 0
    for same in held.values():
        for one in same:
            later = [at for at in ends[one.token] if at >= one.shown_at]
            end = min(one.expires_at, *later, math.inf) - _CLOCK
            count += any(
                one.shown_at < other.shown_at < end
                for other in same
                if other.token != one.token and other.user != one.user
            )
    return count


def _blocked(crowd: Crowd) -> int:
    """How many tasks that someone left kept others waiting for more than a minute.

    From when it was left until someone was given it or had answered it, by their own clocks.
    """
    times: dict[tuple[int, tuple[int, int]], list[float]] = defaultdict(list)
    for each in crowd.seen:
        times[each.query, each.pair] += [each.shown_at, each.answered_at or 0.0]
    count = 0
    for each in crowd.seen:
        if each.left_at is None:
            continue
        later = [at for at in times[each.query, each.pair] if at > each.left_at]
        end = min(later, default=0.0)  # if nobody was asked again, others' answers implied it
        count += end - each.left_at > _A_MINUTE and any(
            min(until, end) - max(since, each.left_at) > _A_MINUTE for since, until in crowd.waits
        )
    return count


def _wrong(url: str, project_id: int, k: int) -> int:
    """Queries that are not done, or whose top k is not the true one."""
    engine = connect(Settings(database=url))
    truth = tuple(f"d{number:03}" for number in range(k))

    def work(connection: object) -> int:
        project = project_row(connection, project_id)  # type: ignore[arg-type]
        rows = connection.execute(select(ProjectQuery.__table__)).all()  # type: ignore[attr-defined]
        wrong = 0
        for query in rows:
            state = load_judged_query(connection, project, query).state  # type: ignore[arg-type]
            result = state.mode.session.result()  # type: ignore[attr-defined]
            wrong += not (query.done and result.complete and result.top == truth)
        return wrong

    wrong = reading(engine, work)
    engine.dispose()
    return wrong
