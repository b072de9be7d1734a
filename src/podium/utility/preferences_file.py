"""Preferences between rankings as JSONL, one pair per line.

    {"left": [2, 0, 1], "right": [1, 1, 0], "choice": 1, "weight": 1.0, "query_id": "q", "id": "p7"}

``left`` and ``right`` are the grades of the documents in order, integers from 0. ``choice`` is
2 (left is much better), 1, 0 (the same), -1 or -2; a pool of pairs still to judge has none. The
others are optional; ``metadata`` is for anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from podium.data.files import Reporter, Source, open_write, source_name
from podium.data.json_lines import json_line, json_lines
from podium.errors import DataError
from podium.utility.preferences import MOST_DEPTH, MOST_GRADES, RankingPreferences

_KEYS = {"left", "right", "choice", "weight", "query_id", "id", "metadata"}


def read_preferences(
    source: Source,
    *,
    grades: int | None = None,
    depth: int | None = None,
    progress: Reporter | None = None,
) -> RankingPreferences:
    r"""Read pairs of rankings with the verdicts on them.

    Args:
        source: A JSONL file.
        grades: How many grades there are; by default one more than the highest met.
        depth: How many positions count; by default those of the longest ranking.
        progress: Called with the bytes read.

    Example:
        >>> import io
        >>> line = b'{"left": [2, 0], "right": [1, 1], "choice": -1, "query_id": "q1"}\n'
        >>> read_preferences(io.BytesIO(line)).choices.tolist()
        [-1]
    """
    records = list(read_records(source, judged=True, progress=progress))
    return records_to_preferences(records, grades=grades, depth=depth)


def read_records(
    source: Source, *, judged: bool, progress: Reporter | None = None
) -> Iterator[dict[str, Any]]:
    """Read the lines of a file, checked.

    Args:
        source: A JSONL file.
        judged: Whether each must have a choice; if not, none may have one.
        progress: Called with the bytes read.
    """
    any_line = False
    for record in json_lines(source, partial(_checked, judged=judged), progress=progress):
        any_line = True
        yield record
    if not any_line:
        raise DataError(
            "has no pairs", path=source_name(source), hint="Write one JSON object per line."
        )


def records_to_preferences(
    records: list[dict[str, Any]], *, grades: int | None = None, depth: int | None = None
) -> RankingPreferences:
    """Convert checked records to arrays; each record without a query is a query of its own."""
    return RankingPreferences.from_arrays(
        [record["left"] for record in records],
        [record["right"] for record in records],
        [record.get("choice", 0) for record in records],
        pair_weights=[record.get("weight", 1.0) for record in records],
        queries=[record.get("query_id", index) for index, record in enumerate(records)],
        grades=grades,
        depth=depth,
    )


def write_preferences(
    pairs: RankingPreferences, target: Source, *, query_ids: Sequence[str] | None = None
) -> None:
    r"""Write pairs with their verdicts.

    Args:
        pairs: The pairs.
        target: The file.
        query_ids: The ids of the queries, by their numbers in ``pairs.queries``; by default the
            numbers themselves.

    Example:
        >>> import io
        >>> pairs = RankingPreferences.from_arrays([[1, 0]], [[0, 1]], [1])
        >>> write_preferences(pairs, file := io.BytesIO())
        >>> file.getvalue()
        b'{"left": [1, 0], "right": [0, 1], "choice": 1, "query_id": "0"}\n'
    """
    with open_write(target) as write:
        for index, query in enumerate(pairs.queries.tolist()):
            record = {
                "left": pairs.left[index].tolist(),
                "right": pairs.right[index].tolist(),
                "choice": int(pairs.choices[index]),
                "query_id": str(query) if query_ids is None else query_ids[query],
            }
            if pairs.pair_weights[index] != 1.0:
                record["weight"] = float(pairs.pair_weights[index])
            write(json_line(record))


def _checked(record: dict[str, Any], judged: bool) -> dict[str, Any]:
    unknown = record.keys() - _KEYS
    if unknown:
        raise DataError(f"has a key {min(unknown)!r}", hint=f"Known: {', '.join(sorted(_KEYS))}.")
    for side in ("left", "right"):
        _check_ranking(record.get(side), side)
    if judged != ("choice" in record):
        problem = "has no choice" if judged else "has a choice"
        raise DataError(problem, hint="Verdicts have a choice (2 to -2), pairs of a pool none.")
    choice = record.get("choice", 0)
    if isinstance(choice, bool) or not isinstance(choice, int) or not -2 <= choice <= 2:
        raise DataError(f"choice is {choice!r}", hint="Give 2 (left much better) to -2.")
    weight = record.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < 1e300:
        raise DataError(f"weight is {weight!r}", hint="Give a number of at least 0.")
    for key in ("query_id", "id"):
        if not isinstance(record.get(key, ""), str):
            raise DataError(f"{key} is {record[key]!r}", hint="Give a string.")
    return record


def _check_ranking(grades: Any, side: str) -> None:
    if not isinstance(grades, list) or not 1 <= len(grades) <= MOST_DEPTH:
        raise DataError(
            f"{side} is not a list of 1 to {MOST_DEPTH} grades", hint="Give the grades in order."
        )
    for grade in grades:
        if isinstance(grade, bool) or not isinstance(grade, int) or not 0 <= grade < MOST_GRADES:
            raise DataError(
                f"{side} has {grade!r} for a grade",
                hint=f"Grades are integers from 0 to {MOST_GRADES - 1}.",
            )
