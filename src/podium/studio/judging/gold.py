"""Gold pairs: pairs with a known outcome, asked as checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from sqlalchemy import Connection, insert, select

from podium.errors import DataError
from podium.studio.json_types import JsonObject
from podium.studio.judging.record_files import read_records
from podium.studio.store.enums import Mode
from podium.studio.store.rows import ProjectRow
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


def add_gold(connection: Connection, project: ProjectRow, pairs: list[GoldPair]) -> int:
    """Add gold pairs to a project; returns how many were new."""
    if project.mode != Mode.PAIRS:
        raise DataError("only projects that judge pairs take gold pairs", hint="Create one.")
    by_query: dict[str, list[GoldPair]] = {}
    for pair in pairs:
        by_query.setdefault(pair.query_id, []).append(pair)
    added = 0
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
        present = {
            frozenset((row.left, row.right))
            for row in connection.execute(
                select(Gold.left, Gold.right).where(Gold.query_id == query_id)
            )
        }
        for pair in gold_pairs:
            for item in (pair.left, pair.right):
                if item not in positions:
                    raise DataError(
                        f"query {name!r} has no document {item!r}", hint="See its candidates."
                    )
            left, right = positions[pair.left], positions[pair.right]
            if frozenset((left, right)) not in present:
                present.add(frozenset((left, right)))
                connection.execute(
                    insert(Gold).values(
                        query_id=query_id, left=left, right=right, outcome=pair.outcome
                    )
                )
                added += 1
    return added


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
