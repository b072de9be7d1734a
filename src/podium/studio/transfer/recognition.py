"""Recognizes what uploaded files hold by their first lines, so that nobody has to say it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import IO

from podium.errors import DataError
from podium.studio.errors import RefusedError
from podium.studio.messages import Message
from podium.studio.store.enums import Mode
from podium.studio.transfer.imports import Source
from podium.studio.transfer.readers import MAX_BYTES, limited
from podium.studio.transfer.tables import names_columns

_LOOKED_AT = 4 << 20
"""How many bytes of a file are looked at, decompressed."""
_LINES = 200
_GOLD = {"query_id", "left", "right", "outcome"}
_KINDS = {
    "candidates": Message("queries with candidates"),
    "table": Message("a table"),
    "runs": Message("a TREC run"),
    "documents": Message("documents"),
    "queries": Message("queries"),
    "gold": Message("gold pairs"),
}


def recognized(
    files: Sequence[tuple[IO[bytes], str]], mode: Mode
) -> tuple[Source, dict[str, list[int]]]:
    """What files hold together, and to each role the positions of its files.

    Args:
        files: Each with its name; afterwards they are at their beginning.
        mode: How the project is judged.
    """
    if not files:
        raise RefusedError(422, "Choose a file.")
    heads = [_first_lines(file, name) for file, name in files]
    runs = [line.split() for lines in heads if _is_run(lines) for line in lines]
    queries = {words[0] for words in runs}
    roles: dict[str, list[int]] = defaultdict(list)
    for position, ((_, name), lines) in enumerate(zip(files, heads, strict=True)):
        roles[_kind(lines, name, queries)].append(position)
    many = {role for role, positions in roles.items() if len(positions) > 1} - {"runs"}
    alone = {"candidates", "table", "gold"} & roles.keys()
    if not many and alone and len(roles) == 1:
        return alone.pop(), dict(roles)  # type: ignore[return-value]
    if not many and not alone and roles.keys() >= {"runs", "documents"}:
        if mode is Mode.RANKINGS or len(roles["runs"]) == 1:
            return "runs", dict(roles)
        raise RefusedError(422, "Give one TREC run: several are compared in projects of rankings.")
    if roles.keys() <= {"runs", "queries"} and roles["runs"]:
        raise RefusedError(
            422, "A TREC run has no texts: choose the file with the documents together with it."
        )
    kinds = {
        files[position][1]: _KINDS[role]
        for role, positions in roles.items()
        for position in positions
    }
    if len(files) == 1:
        (one, kind) = next(iter(kinds.items()))
        raise RefusedError(
            422, "%(one)s holds %(kind)s: choose a TREC run together with it.", one=one, kind=kind
        )
    (one, kind), (other, other_kind) = [*kinds.items(), *kinds.items()][:2]
    raise RefusedError(
        422,
        "%(one)s holds %(kind)s, and %(other)s holds %(other_kind)s. Choose one table, one file of "
        "queries with candidates or of gold pairs, or a TREC run with its documents and queries.",
        one=one,
        kind=kind,
        other=other,
        other_kind=other_kind,
    )


class _Kept:
    """A file that stays open: Arrow closes what it decompresses."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell

    def close(self) -> None:
        """Leave it open."""


def _first_lines(file: IO[bytes], name: str) -> list[str]:
    try:
        head = limited(_Kept(file), name, MAX_BYTES).read(_LOOKED_AT)  # type: ignore[arg-type]
    finally:
        file.seek(0)
    lines = head.decode("utf-8-sig", "replace").splitlines()
    return [line for line in lines if line.strip()][:_LINES]


def _is_run(lines: list[str]) -> bool:
    """Whether lines are query, Q0, document, rank, score and name."""
    if not lines:
        return False
    words = lines[0].split()
    return len(words) == 6 and words[3].isdecimal() and _is_number(words[4])


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _kind(lines: list[str], name: str, queries: set[str]) -> str:
    """What a file holds, where `queries` are those of runs beside it."""
    if not lines:
        raise DataError("is empty", path=name, hint="Is it the right file?")
    if _is_run(lines):
        return "runs"
    if lines[0].lstrip().startswith("{"):
        return _kind_of_object(lines[0])
    header = {each.strip().strip('"').lower() for each in lines[0].replace("\t", ",").split(",")}
    if header >= _GOLD:
        return "gold"
    is_list = queries and "\t" in lines[0] and not lines[0].lstrip().startswith("[")
    if not is_list or names_columns(header):
        return "table"
    ids = {line.partition("\t")[0].strip() for line in lines}
    return "queries" if ids & queries else "documents"


def _kind_of_object(line: str) -> str:
    try:
        names = set(json.loads(line))
    except (ValueError, RecursionError):
        return "candidates"  # whose reader says what is wrong, with the line
    if names >= _GOLD:
        return "gold"
    if "candidates" in names or ("document_id" not in names and "query_id" not in names):
        return "candidates"
    return "documents" if "document_id" in names else "queries"
