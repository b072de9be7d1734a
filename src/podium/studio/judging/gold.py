"""Gold pairs: pairs with a known outcome, asked as checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from podium.errors import DataError
from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.judging.corrections import judgment_at
from podium.studio.judging.record_files import read_records
from podium.studio.store.enums import Mode
from podium.studio.store.rows import ProjectRow, fetch_all
from podium.studio.store.tables import Gold, ProjectQuery, QueryCandidate

_OUTCOMES = {"left": 1, "tie": 0, "right": -1, 1: 1, 0: 0, -1: -1}
MOST = 100_000


@dataclass(frozen=True)
class GoldPair:
    """A pair and which side is better: 1 is left, -1 right, 0 neither."""

    query_id: str
    left: str
    right: str
    outcome: int


def read_gold(stream: IO[bytes]) -> list[GoldPair]:
    r"""Read gold pairs, one per line: JSONL, or a table of the same keys.

    Example:
        >>> import io
        >>> line = b'{"query_id": "q1", "left": "a", "right": "b", "outcome": "left"}\n'
        >>> read_gold(io.BytesIO(line))
        [GoldPair(query_id='q1', left='a', right='b', outcome=1)]
    """
    pairs: list[GoldPair] = []
    for pair in read_records(stream, _pair):
        pairs.append(pair)
        if len(pairs) > MOST:
            raise DataError(f"there are more than {MOST} gold pairs", hint="Import fewer.")
    return pairs


def add_gold(connection: Connection, project: ProjectRow, pairs: list[GoldPair]) -> dict[str, int]:
    """Add gold pairs to a project, except those that it has.

    Returns how many were new, and how many have another outcome than the pair that is there, which
    stays.
    """
    if project.mode != Mode.PAIRS:
        raise DataError("only projects that judge pairs take gold pairs", hint="Create one.")
    by_query: dict[str, list[GoldPair]] = {}
    for pair in pairs:
        by_query.setdefault(pair.query_id, []).append(pair)
    added = contradicting = 0
    for name, gold_pairs in by_query.items():
        query_id = connection.scalar(
            select(ProjectQuery.id).where(
                ProjectQuery.project_id == project.id, ProjectQuery.name == name
            )
        )
        if query_id is None:
            raise DataError(f"there is no query {name!r}", hint="Import the queries first.")
        rows = connection.execute(
            select(QueryCandidate.item, QueryCandidate.position).where(
                QueryCandidate.query_id == query_id
            )
        ).all()
        positions: dict[str, int] = {row.item: row.position for row in rows}
        present: dict[tuple[int, int], int] = {
            sides: row.outcome * sign
            for row in connection.execute(
                select(Gold.left, Gold.right, Gold.outcome).where(Gold.query_id == query_id)
            )
            for sides, sign in (((row.left, row.right), 1), ((row.right, row.left), -1))
        }
        for pair in gold_pairs:
            for item in (pair.left, pair.right):
                if item not in positions:
                    raise DataError(
                        f"query {name!r} has no document {item!r}", hint="See its candidates."
                    )
            left, right = positions[pair.left], positions[pair.right]
            if (left, right) in present:
                contradicting += present[left, right] != pair.outcome
            else:
                present |= {(left, right): pair.outcome, (right, left): -pair.outcome}
                connection.execute(
                    insert(Gold).values(
                        query_id=query_id, left=left, right=right, outcome=pair.outcome
                    )
                )
                added += 1
    return {"gold": added, "gold_contradicting": contradicting}


def add_judged_pair(connection: Connection, who: Member, query_id: int, position: int) -> None:
    """Make a pair gold as the judgment at a position of a query's log has it."""
    judged, entry = judgment_at(connection, who, query_id, position)
    left, right = (judged.items[at] for at in (entry.left or 0, entry.right or 0))
    pair = GoldPair(judged.query.name, left, right, entry.value or 0)
    counts = add_gold(connection, who.project, [pair])
    if counts["gold_contradicting"]:
        raise RefusedError(409, "This pair is a gold pair already, with another outcome.")
    if not counts["gold"]:
        raise RefusedError(409, "This pair is a gold pair already.")
    record(
        connection, who.person.id, who.project.id, "added a gold pair", query=pair.query_id,
        left=left, right=right, outcome=pair.outcome,
    )  # fmt: skip


class GoldRow(NamedTuple):
    """A gold pair with the words of its query and the names of its documents."""

    id: int
    query_id: int
    query: str
    left: int
    right: int
    outcome: int


def gold_of(connection: Connection, project_id: int, most: int) -> tuple[list[GoldRow], int]:
    """The newest gold pairs of a project, and how many there are."""
    gold = (
        select(Gold.id, Gold.query_id, ProjectQuery.text, Gold.left, Gold.right, Gold.outcome)
        .join(ProjectQuery, ProjectQuery.id == Gold.query_id)
        .where(ProjectQuery.project_id == project_id)
    )
    rows = fetch_all(connection, gold.order_by(Gold.id.desc()).limit(most), GoldRow)
    return rows, int(connection.scalar(select(func.count()).select_from(gold.subquery())) or 0)


def remove_gold(connection: Connection, who: Member, gold_id: int) -> None:
    """Stop asking a gold pair as a check; its judgments are kept."""
    check_not_archived(who.project)
    of_project = select(ProjectQuery.id).where(ProjectQuery.project_id == who.project.id)
    ours = (Gold.id == gold_id, Gold.query_id.in_(of_project))
    if not connection.execute(delete(Gold).where(*ours)).rowcount:
        raise RefusedError(404, "The gold pair does not exist.")
    record(connection, who.person.id, who.project.id, "removed a gold pair", pair=gold_id)


def _pair(content: JsonObject) -> GoldPair:
    ids = [content.get(name) for name in ("query_id", "left", "right")]
    outcome = content.get("outcome")
    is_known = isinstance(outcome, str | int) and not isinstance(outcome, bool)
    if set(content) != {"query_id", "left", "right", "outcome"} or not all(
        isinstance(text, str) for text in ids
    ):
        raise DataError("is not a valid gold pair", hint="Give query_id, left, right and outcome.")
    if not is_known or outcome not in _OUTCOMES:
        raise DataError(f"the outcome is {outcome!r}", hint='Give "left", "tie" or "right".')
    if any("\0" in str(text) for text in ids):
        raise DataError("an id contains a NUL character", hint="Remove it.")
    if ids[1] == ids[2]:
        raise DataError("a document is compared with itself", hint="Name two different documents.")
    query_id, left, right = map(str, ids)
    return GoldPair(query_id, left, right, _OUTCOMES[outcome])
