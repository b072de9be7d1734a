"""Shared by the text formats: parallel parsing of chunks, columns of words, writing lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from podium.data.files import PADDING, Reporter, Source, chunk_loaders, numbered_lines, source_name
from podium.data.formats.decimal import BAD, read_decimal
from podium.data.grouping import Strings
from podium.errors import DataError
from podium.kernels import Bytes, Doubles, Ints, lazy_kernel
from podium.threads import ordered_map

_Parsed = TypeVar("_Parsed")

_FEED = 10


def parsed_chunks(
    source: Source, parse: Callable[[Bytes], _Parsed], progress: Reporter | None
) -> Iterator[_Parsed]:
    """Parse a source's chunks in threads, in order; an error is of the first line that is wrong.

    ``parse`` counts lines from the start of its chunk in the errors it raises; they are
    converted to line numbers of the source.
    """

    def load_and_parse(load: Callable[[], Bytes]) -> tuple[_Parsed, int]:
        chunk = load()
        try:
            parsed = parse(chunk)
        except DataError as error:
            raise _first_problem(parse, chunk, error) from error
        return parsed, count_lines(chunk, len(chunk) - PADDING)

    results = ordered_map(load_and_parse, chunk_loaders(source, progress=progress))
    lines = 0
    while True:
        try:
            result = next(results, None)
        except DataError as error:
            raise error.with_line_offset(lines) from error
        if result is None:
            return
        yield result[0]
        lines += result[1]


def _first_problem(parse: Callable[[Bytes], object], chunk: Bytes, problem: DataError) -> DataError:
    """The problem of the first wrong line, given that of some line.

    A parser checks a chunk in several passes (numbers, then ids), and the first pass that fails
    may do so below what a later pass would find: the lines above are parsed again without it.
    """
    while problem.line is not None and problem.line > 1:
        above = int(np.flatnonzero(chunk == _FEED)[problem.line - 2]) + 1
        try:
            parse(np.concatenate((chunk[:above], np.full(PADDING, _FEED, np.uint8))))
        except DataError as earlier:
            if earlier.line is None:
                break
            problem = earlier
        else:
            break
    return problem


def count_lines(chunk: Bytes, stop: int) -> int:
    """Count the line feeds before byte ``stop``."""
    return int(np.count_nonzero(chunk[:stop] == _FEED))


def gather_strings(
    chunk: Bytes, begins: Ints, ends: Ints, name: str, *, empty_is_null: bool = False
) -> Strings:
    """Copy spans of a chunk to an Arrow string array, checked to be UTF-8."""
    starts = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(ends - begins, out=starts[1:])
    text = np.empty(int(starts[-1]), np.uint8)
    _copy_spans(chunk, begins, ends, text)
    present = None
    if empty_is_null and bool(np.any(begins == ends)):
        present = pa.array(begins != ends).buffers()[1]
    strings = pa.LargeStringArray.from_buffers(
        len(begins), pa.py_buffer(starts), pa.py_buffer(text), present
    )
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid as error:
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            word = chunk[begin:end].tobytes()
            if word.decode("utf-8", "replace").encode() != word:
                raise DataError(
                    f"{word!r} is not UTF-8",
                    path=name,
                    line=count_lines(chunk, begin) + 1,
                    hint="Convert the file to UTF-8 first, for example with iconv.",
                ) from error
        raise
    return strings


@lazy_kernel
def _copy_spans(chunk: Bytes, begins: Ints, ends: Ints, text: Bytes) -> None:
    index = 0
    for row in range(len(begins)):
        for at in range(begins[row], ends[row]):
            text[index] = chunk[at]
            index += 1


@lazy_kernel
def split_lines(chunk: Bytes, spans: NDArray[np.int64]) -> tuple[int, int]:
    """Find the words of each line that is not blank; ``spans`` is rows x columns x (begin, end).

    Returns the number of rows, and where a line begins that has more or fewer words than columns
    or holds a control character (-1 if none does).
    """
    columns = spans.shape[1]
    stop = len(chunk) - PADDING
    row = 0
    at = 0
    while at < stop:
        line = at
        words = 0
        while chunk[at] != _FEED:
            if chunk[at] == 32 or chunk[at] == 9 or chunk[at] == 13:
                at += 1
                continue
            if chunk[at] < 32 or words == columns:
                return row, line
            spans[row, words, 0] = at
            while chunk[at] > 32:
                at += 1
            spans[row, words, 1] = at
            words += 1
        if words == columns:
            row += 1
        elif words:
            return row, line
        at += 1
    return row, -1


@lazy_kernel
def parse_numbers(
    chunk: Bytes, spans: NDArray[np.int64], values: Doubles, status: NDArray[np.int8]
) -> None:
    """Parse the number at each span; ``status`` is that of ``read_decimal``."""
    for row in range(len(spans)):
        kind, values[row], end = read_decimal(chunk, spans[row, 0])
        status[row] = kind if end == spans[row, 1] else BAD


def text_lines(columns: Sequence[Any]) -> bytes:
    r"""Join columns (strings, numbers, or one string for all rows) to lines of words.

    Numbers are written with the fewest digits that read back to the same value; null entries are
    left out.

    Example:
        >>> text_lines([pa.array(["a", "b"], pa.large_string()), "0", np.float32([1, 0.1])])
        b'a 0 1\nb 0 0.1\n'
    """
    words = [
        pa.scalar(column, pa.large_string())
        if isinstance(column, str)
        else pa.array(column).cast(pa.large_string())
        for column in columns
    ]
    joined = pc.binary_join_element_wise(
        *words, pa.scalar(" ", pa.large_string()), null_handling="skip"
    )
    feed, nothing = pa.scalar("\n", pa.large_string()), pa.scalar("", pa.large_string())
    lines = pc.binary_join_element_wise(joined, nothing, feed)
    if not len(lines):
        return b""
    # The strings of an Arrow array are contiguous in memory: they are the file.
    return bytes(lines.buffers()[2])


def check_words(ids: Strings, what: str) -> None:
    """Reject ids that cannot be written to a white-space separated file."""
    bad = pc.fill_null(pc.match_substring_regex(ids, r"^$|[\s\x00-\x20]"), True)
    if pc.any(bad).as_py():
        first = ids[pc.index(bad, True).as_py()].as_py() or ""
        raise DataError(
            f"{what} are empty or contain white space, which this format does not allow: the first "
            f"is {first[:80]!r}",
            hint="Write Parquet, a file that ends with .parquet, or rename them.",
        )


def read_group_sizes(source: Source) -> Ints:
    r"""Read the number of rows per query, one per line (LightGBM's ``.query`` files).

    Example:
        >>> import io
        >>> read_group_sizes(io.BytesIO(b"3\n1\n")).tolist()
        [3, 1]
    """
    sizes: list[int] = []
    for line, text in numbered_lines(source):
        word = text.strip()
        if word and (not word.isdigit() or len(word) > 15 or not int(word)):
            raise DataError(
                f"{word[:40].decode('utf-8', 'replace')!r} is not a valid number of rows",
                path=source_name(source),
                line=line,
                hint="A group file has one positive integer per line.",
            )
        if word:
            sizes.append(int(word))
    return np.array(sizes, np.int64)
