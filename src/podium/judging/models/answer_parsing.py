"""From a model's words to a label of the rubric."""

from __future__ import annotations

import re
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from math import isfinite
from typing import Any

from podium.errors import DataError
from podium.judging.models.rubric import Rubric

_LONGEST_REASON = 2000
_MOST_BRACES = 20


@dataclass(frozen=True)
class ParsedAnswer:
    """A label, where it begins in the answer, and what the model said beside it."""

    label: str
    position: int
    reason: str = ""
    confidence: float | None = None


def parse_answer(text: str, rubric: Rubric) -> ParsedAnswer:
    r"""Read an answer: a JSON object anywhere in it, or the label alone; DataError if neither.

    Models may think aloud, so the last object counts, and of an answer without one the last line,
    where it names one label alone, else the whole. "B is better than A" names two: what it means is
    not for us to guess.

    Example:
        >>> from podium.judging.models.rubric import read_rubric
        >>> parse_answer('Well: {"grade": 2}', read_rubric("grades")).label
        '2'
        >>> parse_answer("A is short.\nB", read_rubric("pairs")).label
        'B'
    """
    for begin in _object_starts(text):
        try:
            content, end = _DECODER.raw_decode(text, begin)
        except (JSONDecodeError, RecursionError):
            continue
        if isinstance(content, dict) and rubric.field in content:
            return _from_object(content, text[begin:end], begin, rubric)
    stripped = text.strip()
    last_line = stripped.rpartition("\n")[2]
    pattern = re.compile(rf"\b({'|'.join(rubric.labels)})\b", re.IGNORECASE)
    # As words, a and b are articles and letters: labels of one letter are capitals.
    for part in (last_line, stripped):
        longer = [match.span() for match in _LONGER_NUMBER.finditer(part)]
        matches = [
            match
            for match in pattern.finditer(part)
            if _is_label(match[0])
            and not any(start <= match.start() < end for start, end in longer)
        ]
        certain = not all(_may_be_article(part, match) for match in matches)
        if certain and len({match[0].upper() for match in matches}) == 1:
            begin = text.rfind(part) + matches[0].start()
            return ParsedAnswer(matches[0][0].upper(), begin)
    choices = ", ".join(rubric.labels)
    raise DataError(f"the answer has none of {choices}, or several: {stripped[:200]!r}")


_DECODER = JSONDecoder()
_LONGER_NUMBER = re.compile(r"(?<!\w)[-+]\d+(?:[.,]\d+)?|\d+(?:[.,+\u2013-]\d+|\s*/\s*\d+)+")
"""A number of which a label may be a part: -1, 2.5, 1-2, 3/5."""
_AFTER_A_LABEL = r"(?:\w*[^\Ws]s|because|since|as|can|may|will|would|should|directly|clearly)\b"
"""What follows a label and no article: verbs of the third person, and how a reason begins."""


def _is_label(word: str) -> bool:
    return len(word) > 1 or word.isupper() or word.isdigit()


def _may_be_article(part: str, match: re.Match[str]) -> bool:
    """Return whether it is an A before a word at the start of a sentence: "A better match is"."""
    if match[0] != "A" or not re.match(rf"\s+(?!{_AFTER_A_LABEL})[a-z]", part[match.end() :]):
        return False
    before = part[: match.start()].rstrip("\"'*_( \t")
    return not before or before[-1] in ".!?\n"


def _object_starts(text: str) -> list[int]:
    """Where objects may begin, last first; no more than a few of a text of braces."""
    starts = [match.start() for match in re.finditer(r"\{", text)]
    return starts[::-1][:_MOST_BRACES]


def _from_object(content: dict[str, Any], source: str, begin: int, rubric: Rubric) -> ParsedAnswer:
    value = content[rubric.field]
    label = value.strip().upper() if isinstance(value, str) else value
    if isinstance(value, float) and value.is_integer():
        label = int(value)
    if isinstance(value, bool) or str(label) not in rubric.labels:
        choices = ", ".join(rubric.labels)
        raise DataError(f"{rubric.field} is {str(value)[:50]!r}, not one of {choices}")
    match = re.search(rf'"{rubric.field}"\s*:\s*"?\s*', source)
    reason, confidence = content.get("reason"), content.get("confidence")
    is_share = (
        isinstance(confidence, int | float)
        and not isinstance(confidence, bool)
        and isfinite(confidence)
        and 0 <= confidence <= 1
    )
    return ParsedAnswer(
        str(label),
        begin + (match.end() if match else 0),
        reason[:_LONGEST_REASON] if isinstance(reason, str) else "",
        float(confidence) if is_share else None,  # type: ignore[arg-type]
    )
