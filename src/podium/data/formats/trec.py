"""TREC's white-space separated files: qrels, runs and preferences.

- qrels: ``topic iteration document label``; the iteration is ignored and written as 0.
- runs: ``topic Q0 document rank score tag``; the order follows the scores as in trec_eval; the
  rank is computed from the scores when writing, and queries whose ranks contradict the scores are
  counted when reading.
- prefs (trec_eval): ``topic group subgroup document level``; qrels_prefs is the same without the
  subgroup.
- pairs: ``topic documentA documentB preferred``; the last column is one of the two ids, or ``=``
  for a tie.

Every line has exactly its columns; blank lines are skipped. Anything else is an error that
names the file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from podium.data.files import UTF8_MARK, Reporter, Source, open_write, source_name
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
from podium.kernels import Bytes, Doubles, Ints, lazy_kernel

_MakeValues = Callable[[Bytes, Ints, list[Strings], str], NDArray[Any]]
"""Computes a number per row, or two, from a chunk, its word spans, its strings and a name."""

_Table = TypeVar("_Table", Judgments, Rankings, Preferences, PreferenceLevels)


_QRELS, _RUN = "topic iteration document label", "topic Q0 document rank score tag"
_HINTS = {
    (_QRELS, 6): "This looks like a run: judgments come first, then runs.",
    (_RUN, 4): "This looks like judgments: they come first, then runs.",
}
"""What a line that has as many words looks like."""


def read_qrels(source: Source, *, progress: Reporter | None = None) -> Judgments:
    r"""Read TREC qrels.

    Example:
        >>> import io
        >>> read_qrels(io.BytesIO(b"q1 0 a 2\nq1 0 b 0\n")).labels.tolist()
        [2.0, 0.0]
    """
    labels_of = partial(_numbers, column=3, what="label", dtype=np.float32)
    topics, documents, labels = _read(source, _QRELS, (0, 2), labels_of, progress)
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
    topics, documents, tags, numbers = _read(source, _RUN, (0, 2, 5), _scores_and_ranks, progress)
    scores, ranks = numbers
    known = ranks if ranks.min() >= 0 else None  # any word is fine in their place
    name = tags[0].as_py()
    return _named(
        source, lambda: Rankings.from_columns(topics, documents, scores, ranks=known, name=name)
    )


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
    tag = re.sub(r"[\x00-\x20]+", "_", rankings.name) or "podium"
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
    topics, left, right, _, verdicts = _read(source, layout, (0, 1, 2, 3), _verdicts, progress)
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
    if any(pc.any(pc.equal(side, "=")).as_py() for side in (left, right)):
        raise DataError(
            "a document has the id '=', which means a tie in this format",
            hint="Write Parquet, or rename it.",
        )
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
        levels_of = partial(_numbers, column=4, what="level")
        topics, groups, parts, documents, levels = _read(
            source, layout, (0, 1, 2, 3), levels_of, progress
        )
    else:
        layout = "topic group document level"
        levels_of = partial(_numbers, column=3, what="level")
        topics, groups, documents, levels = _read(source, layout, (0, 1, 2), levels_of, progress)
        parts = pa.array(["0"] * len(topics), pa.large_string())
    return _named(
        source, lambda: PreferenceLevels.from_columns(topics, groups, parts, documents, levels)
    )


def write_prefs(levels: PreferenceLevels, target: Source, *, subgroups: bool = True) -> None:
    r"""Write trec_eval's prefs, or qrels_prefs (``subgroups=False``).

    Example:
        >>> import io
        >>> lines, file = b"q g s d1 2\nq g s d2 1\n", io.BytesIO()
        >>> write_prefs(read_prefs(io.BytesIO(lines)), file)
        >>> file.getvalue() == lines
        True
    """
    if not subgroups and len(pc.unique(levels.subgroups)) > 1:
        raise DataError(
            "there are several subgroups, which qrels_prefs does not support", hint="Write prefs."
        )
    middle = [levels.groups, levels.subgroups] if subgroups else [levels.groups]
    _write(target, [levels.query_id_of_row(), *middle, levels.document_ids, levels.levels])


def _read(
    source: Source,
    layout: str,
    text_columns: tuple[int, ...],
    make_values: _MakeValues,
    progress: Reporter | None,
) -> list[Any]:
    """Read some columns as strings, and one number per row, returned last."""
    name = source_name(source)
    names = layout.split()

    def parse(chunk: Bytes) -> tuple[list[Strings], NDArray[Any]]:
        spans = np.empty((count_lines(chunk, len(chunk)), len(names), 2), np.int64)
        rows, bad = split_lines(chunk, spans)
        if bad >= 0:
            start = chunk[bad : bad + 80].tobytes().split(b"\n")[0].decode("utf-8", "replace")
            raise DataError(
                f"{start!r} does not have the {len(names)} columns '{layout}'",
                path=name,
                line=count_lines(chunk, bad) + 1,
                hint=_HINTS.get((layout, len(start.split())), "Fix the line, or name the format."),
            )
        spans = spans[:rows]
        strings = [
            gather_strings(chunk, spans[:, column, 0].copy(), spans[:, column, 1].copy(), name)
            for column in text_columns
        ]
        return strings, make_values(chunk, spans, strings, name)

    parts = list(parsed_chunks(source, parse, progress))
    if not sum(len(strings[0]) for strings, _ in parts):
        raise DataError("has no data", path=name, hint="Is it the right file?")
    columns = [
        pa.concat_arrays(pieces) for pieces in zip(*(part[0] for part in parts), strict=True)
    ]
    return [*columns, np.concatenate([values for _, values in parts], axis=-1)]


def _scores_and_ranks(
    chunk: Bytes, spans: Ints, strings: list[Strings], name: str
) -> NDArray[np.float64]:
    """Parse scores and, below them, ranks."""
    numbers = np.empty((2, len(spans)))
    numbers[0] = _numbers(chunk, spans, strings, name, column=4, what="score")
    _read_ranks(chunk, spans, numbers[1])
    return numbers


_MOST_RANK = 10**15
"""Beyond it a number is no rank, and ten times as much no integer of 64 bits."""


@lazy_kernel
def _read_ranks(chunk: Bytes, spans: Ints, ranks: Doubles) -> None:
    """Parse the fourth column as ranks; -1 where there is something else."""
    for row in range(len(ranks)):
        rank = 0
        for at in range(spans[row, 3, 0], spans[row, 3, 1]):
            if chunk[at] < 48 or chunk[at] > 57 or rank > _MOST_RANK:
                rank = -1
                break
            rank = 10 * rank + (int(chunk[at]) - 48)
        ranks[row] = rank


def _numbers(
    chunk: Bytes,
    spans: Ints,
    _strings: list[Strings],
    name: str,
    *,
    column: int,
    what: str,
    dtype: type = np.float64,
) -> Doubles:
    """Parse the numbers in a column, which must be finite in ``dtype``."""
    words = spans[:, column].copy()
    values = np.empty(len(words))
    status = np.empty(len(words), np.int8)
    parse_numbers(chunk, words, values, status)
    for row in np.flatnonzero(status != EXACT):
        # BAD is not a decimal number; Python parses the others exactly.
        word = chunk[words[row, 0] : words[row, 1]].tobytes()
        values[row] = np.nan if status[row] == BAD else float(word)
    with np.errstate(over="ignore"):
        good = np.isfinite(values.astype(dtype, copy=False))
    if not good.all():
        begin, end = words[int(np.argmin(good))]
        word = chunk[begin : min(end, begin + 40)].tobytes()
        raise DataError(
            f"{word.decode('utf-8', 'replace')!r} is not a finite number for the {what}",
            path=name,
            line=count_lines(chunk, int(begin)) + 1,
            hint="Fix the line.",
        )
    return values


def _verdicts(chunk: Bytes, spans: Ints, strings: list[Strings], name: str) -> NDArray[np.int8]:
    """Parse which of two documents the last column prefers."""
    _, left, right, preferred = strings
    sides = [np.asarray(pc.equal(preferred, side), bool) for side in (left, right, "=")]
    wrong = ~np.any(sides, axis=0) | np.asarray(pc.equal(left, right), bool)
    for side in (left, right):  # "=" would be both a document and a tie
        wrong |= np.asarray(pc.equal(side, "="), bool)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{preferred[row].as_py()!r} does not say which of two documents, "
            f"{left[row].as_py()!r} and {right[row].as_py()!r}, is preferred",
            path=name,
            line=count_lines(chunk, int(spans[row, 0, 0])) + 1,
            hint="The last column names one of the two, or is '=' for a tie.",
        )
    return np.select(sides, [np.int8(1), np.int8(-1), np.int8(0)])


def _named(source: Source, make: Callable[[], _Table]) -> _Table:
    """Create a table; errors name the file."""
    try:
        return make()
    except DataError as error:
        raise error.at(source_name(source)) from error


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
            lines = text_lines(block)
            if first == 0 and lines.startswith(UTF8_MARK):
                write(UTF8_MARK)  # the first id would be taken for a byte order mark
            write(lines)
