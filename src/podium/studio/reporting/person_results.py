"""What someone has done in a project: how much, how fast, and how far others agree with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.reporting.flags import shown_flags, wilson_interval
from podium.studio.store.tables import JudgmentCount, LogEntry, Membership, ProjectQuery, User

_NO_CARE: JsonObject = {"gold": [0, 0], "again": [0, 0], "sides": [0, 0, 0], "flags": []}


@dataclass(frozen=True)
class Share:
    """A share of something counted, with its 95 % interval.

    Attributes:
        hits: How many.
        total: Out of how many.
    """

    hits: int
    total: int

    @property
    def percent(self) -> int:
        """The share in percent.

        Example:
            >>> Share(8, 10).percent, Share(8, 10).interval
            (80, (49, 94))
        """
        return round(100 * self.hits / self.total)

    @property
    def interval(self) -> tuple[int, int]:
        """Wilson's 95 % interval, in percent."""
        low, high = wilson_interval(self.hits, self.total)
        return round(100 * low), round(100 * high)


@dataclass(frozen=True)
class AssessorFigures:
    """Someone's row in the table of assessors, from a report.

    Attributes:
        id: The account.
        name: Their name.
        judgments: How many of their judgments count.
        seconds: How long one took on average.
        peers: Votes of others on what they judged too that are the same.
        gold: Gold pairs that they got right.
        again: Repeated pairs that they answered the same.
        sides: How often they chose left, neither and right.
        last_at: The time of the last one.
        flags: Reasons to talk to them.
    """

    id: int
    name: str
    judgments: int
    seconds: float
    peers: Share | None
    gold: Share | None
    again: Share | None
    sides: tuple[int, int, int]
    last_at: float
    flags: list[str]


def assessor_figures(report: JsonObject) -> list[AssessorFigures]:
    """The table of assessors of a report."""
    rows = []
    for each in report.get("times", []):
        care = report["care"].get(str(each["user"]), _NO_CARE)
        rows.append(
            AssessorFigures(
                id=each["user"],
                name=each["name"],
                judgments=each["judgments"],
                seconds=each["seconds"] / each["judgments"],
                peers=share_of(report.get("peers", {}).get(str(each["user"]), [0, 0])),
                gold=share_of(care["gold"]),
                again=share_of(care["again"]),
                sides=tuple(care["sides"]),
                last_at=each["last_at"],
                flags=shown_flags(care),
            )
        )
    return rows


@dataclass(frozen=True)
class PersonResults:
    """Someone's work in a project. Checks and agreement are those of the last report.

    Attributes:
        id: The account.
        name: Their name.
        role: Their role; None if they are not a member any more.
        judgments: How many of their judgments stand.
        seconds: How long those took.
        queries: In how many queries.
        last_at: The time of the last one; 0 if there is none.
        gold: Gold pairs that they got right.
        again: Repeated pairs that they answered the same.
        peers: Votes of others on what they judged too that are the same.
        sides: How often they chose left, neither and right.
        flags: Reasons to talk to them.
        kappas: To each other person Cohen's kappa, and on how many shared things.
    """

    id: int
    name: str
    role: str | None
    judgments: int
    seconds: float
    queries: int
    last_at: float
    gold: Share | None
    again: Share | None
    peers: Share | None
    sides: tuple[int, int, int]
    flags: list[str]
    kappas: list[JsonObject]


def person_results(
    connection: Connection, project_id: int, user_id: int, report: JsonObject
) -> PersonResults:
    """Someone's work in a project.

    Args:
        connection: Where to look.
        project_id: The project.
        user_id: Who; a member, or a former one who has judged anything.
        report: The content of the project's last report.
    """
    person = connection.execute(
        select(User.name, Membership.role)
        .outerjoin(
            Membership,
            (Membership.user_id == User.id) & (Membership.project_id == project_id),
        )
        .where(User.id == user_id)
    ).one_or_none()
    if person is None or (person.role is None and not _answered(connection, project_id, user_id)):
        raise RefusedError(404, "This person is not a member of the project.")
    totals = connection.execute(
        select(
            func.coalesce(func.sum(JudgmentCount.judgments), 0),
            func.coalesce(func.sum(JudgmentCount.seconds), 0.0),
            func.count(),
            func.coalesce(func.max(JudgmentCount.last_at), 0.0),
        )
        .join(ProjectQuery, ProjectQuery.id == JudgmentCount.query_id)
        .where(
            ProjectQuery.project_id == project_id,
            JudgmentCount.user_id == user_id,
            JudgmentCount.judgments > 0,
        )
    ).one()
    care = report.get("care", {}).get(str(user_id), _NO_CARE)
    return PersonResults(
        id=user_id,
        name=person.name,
        role=person.role,
        judgments=int(totals[0]),
        seconds=float(totals[1]),
        queries=int(totals[2]),
        last_at=float(totals[3]),
        gold=share_of(care["gold"]),
        again=share_of(care["again"]),
        peers=share_of(report.get("peers", {}).get(str(user_id), [0, 0])),
        sides=tuple(care["sides"]),
        flags=shown_flags(care),
        kappas=[
            couple
            for couple in report.get("couples", [])
            if user_id in (couple["one"], couple["other"])
        ],
    )


def share_of(counts: Sequence[int]) -> Share | None:
    """A share from a total and how many of it count; None if the total is 0.

    Example:
        >>> share_of([10, 8])
        Share(hits=8, total=10)
    """
    total, hits = counts
    return Share(hits, total) if total else None


def _answered(connection: Connection, project_id: int, user_id: int) -> bool:
    return bool(
        connection.scalar(
            select(LogEntry.id)
            .join(ProjectQuery, ProjectQuery.id == LogEntry.query_id)
            .where(LogEntry.user_id == user_id, ProjectQuery.project_id == project_id)
            .limit(1)
        )
    )
