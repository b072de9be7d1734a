"""Labels from a file, such as those of clicks, as an assessor that answers as models do."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import TypeAlias

from podium.data import read_qrels
from podium.data.json_lines import parse_object
from podium.errors import DataError
from podium.judging import AnswerLog, Grade, Outcome, Pair, Verdict
from podium.judging.models.answer_log import ModelAnswer
from podium.judging.models.assessor import OUTCOMES

Undecided: TypeAlias = frozenset[tuple[str, frozenset[str]]]
"""Queries and the two documents whose order the labels do not decide."""

FILE = "labels/1"
"""In place of a rubric's name and version."""
_FILE = "the file"


class FileLabels:
    r"""The labels of a file, and what a project could not take from it.

    Args:
        text: Lines of qrels, and lines of pairs as `podium clicks label --undecided` writes them.

    Attributes:
        labels: The label of each document of each query.
        undecided: The pairs that are left to people.
        hash: A hash of the text.
        left_out: How much of the file, and of what was asked, came to nothing, by the reason.

    Example:
        >>> pair = '{"query": "q", "documents": ["a", "b"], "better": 0.6}'
        >>> labels = FileLabels(f"q 0 a 2\nq 0 b 1\nq 0 c 0\n{pair}\n")
        >>> labels.labels["q"], labels.outcome("q", "a", "b"), labels.outcome("q", "c", "a").name
        ({'a': 2.0, 'b': 1.0, 'c': 0.0}, None, 'RIGHT')
    """

    def __init__(self, text: str) -> None:
        lines = text.split("\n")
        pairs = {number for number, line in enumerate(lines) if line.startswith("{")}
        rows = "\n".join("" if number in pairs else line for number, line in enumerate(lines))
        try:
            judged = read_qrels(io.BytesIO(rows.encode()))
        except DataError as error:
            raise error.at(_FILE, error.line) from error
        self.hash = sha256(text.encode()).hexdigest()[:16]
        self.labels: dict[str, dict[str, float]] = {}
        self.undecided: Undecided = frozenset(_pair(number + 1, lines[number]) for number in pairs)
        self.left_out: Counter[str] = Counter()
        columns = (judged.query_id_of_row(), judged.document_ids)
        keys = zip(*(column.to_pylist() for column in columns), strict=True)
        for (query, document), label in zip(keys, judged.labels.tolist(), strict=True):
            self.labels.setdefault(query, {})[document] = label

    def outcome(self, query: str, left: str, right: str) -> Outcome | None:
        """Which of two labeled documents is better; None if the labels do not decide it."""
        own = self.labels[query]
        difference = own[left] - own[right]
        if not difference or (query, frozenset((left, right))) in self.undecided:
            return None  # equal labels: no preference is known
        return Outcome.LEFT if difference > 0 else Outcome.RIGHT

    def check_grades(self, most: int) -> None:
        """Raise DataError unless all labels are grades from 0 to the most."""
        for query, own in self.labels.items():
            for document, label in own.items():
                if label not in range(most + 1):
                    raise DataError(
                        f"document {document!r} of query {query!r} has label {label:g}, and the "
                        f"project's grades are 0 to {most}",
                        hint="Write grades: podium clicks label --as grades.",
                    )

    def count_unknown(self, items: Mapping[str, set[str]]) -> None:
        """Count the queries and documents that are not among those of the project."""
        for query, own in self.labels.items():
            if query not in items:
                self.left_out["unknown_queries"] += 1
            else:
                self.left_out["unknown_documents"] += len(own.keys() - items[query])


class LabelAssessor:
    """The labels of a file as an assessor of one query's documents.

    Args:
        labels: The labels.
        query_id: The query.
        texts: The text of each document.
        log: Where answers are kept.
        model: What the assessor is called.
        name: Who it is in the log of judgments.
    """

    def __init__(
        self,
        labels: FileLabels,
        *,
        query_id: str,
        texts: Mapping[str, str],
        log: AnswerLog,
        model: str,
        name: str,
    ) -> None:
        self.name = name
        self.log = log
        self._labels, self._query_id, self._texts, self._model = labels, query_id, texts, model
        self._own = labels.labels.get(query_id, {})

    def verdict(self, pair: Pair[str]) -> Verdict | None:
        """The better of two documents; None if the file does not decide it."""
        if not self._has(*pair):
            return None
        outcome = self._labels.outcome(self._query_id, *pair)
        label = next((name for name, each in OUTCOMES.items() if each is outcome), "")
        self._keep(tuple(pair), label)
        if outcome is None:
            self._labels.left_out["undecided"] += 1
            return None
        return Verdict(*pair, outcome, self.name, time.time(), 0.0)

    def grade(self, item: str) -> Grade | None:
        """The grade of a document; None if the file has none."""
        if not self._has(item):
            return None
        grade = int(self._own[item])
        self._keep((item,), str(grade))
        return Grade(item, grade, self.name, time.time(), 0.0)

    def _has(self, *items: str) -> bool:
        if all(item in self._own for item in items):
            return True
        self._labels.left_out["unlabeled"] += 1
        return False

    def _keep(self, items: tuple[str, ...], label: str) -> None:
        question = json.dumps([self._labels.hash, self._query_id, *items])
        self.log.add(
            ModelAnswer(
                sha256(question.encode()).hexdigest(), self._model, FILE, self._labels.hash,
                self._query_id, items, label, problem="" if label else "undecided",
                lengths=tuple(len(self._texts[item]) for item in items), requests=0,
                at=round(time.time(), 3),
            )
        )  # fmt: skip


def _pair(number: int, line: str) -> tuple[str, frozenset[str]]:
    try:
        content = parse_object(line.encode())
    except DataError as error:
        raise error.at(_FILE, number) from error
    query, documents = content.get("query"), content.get("documents")
    if not (
        isinstance(query, str)
        and isinstance(documents, list)
        and len(documents) == 2
        and all(isinstance(each, str) for each in documents)
    ):
        raise DataError(
            "is not a query with two documents", path=_FILE, line=number,
            hint="Give the file that podium clicks label --undecided writes.",
        )  # fmt: skip
    return query, frozenset(documents)
