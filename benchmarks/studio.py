"""How many judgments a second the studio takes, how soon it answers, and what faults do to it.

    python -m benchmarks.studio [--quick]

Simulated assessors judge over loopback sockets, on a PostgreSQL server of their own that writes
every commit to disk. Servers, database and assessors share the machine's cores. Beside them, in the
same run and in turn, pgbench does the same statements without a web server. Then they judge while
the server is busy with other things, beside hostile traffic, and while servers and the database are
killed. Last, how soon Chromium shows the next pair after a key, with the server next door and far
away.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from sqlalchemy import text

from benchmarks._hostile_traffic import judge_beside_hostile_traffic
from benchmarks._judging_speed import milliseconds_to_the_next_pair
from benchmarks._report import Report, wants_quick
from benchmarks._studio_crowd import Crowd
from benchmarks._studio_disturbance import Disturbance, hanging_provider
from benchmarks._studio_engine import bare_engine
from benchmarks._studio_faults import judge_under_faults
from benchmarks._studio_next import FEW, MANY, seconds_to_the_next_task
from benchmarks._studio_pages import fill_project, seconds_to_wait
from benchmarks._studio_server import Server, create_data, running
from podium.studio.projects.service import ProjectSettings, create_project
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction
from tests.ports import free_port
from tests.studio.postgres import Postgres

_ITEMS = 20
_WORKERS = 2
_SMALL = 10_000


@dataclass(frozen=True)
class Size:
    """How much is done.

    Attributes:
        people: Simulated assessors.
        queries: Queries of 20 documents each.
        seconds: How long each measurement takes.
        rounds: How many there are; medians count.
        verdicts: How many verdicts the database holds in the end.
    """

    people: int
    queries: int
    seconds: int
    rounds: int
    verdicts: int


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    size = Size(150, 200, 1, 1, 100_000) if quick else Size(2000, 4000, 8, 3, 10_000_000)
    report = Report("studio", quick, packages=["fastapi", "sqlalchemy", "psycopg", "uvicorn"])
    with Postgres() as postgres:
        _load(report, postgres, size)
        _next_task(report, postgres, 60 if quick else 1000)
        _managers_pages(report, postgres, quick)
        _disturbed(report, postgres, size, quick)
        judge_beside_hostile_traffic(report, postgres, 0.25 if quick else 30)
    _faults(report, quick)
    if not quick:  # each answer takes two seconds, as people do
        _in_the_browser(report)
    report.finish()


def _load(report: Report, postgres: Postgres, size: Size) -> None:
    url = postgres.create("studio")
    project, tokens = create_data(url, people=size.people, queries=size.queries, items=_ITEMS)
    bare = postgres.create("bare")
    create_data(bare, people=size.people, queries=size.queries, items=_ITEMS)
    report.note(
        f"{size.people:,} assessors, {size.queries:,} queries of {_ITEMS} documents, "
        f"{_WORKERS} server processes, PostgreSQL 15 with fsync"
    )
    server = Server(url, free_port(), workers=_WORKERS, pool=4)
    rates, engines = [], []
    with running([server]):
        crowd = Crowd(project, [server.port], tokens)
        crowd.judge_quickly(size.seconds)  # compiles, connects, fills caches
        for _ in range(size.rounds):
            rates.append(crowd.judge_quickly(size.seconds))
            engines.append(
                bare_engine(
                    postgres,
                    "bare",
                    people=size.people,
                    queries=size.queries,
                    clients=8,
                    seconds=size.seconds,
                )
            )
        peak, engine = statistics.median(rates), statistics.median(engines)
        report.note(f"at most {_each(rates)} judgments/s; pgbench alone {_each(engines)}/s")
        report.check("share of the bare engine's rate", peak / engine, 0.25)
        half = _half(report, crowd, peak / 2, size)
        report.check("p95 at half of that", half, 100, at_least=False, unit="ms")
        _growth(report, url, crowd, peak / 4, size)
    if crowd.errors:
        report.note(f"errors: {crowd.errors}")


def _next_task(report: Report, postgres: Postgres, answers: int) -> None:
    """The next task costs the same however many queries the person has finished."""
    took = seconds_to_the_next_task(postgres.create("next_task"), answers)
    few, many = took[FEW], took[MANY]
    report.note(
        f"median time to the next task {1000 * few:.1f} ms with {FEW} queries finished, "
        f"{1000 * many:.1f} ms with {MANY:,}"
    )
    report.check(f"next task, {MANY:,} finished queries", many / few, 1.2, at_least=False)


def _managers_pages(report: Report, postgres: Postgres, quick: bool) -> None:
    """The time of a manager's pages, figures and exports in a large project."""
    queries, documents, judgments = (100, 20, 40) if quick else (2000, 50, 100)
    url = postgres.create("pages")
    project, token = fill_project(url, queries, documents, judgments)
    took = seconds_to_wait(url, project, token, 1 if quick else 5)
    report.note(
        f"manager of {queries:,} queries of {documents} documents and {queries * judgments:,} "
        "judgments: " + ", ".join(f"{what} {seconds:.2f} s" for what, seconds in took.items())
    )
    exports = [seconds for what, seconds in took.items() if what.startswith("export")]
    figures = took.pop("first figures")
    pages = max(seconds for what, seconds in took.items() if not what.startswith("export"))
    report.check("slowest page", pages, 0.5, at_least=False, unit="s")
    report.check("first figures", figures, 5, at_least=False, unit="s")
    if not quick:  # in small projects a job's start is most of its time
        rate = queries * judgments / max(exports)
        report.check("slowest export", rate, 100_000, unit="judgments/s")


def _disturbed(report: Report, postgres: Postgres, size: Size, quick: bool) -> None:
    """The time of an answer while the server imports, exports, cleans and waits for a provider."""
    people, seconds = (50, 2) if quick else (200, 30)
    url = postgres.create("disturbed")
    project, tokens = create_data(url, people=people, queries=size.queries, items=_ITEMS)
    engine = connect(Settings(database=url))
    other = in_transaction(
        engine, lambda c: create_project(c, 1, ProjectSettings(name="Other", k=10))
    )
    engine.dispose()
    with hanging_provider() as issuer:
        port = free_port()
        server = Server(
            url,
            port,
            workers=_WORKERS,
            pool=4,
            public_url=f"http://127.0.0.1:{port}",
            oidc_issuer=issuer,
            oidc_client_id="studio",
        )
        with running([server]):
            crowd = Crowd(project, [server.port], tokens)
            disturbance = Disturbance(server.port, tokens[0], project, other, 20 if quick else 500)
            disturbance.prepare()
            rate = people / 2  # everyone judges every two seconds: nobody does so for long
            crowd.judge_steadily(rate, 1)
            quiet = crowd.judge_steadily(rate, seconds)
            with disturbance.going_on():
                loud = crowd.judge_steadily(rate, seconds)
    figures = [1000 * statistics.quantiles(took, n=20)[18] for took in (quiet, loud)]
    report.note(
        f"p95 of an answer at {rate:.0f} a second: {figures[0]:.0f} ms quiet, {figures[1]:.0f} ms "
        f"disturbed by {disturbance.counts}"
    )
    report.check("p95 while disturbed", figures[1] / figures[0], 2, at_least=False)


def _in_the_browser(report: Report) -> None:
    """From the press of a key to the next pair on the screen."""
    for people, delay, target in ((1, 300, 60), (2, 0, 100)):
        took = milliseconds_to_the_next_pair(people, delay, 60)
        where = f"{delay} ms away" if delay else "on this machine"
        report.note(
            f"{people} in Chromium {where}: key to next pair p50 {statistics.median(took):.0f} ms, "
            f"of {len(took)}"
        )
        report.check(
            f"key to next pair, {where}, p95",
            statistics.quantiles(took, n=20)[18],
            target,
            at_least=False,
            unit="ms",
        )


def _each(rates: list[float]) -> str:
    return ", ".join(f"{rate:.0f}" for rate in rates)


def _half(report: Report, crowd: Crowd, rate: float, size: Size) -> float:
    seconds = crowd.judge_steadily(rate, 3 * size.seconds)
    quantiles = [1000 * value for value in statistics.quantiles(seconds, n=20)]
    report.note(
        f"at {len(seconds) / (3 * size.seconds):.0f} judgments/s: "
        f"p50 {quantiles[9]:.0f} ms, p95 {quantiles[18]:.0f} ms, of {len(seconds):,}"
    )
    return quantiles[18]


def _growth(report: Report, url: str, crowd: Crowd, rate: float, size: Size) -> None:
    """The time of an answer with many verdicts in the database, against few."""
    engine = connect(Settings(database=url))
    medians = []
    for rows in (_SMALL, size.verdicts):
        with engine.begin() as connection:
            _fill(connection, rows)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
            connection.execute(text("CHECKPOINT"))
        medians.append(statistics.median(crowd.judge_steadily(rate, 2 * size.seconds)))
    engine.dispose()
    few, many = medians
    report.note(
        f"median answer {1000 * few:.1f} ms with {_SMALL:,} verdicts more, "
        f"{1000 * many:.1f} ms with {size.verdicts:,}"
    )
    report.check(f"time of an answer, {size.verdicts:,} verdicts", many / few, 1.2, at_least=False)


def _fill(connection: object, rows: int) -> None:
    """Put verdicts of other queries into the log until there are so many."""
    execute = connection.execute  # type: ignore[attr-defined]
    have = execute(text("SELECT count(*) FROM log WHERE part = 1")).scalar_one()
    missing = rows - have
    if missing <= 0:
        return
    # Entries that name no lease of anyone; each query of another project gets a thousand.
    execute(
        text(
            "INSERT INTO projects SELECT 2, 'Old', mode, k, algorithm, seed, budget, overlap_share,"
            " overlap_assessors, assigned_only, guidelines, lease_seconds, repeat_rate, gold_rate,"
            " paused, created_at FROM projects WHERE id = 1 ON CONFLICT DO NOTHING"
        )
    )
    first = 1_000_000 + have // 1000
    last = first + math.ceil(missing / 1000) - 1
    execute(
        text(
            "INSERT INTO queries (id, project_id, name, text, description, ordered, entries, free,"
            " available, changed, judgments, done, expected_left)"
            " SELECT n, 2, 'old' || n, '', '', false, 1000, 0, false, 1, 1000, true, 0"
            " FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) n"
        ),
        {"first": first, "last": last},
    )
    execute(
        text(
            'INSERT INTO log (query_id, position, user_id, kind, "left", "right", value, purpose,'
            " counts, late, token, part, at, seconds) SELECT q, p, 1 + p % 100, 'verdict', p % 20,"
            " 20, 1, 'main', true, false, CAST(lpad(to_hex(q * 1000 + p), 32, '0') AS uuid), 1,"
            " 1e9, 2.0 FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) q,"
            " generate_series(0, 999) p"
        ),
        {"first": first, "last": last},
    )


def _faults(report: Report, quick: bool) -> None:
    if quick:
        faults = judge_under_faults(
            people=12, queries=5, items=6, k=2, server_kills=2, database_kills=1, think=0.7,
            lease=5.0,
        )  # fmt: skip
    else:
        faults = judge_under_faults(
            people=200, queries=100, items=_ITEMS, k=10, server_kills=50, database_kills=20,
            think=6.0, lease=900.0,
        )  # fmt: skip
    report.note(
        f"{faults.judgments:,} judgments that count, {faults.late:,} that came too late, "
        f"{faults.left:,} tasks left by closed tabs, crashes and sleep, in "
        f"{faults.seconds:.0f} s; servers killed {faults.server_kills} times, PostgreSQL "
        f"{faults.database_kills} times; errors: {faults.errors}"
    )
    for what, count in (
        ("acknowledged verdicts lost", faults.lost),
        ("pairs counted twice", faults.twice),
        ("pairs given to two at once", faults.held_by_two),
        ("pairs blocked for more than a minute", faults.blocked),
        ("queries without the exact top k", faults.wrong),
    ):
        report.check(what, count, 0, at_least=False, unit="")
    report.check("servers killed", faults.server_kills, 2 if quick else 50, unit="times")
    report.check("PostgreSQL killed", faults.database_kills, 1 if quick else 20, unit="times")


if __name__ == "__main__":
    main()
