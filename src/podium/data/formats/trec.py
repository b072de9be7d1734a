"""TREC's white-space separated files: qrels, runs and preferences.

- qrels: ``topic iteration document label``; the iteration is ignored and written as 0.
- runs: ``topic Q0 document rank score tag``; order comes from the score as in trec_eval, the rank
  is ignored and written from the score.
- prefs (trec_eval): ``topic group subgroup document level``; qrels_prefs is the same without the
  subgroup.
- pairs: ``topic documentA documentB preferred``, the last one of the two ids, or ``=`` for a tie.

Every line has exactly its columns; blank lines are passed over. Anything else is an error that
names file and line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from podium.data.files import Reporter, Source, open_write, source_name
from podium.data.formats.decimal import BAD, EXACT
from podium.data.formats.text import (
    check_words,
    count_lines,
    gather_strings,
    parse_numbers,
    parsed_chunks,
    split_lines,
    text_lines,
)
from podium.data.grouping import Strings
from podium.data.judged import Judgments, Rankings
from podium.data.preferences import PreferenceLevels, Preferences
from podium.errors import DataError
from podium.kernels import Bytes, Doubles, Ints

_Table = TypeVar("_Table", Judgments, Rankings, Preferences, PreferenceLevels)


def read_qrels(source: Source, *, progress: Reporter | None = None) -> Judgments:
    r"""Read TREC qrels.

    Example:
        >>> import io
        >>> read_qrels(io.BytesIO(b"q1 0 a 2\nq1 0 b 0\n")).labels.tolist()
        [2.0, 0.0]
    """
    topics, documents, labels = _read(source, "topic iteration document label", (0, 2), 3, progress)
    return _named(source, lambda: Judgments.from_columns(topics, documents, labels))


def write_qrels(judgments: Judgments, target: Source) -> None:
    r"""Write judgments as TREC qrels.

    Example:
        >>> import io
        >>> write_qrels(Judgments.from_columns(["q1"], ["a"], [2]), out := io.BytesIO())
        >>> out.getvalue()
        b'q1 0 a 2\n'
    """
    _write(target, [judgments.query_id_of_row(), "0", judgments.document_ids, judgments.labels])


def read_run(source: Source, *, progress: Reporter | None = None) -> Rankings:
    r"""Read a TREC run; its name is the tag of the first line.

    Example:
        >>> import io
        >>> run = read_run(io.BytesIO(b"q1 Q0 a 1 7.5 bm25\nq1 Q0 b 2 3 bm25\n"))
        >>> run.name, run.scores.tolist()
        ('bm25', [7.5, 3.0])
    """
    layout = "topic Q0 document rank score tag"
    topics, documents, tags, scores = _read(source, layout, (0, 2, 5), 4, progress)
    name = tags[0].as_py()
    return _named(source, lambda: Rankings.from_columns(topics, documents, scores, name=name))


def write_run(rankings: Rankings, target: Source) -> None:
    r"""Write rankings as a TREC run, best first; equal scores keep their order.

    Example:
        >>> import io
        >>> write_run(Rankings.from_columns(["q"] * 2, ["a", "b"], [1, 2]), out := io.BytesIO())
        >>> out.getvalue()
        b'q Q0 b 1 2 podium\nq Q0 a 2 1 podium\n'
    """
    order = np.lexsort((-rankings.scores, rankings.query_of_row))
    ranks = np.arange(rankings.rows) - rankings.offsets[rankings.query_of_row] + 1
    documents = rankings.document_ids.take(pa.array(order))
    tag = "_".join(rankings.name.split()) or "podium"
    topics = rankings.query_id_of_row()
    _write(target, [topics, "Q0", documents, ranks, rankings.scores[order], tag])


def read_pairs(source: Source, *, progress: Reporter | None = None) -> Preferences:
    r"""Read judged pairs ``topic documentA documentB preferred``.

    Example:
        >>> import io
        >>> read_pairs(io.BytesIO(b"q a b b\nq a c =\n")).verdicts.tolist()
        [-1, 0]
    """
    layout = "topic documentA documentB preferred"
    topics, left, right, preferred = _read(source, layout, (0, 1, 2, 3), None, progress)
    verdicts = np.select(
        [np.asarray(pc.equal(preferred, side)) for side in (left, right, "=")],
        [1, -1, 0],
        default=9,
    )
    if (verdicts == 9).any():
        row = int(np.argmax(verdicts == 9))
        raise DataError(
            f"{preferred[row].as_py()!r} is neither {left[row].as_py()!r} nor "
            f"{right[row].as_py()!r}, in judgment {row + 1}",
            path=source_name(source),
            hint="The last column names the preferred document, or '=' for a tie.",
        )
    return _named(source, lambda: Preferences.from_columns(topics, left, right, verdicts))


def write_pairs(preferences: Preferences, target: Source) -> None:
    r"""Write judged pairs ``topic documentA documentB preferred``.

    Example:
        >>> import io
        >>> pairs = Preferences.from_columns(["q"], ["a"], ["b"], [-1])
        >>> write_pairs(pairs, out := io.BytesIO())
        >>> out.getvalue()
        b'q a b b\n'
    """
    left, right = preferences.left, preferences.right
    preferred = pc.if_else(pa.array(preferences.verdicts == -1), right, left)
    preferred = pc.if_else(pa.array(preferences.verdicts == 0), "=", preferred)
    _write(target, [preferences.query_id_of_row(), left, right, preferred])


def read_prefs(
    source: Source, *, subgroups: bool = True, progress: Reporter | None = None
) -> PreferenceLevels:
    r"""Read trec_eval's prefs, or qrels_prefs (``subgroups=False``).

    Example:
        >>> import io
        >>> read_prefs(io.BytesIO(b"q u s a 2\nq u s b 1\n")).levels.tolist()
        [2.0, 1.0]
    """
    if subgroups:
        layout = "topic group subgroup document level"
        topics, groups, parts, documents, levels = _read(source, layout, (0, 1, 2, 3), 4, progress)
    else:
        layout = "topic group document level"
        topics, groups, documents, levels = _read(source, layout, (0, 1, 2), 3, progress)
        parts = pa.array(["0"] * len(topics), pa.large_string())
    return _named(
        source, lambda: PreferenceLevels.from_columns(topics, groups, parts, documents, levels)
    )


def write_prefs(levels: PreferenceLevels, target: Source, *, subgroups: bool = True) -> None:
    """Write trec_eval's prefs, or qrels_prefs (``subgroups=False``)."""
    if not subgroups and len(pc.unique(levels.subgroups)) > 1:
        raise DataError(
            "there are several subgroups, which qrels_prefs cannot hold", hint="Write prefs."
        )
    middle = [levels.groups, levels.subgroups] if subgroups else [levels.groups]
    _write(target, [levels.query_id_of_row(), *middle, levels.document_ids, levels.levels])


def _read(
    source: Source,
    layout: str,
    text_columns: tuple[int, ...],
    number_column: int | None,
    progress: Reporter | None,
) -> list[Any]:
    """Read some columns as strings and one, returned last, as numbers."""
    name = source_name(source)
    names = layout.split()

    def parse(chunk: Bytes) -> tuple[list[Strings], Doubles]:
        spans = np.empty((count_lines(chunk, len(chunk)), len(names), 2), np.int64)
        rows, bad = split_lines(chunk, spans)
        if bad >= 0:
            start = chunk[bad : bad + 80].tobytes().split(b"\n")[0].decode("utf-8", "replace")
            raise DataError(
                f"{start!r} does not have the {len(names)} columns '{layout}'",
                path=name,
                line=count_lines(chunk, bad) + 1,
                hint="Mend the line, or name the format the file has.",
            )
        spans = spans[:rows]
        texts = [
            gather_strings(chunk, spans[:, column, 0].copy(), spans[:, column, 1].copy(), name)
            for column in text_columns
        ]
        if number_column is None:
            return texts, np.empty(0)
        return texts, _numbers(chunk, spans[:, number_column].copy(), names[number_column], name)

    parts = list(parsed_chunks(source, parse, progress))
    if not sum(len(texts[0]) for texts, _ in parts):
        raise DataError("holds no line of data", path=name, hint="Is it the right file?")
    columns = [
        pa.concat_arrays(pieces) for pieces in zip(*(part[0] for part in parts), strict=True)
    ]
    if number_column is not None:
        columns.append(np.concatenate([numbers for _, numbers in parts]))
    return columns


def _numbers(chunk: Bytes, spans: Ints, what: str, name: str) -> Doubles:
    values = np.empty(len(spans))
    found = np.empty(len(spans), np.int8)
    parse_numbers(chunk, spans, values, found)
    for row in np.flatnonzero(found != EXACT):
        word = chunk[spans[row, 0] : spans[row, 1]].tobytes()
        # What is no plain decimal number is BAD; the rest Python reads to the last bit.
        values[row] = np.nan if found[row] == BAD else float(word)
        if not np.isfinite(values[row]):
            raise DataError(
                f"{word[:40].decode('utf-8', 'replace')!r} is not a finite number for the {what}",
                path=name,
                line=count_lines(chunk, int(spans[row, 0])) + 1,
                hint="Mend the line.",
            )
    return values


def _named(source: Source, make: Callable[[], _Table]) -> _Table:
    """Make a table, and name the file in the error if its columns do not make one."""
    try:
        return make()
    except DataError as error:
        raise DataError(error.problem, path=source_name(source), hint=error.hint) from error


def _write(target: Source, columns: list[Any]) -> None:
    for column in columns:
        if isinstance(column, pa.Array):
            check_words(column, "ids")
    rows = len(columns[0])
    with open_write(target) as write:
        for first in range(0, rows, 1 << 16):
            block = [
                column if isinstance(column, str) else column[first : first + (1 << 16)]
                for column in columns
            ]
            write(text_lines(block))
