"""The compiled parser behind the LETOR reader: one pass over a chunk of whole lines."""

from __future__ import annotations

import numpy as np

from podium.data.files import PADDING
from podium.data.formats.decimal import BAD, read_decimal, read_digits, sure_float32
from podium.kernels import Bytes, Floats, Ints, kernel

# Status codes of a parse. WIDER and CROWDED are not errors: the caller parses again with space for
# more columns, or for more numbers that are left to Python.
DONE, WIDER, CROWDED = 0, 1, 2
BAD_LABEL, NO_QUERY, BAD_INDEX, BAD_VALUE, NOT_FINITE = 3, 4, 5, 6, 7
NOT_ASCENDING, ZERO_INDEX, NUL_BYTE, TOO_LARGE = 8, 9, 10, 11

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _COLON, _EQUALS = 9, 10, 13, 32, 35, 58, 61
_LARGEST = float(np.finfo(np.float32).max)

_NULL = np.frombuffer(b"null", np.uint8)
_NAN = np.frombuffer(b"nan", np.uint8)
_INF = np.frombuffer(b"inf", np.uint8)
_INFINITY = np.frombuffer(b"infinity", np.uint8)
_DOCID = np.frombuffer(b"docid", np.uint8)
_QID = np.frombuffer(b"qid:", np.uint8)


@kernel
def _skip_blank(text: Bytes, at: int) -> int:
    while text[at] == _SPACE or text[at] == _TAB or text[at] == _RETURN:
        at += 1
    return at


@kernel
def _token_end(text: Bytes, at: int) -> int:
    while text[at] > _SPACE:
        at += 1
    return at


@kernel
def _starts_with(text: Bytes, at: int, word: Bytes) -> bool:
    """Whether the text at a position starts with a lower-case word, ignoring case."""
    for index in range(len(word)):
        if (text[at + index] | 32) != word[index]:
            return False
    return True


@kernel
def _special(text: Bytes, at: int, stop: int) -> int:
    """Whether a word is NULL (1), NaN or infinity (2), or none of them (0)."""
    if stop - at == 4 and _starts_with(text, at, _NULL):
        return 1
    if text[at] == 45 or text[at] == 43:
        at += 1
    if stop - at == 3 and (_starts_with(text, at, _NAN) or _starts_with(text, at, _INF)):
        return 2
    return 2 if stop - at == 8 and _starts_with(text, at, _INFINITY) else 0


@kernel
def _docid(text: Bytes, at: int) -> tuple[int, int]:
    """Span of the document id in a comment ``docid = ID …``; empty if there is none."""
    at = _skip_blank(text, at)
    if not _starts_with(text, at, _DOCID):
        return 0, 0
    at = _skip_blank(text, at + len(_DOCID))
    if text[at] != _EQUALS:
        return 0, 0
    at = _skip_blank(text, at + 1)
    return at, _token_end(text, at)


@kernel
def _equal(text: Bytes, first: int, second: int, size: int) -> bool:
    for index in range(size):
        if text[first + index] != text[second + index]:
            return False
    return True


@kernel
def parse(
    text: Bytes,
    features: Floats,
    labels: Floats,
    runs: Ints,
    documents: Ints,
    slow: Ints,
    first_index: int,
    with_queries: bool,
    keep_nonfinite: bool,
) -> tuple[int, int, int, int, int, int]:
    """Parse a chunk of whole lines, padded by ``podium.data.files``, into rows.

    Outputs: ``runs``, for each run of rows with one query id, its first row and the span of its id;
    ``documents``, the span of each row's document id; ``slow``, row, column (-1 for the label) and
    span of each number left to Python.

    Returns the status code, the byte it ended at, rows, runs, slow numbers and the columns used;
    for WIDER the last is the number of columns needed.
    """
    stop = len(text) - PADDING
    width = features.shape[1]
    at = row = run = slows = columns = 0
    run_begin = run_size = 0
    while at < stop:
        at = _skip_blank(text, at)
        if text[at] == _NEWLINE:
            at += 1
            continue
        if text[at] != _HASH:
            if slows + width >= len(slow):
                return CROWDED, at, row, run, slows, columns
            status, value, end = read_decimal(text, at)
            if status == BAD or text[end] > _SPACE:
                return BAD_LABEL, at, row, run, slows, columns
            labels[row] = value
            if not sure_float32(status, value):
                slow[slows, 0], slow[slows, 1], slow[slows, 2], slow[slows, 3] = row, -1, at, end
                slows += 1
            elif abs(labels[row]) > _LARGEST:
                return TOO_LARGE, at, row, run, slows, columns
            at = _skip_blank(text, end)
            if with_queries:
                end = _token_end(text, at)
                if not _starts_with(text, at, _QID) or end <= at + len(_QID):
                    return NO_QUERY, at, row, run, slows, columns
                at += len(_QID)
                if run == 0 or end - at != run_size or not _equal(text, at, run_begin, run_size):
                    runs[run, 0], runs[run, 1], runs[run, 2] = row, at, end
                    run += 1
                    run_begin, run_size = at, end - at
                at = end
            last = -1
            while True:
                at = _skip_blank(text, at)
                if text[at] == _NEWLINE or text[at] == _HASH:
                    break
                begin = at
                index, at = read_digits(text, begin)
                if at == begin or text[at] != _COLON:
                    return BAD_INDEX, begin, row, run, slows, columns
                column = index - first_index
                if at - begin > 15:  # too long for an index, and maybe for an integer
                    column = 1 << 50
                if column <= last:
                    code = ZERO_INDEX if column < 0 else NOT_ASCENDING
                    return code, begin, row, run, slows, columns
                if column >= width:
                    return WIDER, begin, row, run, slows, column + 1
                last = column
                at += 1
                status, value, end = read_decimal(text, at)
                if status == BAD or text[end] > _SPACE:
                    end = _token_end(text, at)
                    kind = _special(text, at, end)
                    if kind == 0:
                        return BAD_VALUE, begin, row, run, slows, columns
                    if kind == 2 and not keep_nonfinite:
                        return NOT_FINITE, begin, row, run, slows, columns
                    features[row, column] = np.nan
                else:
                    narrow = np.float32(value)
                    features[row, column] = narrow
                    if not sure_float32(status, value):
                        slow[slows, 0], slow[slows, 1] = row, column
                        slow[slows, 2], slow[slows, 3] = at, end
                        slows += 1
                    elif abs(narrow) > _LARGEST:
                        return TOO_LARGE, begin, row, run, slows, columns
                at = end
            columns = max(columns, last + 1)
            documents[row, 0] = documents[row, 1] = 0
            if text[at] == _HASH:
                documents[row, 0], documents[row, 1] = _docid(text, at + 1)
            row += 1
        while text[at] != _NEWLINE:
            if text[at] == 0:
                return NUL_BYTE, at, row, run, slows, columns
            at += 1
        at += 1
    return DONE, stop, row, run, slows, columns
