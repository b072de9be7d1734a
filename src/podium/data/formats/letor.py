"""LETOR / SVMlight text: ``label qid:ID 1:value 2:value … #docid = ID …``, one document per line.

What is accepted, and what is an error:

- Features absent from a line are 0, as in SVMlight; ``NULL`` (as in LETOR) is missing: NaN.
- Of a comment only ``docid`` is kept. Blank lines and comment lines are skipped.
- The rows of a query need not be contiguous when the whole file is read (they are grouped), but
  must be when it is streamed.
- ``nan`` and ``inf`` are errors unless ``keep_nonfinite=True``; so are indices that repeat or
  descend, index 0 unless ``zero_based=True``, indices above ``max_features``, NUL bytes, ids that
  are not UTF-8, and anything else that is not of this form. The error names file and line.
- A last line without a line feed counts, so truncated plain text cannot be detected; truncated
  compressed text is an error.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from podium.data.dataset import Dataset
from podium.data.files import PADDING, Reporter, Source, chunk_loaders, open_write, source_name
from podium.data.formats import letor_kernel as lk
from podium.data.formats.text import (
    check_words,
    count_lines,
    gather_strings,
    parsed_chunks,
    read_group_sizes,
    text_lines,
)
from podium.data.grouping import Strings, group_runs, group_sizes
from podium.data.stream import check_contiguous, whole_queries
from podium.errors import DataError
from podium.kernels import Bytes, Floats, Ints

MAX_FEATURES = 10_000
GROUP_SUFFIX = ".query"
"""The suffix of the file with rows per query that is read with a LETOR file, as in LightGBM."""
_BLOCK_BYTES = 2 << 30

_PROBLEMS = {
    lk.WIDER: (
        "{token!r} has an index above {most}",
        "Raise max_features if the file really has that many features.",
    ),
    lk.BAD_LABEL: ("{token!r} is not a valid label", "A line starts with a finite number."),
    lk.NO_QUERY: (
        "expected 'qid:ID' after the label, found {token!r}",
        "Add it to each line, or give the number of rows per query with group=.",
    ),
    lk.BAD_INDEX: ("{token!r} is not 'index:value'", "Fix the line."),
    lk.BAD_VALUE: ("{token!r} has no number after the colon", "Fix the line."),
    lk.NOT_FINITE: (
        "{token!r} is not a finite float32",
        "Fix it, write NULL for a missing value, or read with keep_nonfinite=True.",
    ),
    lk.TOO_LARGE: (
        "{token!r} is not a finite float32",
        "Float32 ends at 3.4e38: scale the values down, or fix the line.",
    ),
    lk.NOT_ASCENDING: (
        "the index of {token!r} is not larger than the one before",
        "Feature indices of a line are in ascending order, without repetition.",
    ),
    lk.ZERO_INDEX: ("{token!r} has index 0", "Read with zero_based=True if indices start at 0."),
    lk.NUL_BYTE: ("contains a NUL byte", "The file is damaged or not text."),
}


@dataclass(frozen=True)
class _Options:
    name: str
    zero_based: bool
    keep_nonfinite: bool
    max_features: int
    with_queries: bool


@dataclass
class _Rows:
    """Contents of a chunk of text: rows, and runs of rows with one query id."""

    features: Floats
    labels: Floats
    run_ids: Strings
    run_starts: Ints
    document_ids: Strings | None


def read_letor(
    source: Source,
    *,
    group: Source | Ints | list[int] | None = None,
    zero_based: bool = False,
    keep_nonfinite: bool = False,
    max_features: int = MAX_FEATURES,
    unlabeled: bool = False,
    progress: Reporter | None = None,
) -> Dataset:
    r"""Read a whole LETOR file, on all cores.

    Args:
        source: A path (plain, gzip or zstd), ``"-"``, or an open binary stream.
        group: For files without ``qid:``: the number of rows per query, or the file that lists
            them. A file ``SOURCE.query`` is used automatically, as in LightGBM.
        zero_based: Feature indices start at 0, not 1.
        keep_nonfinite: Accept ``nan`` and ``inf`` as missing feature values.
        max_features: Larger indices are errors: a stray one would make every row that wide.
        unlabeled: Whether lines may begin without a label, which makes all labels NaN.
        progress: Called with bytes read and total bytes.

    Example:
        >>> import io
        >>> text = b"2 qid:7 1:0.5 3:1 #docid = a\n0 qid:7 2:4 #docid = b\n"
        >>> data = read_letor(io.BytesIO(text))
        >>> data.features.tolist(), data.document_ids.to_pylist()
        ([[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]], ['a', 'b'])
    """
    sizes = _group_of(source, group)
    options = _Options(source_name(source), zero_based, keep_nonfinite, max_features, sizes is None)
    without = None
    if unlabeled:
        text = b"".join(load()[:-PADDING].tobytes() for load in chunk_loaders(source))
        without = _with_labels(text)
        source = io.BytesIO(text if without is None else without)
    parts = list(_parse(source, options, progress))
    if not sum(len(part.labels) for part in parts):
        raise _no_document(options.name)
    rows = _join(parts)
    if sizes is None:
        grouping = group_runs(rows.run_ids, rows.run_starts, len(rows.labels))
    else:
        try:
            grouping = group_sizes(sizes, len(rows.labels), None)
        except DataError as error:
            raise error.at(options.name) from error
    labels = rows.labels if without is None else np.full_like(rows.labels, np.nan)
    return Dataset.grouped(rows.features, labels, grouping, rows.document_ids, ())


def _with_labels(text: bytes) -> bytes | None:
    """Put a label before each line if the first document has none, as ``qid:`` comes first."""
    lines = text.splitlines()
    words = [line.partition(b"#")[0].split(maxsplit=1)[:1] for line in lines]
    first = next((word[0] for word in words if word), b"")
    if b":" not in first:
        return None
    return b"\n".join(
        b"0 " + line if word else line for line, word in zip(lines, words, strict=True)
    )


def iter_letor(
    source: Source,
    *,
    zero_based: bool = False,
    keep_nonfinite: bool = False,
    max_features: int = MAX_FEATURES,
    progress: Reporter | None = None,
) -> Iterator[Dataset]:
    r"""Stream a LETOR file as data sets of whole queries, in bounded memory.

    Rows of a query must be contiguous. A block is as wide as the widest line so far, so that later
    blocks may have more features than earlier ones.

    Example:
        >>> import io
        >>> list(iter_letor(io.BytesIO(b"1 qid:a 1:2\n0 qid:a 1:3\n")))
        [Dataset(1 queries, 2 rows, 1 features)]
    """
    options = _Options(source_name(source), zero_based, keep_nonfinite, max_features, True)
    blocks = (
        Dataset.grouped(
            rows.features,
            rows.labels,
            check_contiguous(
                group_runs(rows.run_ids, rows.run_starts, len(rows.labels)), options.name
            ),
            rows.document_ids,
        )
        for rows in _parse(source, options, progress)
        if len(rows.labels)
    )
    empty = True
    for block in whole_queries(blocks, options.name):
        empty = False
        yield block
    if empty:
        raise _no_document(options.name)


def write_letor(
    datasets: Dataset | Iterable[Dataset], target: Source, *, zero_based: bool = False
) -> None:
    r"""Write data sets as LETOR text; every number reads back to the same float32.

    Example:
        >>> import io
        >>> data = Dataset.from_arrays([[0.5, 3]], labels=[1], qid=["q"], document_ids=["d"])
        >>> write_letor(data, out := io.BytesIO())
        >>> out.getvalue()
        b'1 qid:q 1:0.5 2:3 #docid = d\n'
    """
    with open_write(target) as write:
        for data in [datasets] if isinstance(datasets, Dataset) else datasets:
            check_words(data.query_ids, "query ids")
            if data.document_ids is not None:
                check_words(data.document_ids.drop_null(), "document ids")
            for first in range(0, data.rows, 4096):
                write(_lines(data, slice(first, first + 4096), 0 if zero_based else 1))


def _lines(data: Dataset, rows: slice, first_index: int) -> bytes:
    queries = data.query_ids.take(pa.array(data.query_of_row[rows]))
    columns = [data.labels[rows], _prefixed("qid:", queries)]
    for column, values in enumerate(np.ascontiguousarray(data.features[rows].T)):
        words = pa.array(values, from_pandas=True).cast(pa.large_string())
        columns.append(_prefixed(f"{column + first_index}:", pc.fill_null(words, "NULL")))
    if data.document_ids is not None:
        columns.append(_prefixed("#docid = ", data.document_ids[rows]))
    return text_lines(columns)


def _prefixed(prefix: str, words: Strings) -> Strings:
    first, nothing = pa.scalar(prefix, pa.large_string()), pa.scalar("", pa.large_string())
    return pc.binary_join_element_wise(first, words, nothing)


def group_file(source: Source) -> Path | None:
    """Find the file with rows per query beside a LETOR file, named as in LightGBM."""
    if isinstance(source, str | os.PathLike) and os.fspath(source) != "-":
        path = Path(f"{os.fspath(source)}{GROUP_SUFFIX}")
        with suppress(OSError):  # the name may be too long
            return path if path.exists() else None
    return None


def _group_of(source: Source, group: Source | Ints | list[int] | None) -> Ints | None:
    if group is None:
        path = group_file(source)
        return None if path is None else read_group_sizes(path)
    return np.asarray(group) if isinstance(group, np.ndarray | list) else read_group_sizes(group)


def _parse(source: Source, options: _Options, progress: Reporter | None) -> Iterator[_Rows]:
    guess = 1

    def parse(chunk: Bytes) -> _Rows:
        return _parse_chunk(chunk, guess, options)

    for rows in parsed_chunks(source, parse, progress):
        guess = max(guess, rows.features.shape[1])
        yield rows


def _parse_chunk(chunk: Bytes, width: int, options: _Options) -> _Rows:
    max_rows = count_lines(chunk, len(chunk))
    labels = np.empty(max_rows, np.float32)
    runs = np.empty((max_rows if options.with_queries else 1, 3), np.int64)
    documents = np.empty((max_rows, 2), np.int64)
    spare = 1024
    while True:
        if max_rows * width * 4 > _BLOCK_BYTES:
            raise DataError(
                f"has feature index {width}, which makes {max_rows} dense rows larger than "
                f"{_BLOCK_BYTES >> 30} GiB",
                path=options.name,
                hint="Rows are dense in Podium: select features first.",
            )
        features = np.zeros((max_rows, width), np.float32)
        slow = np.empty((spare + width + 1, 4), np.int64)
        status, at, rows, run_count, slows, columns = lk.parse(
            chunk,
            features,
            labels,
            runs,
            documents,
            slow,
            0 if options.zero_based else 1,
            options.with_queries,
            options.keep_nonfinite,
        )
        if status == lk.WIDER and columns <= options.max_features:
            width = min(max(columns, 2 * width), options.max_features)
        elif status == lk.CROWDED:
            spare *= 8
        else:
            break
    if status != lk.DONE:
        raise _problem(chunk, status, at, options)
    for row, column, begin, end in slow[:slows]:
        with np.errstate(over="ignore"):
            value = np.float32(float(chunk[begin:end].tobytes()))
        if np.isinf(value):
            raise _problem(chunk, lk.TOO_LARGE, int(begin), options)
        if column < 0:
            labels[row] = value
        else:
            features[row, column] = value
    spans = documents[:rows]
    has_documents = bool(np.any(spans[:, 1] > spans[:, 0]))
    return _Rows(
        features[:rows, :columns],
        labels[:rows],
        gather_strings(chunk, runs[:run_count, 1], runs[:run_count, 2], options.name),
        runs[:run_count, 0].copy(),
        gather_strings(chunk, spans[:, 0], spans[:, 1], options.name, empty_is_null=True)
        if has_documents
        else None,
    )


def _no_document(name: str) -> DataError:
    return DataError("has no documents", path=name, hint="Is it the right file?")


def _problem(chunk: Bytes, status: int, at: int, options: _Options) -> DataError:
    line = count_lines(chunk, at) + 1
    words = chunk[at : at + 60].tobytes().split(None, 1)
    token = words[0].decode("utf-8", "replace") if words and chunk[at] > 32 else ""
    problem, hint = _PROBLEMS[status]
    if status == lk.BAD_INDEX and not options.with_queries and token.lower().startswith("qid:"):
        hint = "Its lines have query ids: read it without group=, or move its .query file away."
    text = problem.format(token=token, most=options.max_features)
    return DataError(text, path=options.name, line=line, hint=hint)


def _join(parts: list[_Rows]) -> _Rows:
    """Concatenate parsed chunks, padded to the widest; frees each chunk once copied."""
    width = max(part.features.shape[1] for part in parts)
    total = sum(len(part.labels) for part in parts)
    some_documents = any(part.document_ids is not None for part in parts)
    features = np.empty((total, width), np.float32)
    labels = np.empty(total, np.float32)
    run_ids, run_starts, document_ids = [], [], []
    row = 0
    for index in range(len(parts)):
        part, parts[index] = parts[index], parts[-1]
        size, columns = part.features.shape
        features[row : row + size, :columns] = part.features
        features[row : row + size, columns:] = 0.0
        labels[row : row + size] = part.labels
        run_ids.append(part.run_ids)
        run_starts.append(part.run_starts + row)
        if some_documents:
            document_ids.append(
                pa.nulls(size, pa.large_string())
                if part.document_ids is None
                else part.document_ids
            )
        row += size
    return _Rows(
        features,
        labels,
        pa.concat_arrays(run_ids),
        np.concatenate(run_starts),
        pa.concat_arrays(document_ids) if some_documents else None,
    )
