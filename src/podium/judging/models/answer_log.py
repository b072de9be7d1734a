"""The log of a model's answers: provenance and cache in one file of JSON lines.

Every answer is on disk before it counts, with the model, the rubric's hash, the tokens and the
model's own words, and every request before it is sent, in a line with what was spent so far.
The same question again, after a crash or in another run, is answered from here. A question is
the same if the model, the rubric, the texts and the number of the repetition are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, Self

from podium.data.journal import Journal
from podium.data.json_lines import json_line, parse_log
from podium.errors import DataError
from podium.judging.entries import GRADES
from podium.judging.models.budget import Spending


@dataclass(frozen=True)
class ModelAnswer:
    """One answer of a model, with all that it came from.

    Attributes:
        question: The hash of what was asked.
        model: The model's name.
        rubric: The rubric's name and version.
        rubric_hash: The hash of its content.
        query_id: The query.
        items: The document, or the two in the order in which they were shown.
        label: The label; empty if no answer could be used.
        problem: Why there is no label.
        repeat: The number of the repetition, from 0.
        probabilities: The probability of each label, if the endpoint gives those of tokens.
        confidence: How sure the model is by its own words.
        reason: Why, in its words.
        raw: The answer, word by word; both answers if it was repaired.
        flags: How documents may have tried to direct the model.
        lengths: The characters of each document.
        prompt_tokens: Tokens of all prompts.
        answer_tokens: Tokens of all answers.
        estimated: Whether tokens were estimated.
        requests: How many requests it took; 0 if another record had the answer.
        served_by: The model and its fingerprint, as the endpoint names them.
        at: When, in seconds since 1970.
        seconds: How long it took.
    """

    question: str
    model: str
    rubric: str
    rubric_hash: str
    query_id: str
    items: tuple[str, ...]
    label: str
    problem: str = ""
    repeat: int = 0
    probabilities: dict[str, float] | None = None
    confidence: float | None = None
    reason: str = ""
    raw: str = ""
    flags: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    prompt_tokens: int = 0
    answer_tokens: int = 0
    estimated: bool = False
    requests: int = 1
    served_by: str = ""
    at: float = 0.0
    seconds: float = 0.0

    @property
    def certainty(self) -> float | None:
        """The probability of the label by its tokens, else `confidence`; None without both."""
        if self.probabilities and self.label in self.probabilities:
            return self.probabilities[self.label]
        return self.confidence


@dataclass(frozen=True)
class _Spent:
    """What a model took so far, also for requests without an answer."""

    model: str
    requests: int
    prompt_tokens: int
    answer_tokens: int


class AnswerLog:
    """Answers of models, in a file or in memory. Use it in a ``with`` block, or close it.

    Args:
        path: The file, created if it does not exist; None to keep answers in memory only.

    Example:
        >>> with AnswerLog() as log:
        ...     log.add(ModelAnswer("7f", "tiny", "grades/1", "ab", "q1", ("d1",), "2"))
        ...     log.find("7f").label
        '2'
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.Lock()
        self._claims: dict[str, threading.Lock] = {}
        self._answers: dict[str, ModelAnswer] = {}
        self._units: dict[tuple[str, str, tuple[str, ...]], ModelAnswer] = {}
        self._spent: dict[str, _Spent] = {}
        self._file: Journal | None = None
        if self.path is not None:
            self._file = self._opened(self.path)

    @property
    def answers(self) -> list[ModelAnswer]:
        """All answers, oldest first."""
        with self._lock:
            return list(self._units.values())

    def charge(self, spending: Spending, model: str) -> None:
        """Count what a model took, now and from now on: a run that goes on has no new budget."""
        answers: list[ModelAnswer | _Spent] = [each for each in self.answers if each.model == model]
        # A log of Podium 0.1 has answers alone.
        for each in [self._spent[model]] if model in self._spent else answers:
            spending.charge(each.prompt_tokens, each.answer_tokens, requests=each.requests)

        def keep(now: Spending) -> None:
            spent = _Spent(model, now.requests, now.prompt_tokens, now.answer_tokens)
            with self._lock:
                self._spent[model] = spent
                if self._file is not None:
                    self._file.add(json_line({"spent": asdict(spent)}))

        spending.keep = keep

    def find(self, question: str) -> ModelAnswer | None:
        """The answer to a question, if there is one."""
        return self._answers.get(question)

    @contextmanager
    def claim(self, question: str) -> Iterator[None]:
        """Let one thread at a time ask a question, so that the next finds the answer."""
        with self._lock:
            lock = self._claims.setdefault(question, threading.Lock())
        with lock:
            yield

    def add(self, answer: ModelAnswer) -> None:
        """Add an answer; it is on disk when this returns."""
        unit = (answer.question, answer.query_id, answer.items)
        with self._lock:
            if unit in self._units:
                return
            self._keep(answer)
            self._remember([answer])

    def adopt(self, answer: ModelAnswer, query_id: str, items: tuple[str, ...]) -> ModelAnswer:
        """Record an answer for other ids too, whose texts are the same; it costs nothing."""
        if (answer.query_id, answer.items) == (query_id, items):
            return answer
        same = replace(
            answer, query_id=query_id, items=items, prompt_tokens=0, answer_tokens=0, requests=0
        )
        self.add(same)
        return same

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _opened(self, path: Path) -> Journal:
        if path.exists() and not path.is_file():
            raise DataError("is not a file", path=path, hint="Name a file to keep answers in.")
        file = Journal(path, "ab+", "another process adds answers to it")
        try:
            content = file.read()
            if content and b"\n" not in content:
                raise DataError("is not a log of answers", path=path, hint="Name another file.")
            lines, whole = parse_log(content, _line_from_json, path)
            if whole < len(content):  # a line that a crash left unfinished
                file.cut(whole)
        except BaseException:
            file.close()
            raise
        self._remember(line for line in lines if isinstance(line, ModelAnswer))
        self._spent = {line.model: line for line in lines if isinstance(line, _Spent)}
        return file

    def _remember(self, answers: Iterable[ModelAnswer]) -> None:
        """Find these answers from now on."""
        for answer in answers:
            self._answers.setdefault(answer.question, answer)
            self._units.setdefault((answer.question, answer.query_id, answer.items), answer)

    def _keep(self, answer: ModelAnswer) -> None:
        """Put an answer where a crash does not reach it; Podium Studio's log has a database."""
        if self._file is not None:
            self._file.add(json_line(answer_to_json(answer)))


def read_answers(path: str | os.PathLike[str]) -> list[ModelAnswer]:
    """Read a log of answers without locking it.

    Example:
        >>> import tempfile
        >>> name = tempfile.mkdtemp() + "/answers.jsonl"
        >>> with AnswerLog(name) as log:
        ...     log.add(ModelAnswer("7f", "tiny", "grades/1", "ab", "q1", ("d1",), "2"))
        >>> [answer.label for answer in read_answers(name)]
        ['2']
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror})", path=path, hint="Name a log of answers."
        ) from error
    lines, _ = parse_log(content, _line_from_json, path)
    answers = [line for line in lines if isinstance(line, ModelAnswer)]
    if not answers:
        raise DataError("has no answers", path=path, hint="Let a model judge first.")
    return answers


_DEFAULTS = {field.name: field.default for field in fields(ModelAnswer)}
_KINDS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "bool": bool,
    "tuple[str, ...]": list,
    "tuple[int, ...]": list,
    "dict[str, float] | None": (dict, type(None)),
}
_TYPES = {field.name: str(field.type) for field in fields(ModelAnswer)}
_LABELS = {1: frozenset(map(str, range(len(GRADES)))), 2: frozenset({"A", "B", "TIE"})}
"""The labels of one document, and of two."""
_NEEDED = ("question", "model", "rubric", "rubric_hash", "query_id", "items", "label")


def _line_from_json(content: dict[str, Any]) -> ModelAnswer | _Spent:
    spent = content.get("spent")
    if spent is None:
        return answer_from_json(content)
    names = {each.name for each in fields(_Spent)}
    if (
        not isinstance(spent, dict)
        or spent.keys() != names
        or not isinstance(spent["model"], str)
        or not all(type(spent[name]) is int and spent[name] >= 0 for name in names - {"model"})
    ):
        raise DataError("has no valid record of what was spent", hint="Name a log of answers.")
    return _Spent(**spent)


def answer_to_json(answer: ModelAnswer) -> dict[str, Any]:
    """Convert an answer to JSON values, leaving out defaults."""
    return {name: value for name, value in asdict(answer).items() if value != _DEFAULTS[name]}


def answer_from_json(content: dict[str, Any]) -> ModelAnswer:
    """Parse an answer that ``answer_to_json`` wrote, or raise a DataError."""
    values = dict(content)
    for name in _NEEDED:
        if name not in values:
            raise DataError(f"the answer has no {name!r}", hint="Name a log of answers.")
    for name, value in values.items():
        kind = _TYPES.get(name)
        if kind is None:
            raise DataError(f"an answer has no {name!r}", hint="Install a newer Podium.")
        fits = isinstance(value, _KINDS[kind]) and (kind == "bool" or not isinstance(value, bool))
        if fits and isinstance(value, float):
            fits = isfinite(value)
        if fits and isinstance(value, list):
            inner = str if kind == "tuple[str, ...]" else int
            fits = all(type(each) is inner for each in value)
            values[name] = tuple(value)
        if fits and isinstance(value, dict):
            fits = all(type(share) is float and 0 <= share <= 1 for share in value.values())
        if not fits:
            raise DataError(f"{name!r} is {str(value)[:100]!r}", hint=f"Give {kind}.")
    labels = _LABELS.get(len(values["items"]))
    if labels is None:
        raise DataError("an answer is about one or two items", hint="Name a log of answers.")
    for label in (values["label"], *(values.get("probabilities") or ())):
        if label and label not in labels:
            raise DataError(f"{label[:50]!r} is not a valid label", hint="Name a log of answers.")
    return ModelAnswer(**values)
