"""How much of the judgments a ranking answers, and how much of what it shows is judged.

A ranking whose document ids are not those of the judgments has a mean of 0, as a bad one has:
only the judged share tells the two apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from podium.errors import CoverageWarning, DataError
from podium.kernels import Ints
from podium.measures.arguments import EvaluationArguments
from podium.measures.compiled import Booleans
from podium.measures.compiled.blocks import RankingPlan, blocks
from podium.measures.conventions import Conventions
from podium.measures.inputs import Inputs, comparable_scores
from podium.measures.registry import Measure, definition_of

_DEPTH = 10
"""How many documents are looked at where no measure has a cut-off."""
_SEVERAL = 5
"""In fewer queries, rankings without a judged document may be bad ones; in more, ids differ."""
_ENOUGH = 0.5
"""A smaller share of judged documents is warned of, unless only relevant ones were judged."""


@dataclass(frozen=True)
class RunCoverage:
    """How much of the judgments a ranking answers, and how much of what it shows is judged.

    Attributes:
        queries: How many queries are judged.
        answered: For how many of them the ranking has documents.
        others: How many queries of the ranking are not judged, which nothing is computed for.
        depth: How many documents from the top of each query are looked at.
        shown: How many documents those are in all.
        judged: How many of them are judged.
        only_relevant: Whether the judgments list relevant documents only, as those of MS MARCO:
            there most documents are not judged, and count as irrelevant.
        documents: How many documents are judged with a label, ranked or not.
        largest: The largest of their labels; None if there is none.
        contradicted: How many judged queries have ranks in the run that contradict its scores.

    Example:
        >>> from podium.measures import evaluate
        >>> truth = {"p": {"a": 1, "b": 0}, "q": {"a": 1, "b": 0}}
        >>> evaluate("RR", truth, {"p": {"a": 2, "b": 1}, "q": {"b": 2, "c": 1}}).coverage.share
        0.75
    """

    queries: int
    answered: int
    others: int
    depth: int
    shown: int
    judged: int
    only_relevant: bool
    documents: int = 0
    largest: float | None = None
    contradicted: int = 0

    @property
    def share(self) -> float:
        """The share of documents shown that are judged; NaN if none are shown."""
        return self.judged / self.shown if self.shown else float("nan")

    def __add__(self, other: RunCoverage) -> RunCoverage:
        """The coverage of both, of different queries."""
        return RunCoverage(
            self.queries + other.queries,
            self.answered + other.answered,
            self.others + other.others,
            max(self.depth, other.depth),
            self.shown + other.shown,
            self.judged + other.judged,
            self.only_relevant and other.only_relevant,
            self.documents + other.documents,
            max((x.largest for x in (self, other) if x.largest is not None), default=None),
            self.contradicted + other.contradicted,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the counts, and the share."""
        return asdict(self) | {"share": self.judged / self.shown if self.shown else None}

    def note(self) -> str:
        """Return all that is known in a sentence."""
        others = f", and {self.others:,} that are not judged" if self.others else ""
        return (
            f"{self.answered:,} of {self.queries:,} judged queries have documents{others}; "
            f"{percent(self.share)} of the first {self.depth} are judged."
        )

    def warnings(self, conventions: Conventions) -> list[str]:
        """Return what a reader of the means has to know."""
        sentences = []
        without = self.queries - self.answered
        if without:
            missing = "count as empty" if conventions.missing == "empty" else "are left out"
            sentences.append(
                f"{without:,} of {self.queries:,} judged queries have no documents, and {missing}."
            )
        return sentences + self.document_warnings(conventions)

    def document_warnings(self, conventions: Conventions) -> list[str]:
        """Return what a reader of the means has to know of the documents that are there."""
        sentences = []
        if self.shown and self.share < _ENOUGH and not (self.only_relevant and self.judged):
            treated = "are left out" if conventions.unjudged == "drop" else "count as irrelevant"
            sentences.append(
                f"{percent(self.share)} of the first {self.depth} documents are judged; the others "
                f"{treated}."
            )
        if self.contradicted:
            sentences.append(
                f"the ranks of {self.contradicted:,} of {self.answered:,} queries contradict the "
                "scores, which count."
            )
        return sentences

    def label_warnings(self, measures: Iterable[Measure], conventions: Conventions) -> list[str]:
        """Return which measures are of labels that no document has, and so the same for any run."""
        without: dict[float, list[str]] = {}
        for measure in measures:
            if any(each.name == "rel" for each in definition_of(measure).parameters):
                rel = {"rel": measure["rel"]}
                least = EvaluationArguments(rel, None, conventions.of(measure), 0).rel
                if self.largest is not None and least > self.largest:
                    without.setdefault(least, []).append(repr(measure))
        return [
            f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if names[3:] else ''}: none of "
            f"the {self.documents:,} judged documents has a label of {least:g} or more; the "
            f"largest is {self.largest:g}."
            for least, names in without.items()
        ]


def percent(share: float) -> str:
    """Format a share; 0 % and 100 % are exact."""
    if np.isnan(share):
        return "-"
    rounded = min(max(round(100 * share), int(share > 0)), 100 - int(share < 1))
    return f"{rounded} %"


def coverage_notes(coverage: Mapping[str, RunCoverage]) -> list[str]:
    """Return a sentence for each system, or one if they are all the same."""
    notes = {name: each.note() for name, each in coverage.items()}
    if len(set(notes.values())) == 1:
        return [f"Coverage: {next(iter(notes.values()))}"]
    return [f"Coverage of {name}: {note}" for name, note in notes.items()]


def coverage_of(
    inputs: Inputs, measures: Sequence[Measure], conventions: Conventions
) -> RunCoverage:
    """Count the queries that have documents, and the judged ones among the first documents.

    The first documents are as many as the smallest cut-off of the measures, or ten.
    """
    depth = _depth(measures)
    sizes = np.diff(inputs.offsets)
    answered = int(np.count_nonzero(sizes))
    shown = int(np.minimum(sizes, depth).sum())
    # One pass: the least of numbers with a NaN is NaN.
    least = np.nan if inputs.labels is None else np.min(inputs.labels, initial=np.inf)
    judged = shown
    if not (least >= 0 or (least < 0 and conventions.negative != "unjudged")):
        known = _known(inputs, conventions)
        judged = shown if known.all() else int(_count_known(inputs, known, depth).sum())
    pool = inputs.judged_labels
    documents, largest = 0, None
    if pool is not None and len(pool):
        documents, most = int(np.count_nonzero(pool == pool)), float(np.fmax.reduce(pool))
        largest = most if documents else None
    if pool is not inputs.labels or np.isnan(least):
        least = np.nan if pool is None else np.nanmin(pool, initial=np.inf)
    only = pool is not None and bool(len(pool)) and bool(least > 0)
    return RunCoverage(
        len(inputs.query_ids), answered, inputs.others, depth, shown, judged, only, documents,
        largest, inputs.contradicted,
    )  # fmt: skip


def without_judged(inputs: Inputs, measure: Measure, conventions: Conventions) -> Booleans:
    """For each query, whether it has documents, but no judged one among the first."""
    counts = _count_known(inputs, _known(inputs, conventions), _depth([measure]))
    without: Booleans = (np.diff(inputs.offsets) > 0) & (counts == 0)
    return without


def check_coverage(
    coverage: RunCoverage,
    measures: Iterable[Measure],
    conventions: Conventions,
    inputs: Inputs | None = None,
    name: str = "",
) -> None:
    """Refuse rankings without any judged document, and warn of what the means leave out."""
    refuse_unjudged(coverage, inputs, name)
    of = f"{name}: " if name else ""
    for sentence in coverage.warnings(conventions):
        warnings.warn(of + sentence, CoverageWarning, stacklevel=3)
    for sentence in coverage.label_warnings(measures, conventions):
        warnings.warn(sentence, CoverageWarning, stacklevel=3)


def refuse_unjudged(coverage: RunCoverage, inputs: Inputs | None = None, name: str = "") -> None:
    """Refuse rankings without any judged document.

    In a few queries that may be a bad ranking; in more, ids differ.
    """
    if not coverage.judged and coverage.answered >= _SEVERAL:
        of = f"{name}: " if name else ""
        raise DataError(
            f"{of}none of the first {coverage.depth} documents of {coverage.answered:,} queries "
            f"is judged{_example(inputs)}",
            hint="Compare the document ids of rankings and judgments.",
        )


def _depth(measures: Sequence[Measure]) -> int:
    """The smallest cut-off of the measures, or ten."""
    cut_offs = [each.cut_off for each in measures if each.cut_off is not None and each.cut_off >= 1]
    return int(min(cut_offs, default=_DEPTH))


def _known(inputs: Inputs, conventions: Conventions) -> Booleans:
    """Whether each ranked row is judged, or is a document of some pair."""
    if inputs.labels is None:
        known = np.zeros(int(inputs.offsets[-1]), np.bool_)
        if inputs.pairs is not None:
            starts = np.repeat(inputs.offsets[:-1], np.diff(inputs.pairs.offsets))
            for rows in (inputs.pairs.better, inputs.pairs.worse):
                known[(starts + rows)[rows >= 0]] = True
        return known
    known = ~np.isnan(inputs.labels)
    return known & (inputs.labels >= 0) if conventions.negative == "unjudged" else known


def _count_known(inputs: Inputs, known: Booleans, depth: int) -> Ints:
    """Count the known ones among the first documents of each query."""
    by_score = replace(
        inputs, scores=comparable_scores(inputs.scores, "float64"), labels=None, judged_labels=None
    )
    counts = np.zeros(len(inputs.query_ids), np.int64)
    for block in blocks(
        RankingPlan(Conventions(), depth, False), by_score, 0, len(inputs.query_ids)
    ):
        first = np.minimum(block.kept, depth)
        ranks = np.arange(first.sum()) - np.repeat(np.cumsum(first) - first, first)
        rows = block.order[np.repeat(block.starts, first) + ranks]
        queries = np.repeat(np.arange(block.first, block.last), first)
        np.add.at(counts, queries, known[inputs.offsets[queries] + rows])
    return counts


def _example(inputs: Inputs | None) -> str:
    """Name a document that was shown."""
    if inputs is None or inputs.document_ids is None:
        return ""
    query = int(np.argmax(np.diff(inputs.offsets) > 0))
    document = inputs.document_ids[int(inputs.offsets[query])].as_py()
    return f": {document!r} of query {inputs.query_ids[query].as_py()!r} is not"
