"""Model cards and data cards: what is known of a ranker and of data, as a document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

import podium
from podium.data import Dataset
from podium.data.description import Description, describe
from podium.explain.importance import Importance, permutation_importance
from podium.explain.similarity import similar_pairs, within_query_deviation
from podium.measures import Conventions, evaluate
from podium.measures.comparison.statistics import mean_interval
from podium.measures.names import parse_measure
from podium.measures.presets import conventions_for, conventions_text
from podium.measures.registry import Measure, definition_of
from podium.rankers import Ranker
from podium.rankers.inputs import aligned_dataset
from podium.reports.document import ReportDocument, ReportSection
from podium.reports.page import interval_text

_MOST_NAMES = 50
_MOST_FEATURES = 15
_MOST_PAIRS = 20
_FEW_QUERIES = 50


def model_card(
    ranker: Ranker,
    data: Dataset | None = None,
    measures: Sequence[str | Measure] = (),
    *,
    conventions: Conventions | str | None = None,
    repeats: int = 5,
    random_state: int = 0,
) -> ReportDocument:
    """Write the card of a ranker from what is known of it, and of its rankings of some data.

    Args:
        ranker: A fitted ranker.
        data: Labeled queries that it was not fitted on, to evaluate it on.
        measures: The measures to evaluate; the ranker's own, nDCG@10, AP and RR by default.
        conventions: The conventions of the measures.
        repeats: The number of permutations behind the importance of features.
        random_state: The seed of the permutations.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> X = [[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]]
        >>> card = model_card(LinearRanker("ListNet()").fit(X, [0, 1, 2], group=[3]))
        >>> print(card.as_markdown().splitlines()[0])
        # Model card: LinearRanker
    """
    limits = _ranker_limits(ranker)
    sections = [_model_section(ranker), _feature_section(ranker)]
    if data is not None:
        rows = aligned_dataset(data, ranker.feature_names_)
        summary = describe(rows)
        named = measures or _usual_measures(ranker)
        if not measures and conventions is None:
            conventions = conventions_for(named[:1], None)  # of the ranker's own
        importance = permutation_importance(
            ranker,
            rows,
            named[0],
            repeats=repeats,
            conventions=conventions,
            random_state=random_state,
        )
        sections += [
            _measure_section(ranker, rows, named, conventions),
            _importance_section(importance),
            _data_section("Data of the evaluation", summary),
        ]
        limits += _evaluation_limits(summary, importance)
    sections.append(ReportSection("Limits", bullets=tuple(limits)))
    return ReportDocument(f"Model card: {type(ranker).__name__}", tuple(sections))


def data_card(data: Dataset, *, name: str = "") -> ReportDocument:
    """Write the card of a data set from its rows.

    Args:
        data: The data set.
        name: What to call it in the title.

    Example:
        >>> data = Dataset.from_arrays([[1.0], [2.0]], [0, 1], group=[2])
        >>> data_card(data, name="clicks").as_markdown().splitlines()[0]
        '# Data card: clicks'
    """
    summary = describe(data)
    deviation = within_query_deviation(data)
    ranges = zip(summary.feature_names, summary.lowest, summary.highest, deviation, summary.missing,
                 strict=True)  # fmt: skip
    features = ReportSection(
        "Features",
        (f"{len(summary.feature_names):,} features.",),
        ("feature", "lowest", "highest", "deviation within queries", "missing"),
        tuple(
            (each, f"{low:.6g}", f"{high:.6g}", f"{spread:.4g}", f"{missing / summary.rows:.1%}")
            for each, low, high, spread, missing in ranges
        ),
    )
    sections = [_data_section("Data", summary), _label_section(summary), features]
    pairs = similar_pairs(data) if data.feature_names else []
    if pairs:
        sections.append(
            ReportSection(
                "Features that repeat each other",
                (f"{len(pairs):,} pairs have a rank correlation within queries of 0.95 or more.",),
                ("feature", "other feature", "correlation"),
                tuple(
                    (pair.first, pair.second, f"{pair.correlation:+.3f}")
                    for pair in pairs[:_MOST_PAIRS]
                ),
            )
        )
    limits = _data_limits(summary)
    flat = [
        each for each, spread in zip(summary.feature_names, deviation, strict=True) if not spread
    ]
    if flat:
        limits.append(
            f"No ranking can depend on {len(flat)} features alone, which are constant within every "
            f"query: {_listed(flat)}."
        )
    sections.append(ReportSection("Limits", bullets=tuple(limits)))
    return ReportDocument(f"Data card: {name}" if name else "Data card", tuple(sections))


def _model_section(ranker: Ranker) -> ReportSection:
    facts = {"kind": type(ranker).__name__}
    facts |= ranker.facts()
    content = ranker.to_bytes()
    for name, value in ranker.get_params(deep=False).items():
        facts[f"parameter {name}"] = repr(value)
    facts |= {
        "contributions": ranker.contribution_method(),
        "size": f"{len(content):,} bytes",
        "SHA-256": sha256(content).hexdigest(),
        "written by": f"Podium {podium.__version__}",
    }
    return ReportSection("Model", (), ("what", "value"), tuple(facts.items()))


def _feature_section(ranker: Ranker) -> ReportSection:
    names = ranker.feature_names_
    rows = tuple(
        (name, f"{len(values):,} categories: {_listed(values)}")
        for name, values in ranker.categories_.items()
    )
    text = f"{len(names):,} features: {_listed(names)}."
    return ReportSection("Features", (text,), ("categorical feature", "categories"), rows)


def _usual_measures(ranker: Ranker) -> list[str | Measure]:
    own = ranker.measure
    known = {parse_measure(own): own}
    for name in ("nDCG@10", "AP", "RR"):
        known.setdefault(parse_measure(name), name)
    return list(known.values())


def _measure_section(
    ranker: Ranker,
    data: Dataset,
    measures: Sequence[str | Measure],
    conventions: Conventions | str | None,
) -> ReportSection:
    evaluation = evaluate(list(measures), data, ranker.predict(data), conventions=conventions)
    rows = []
    for measure, values in evaluation.values.items():
        known = values[~np.isnan(values)]
        mean, low, high = mean_interval(known)
        if definition_of(measure).aggregate != "mean":  # the interval is of the mean
            mean, low, high = evaluation.means[measure], math.nan, math.nan
        interval = interval_text(low, high)
        better = "larger" if measure.larger_is_better else "smaller"
        rows.append((repr(measure), f"{mean:.4f}", interval, f"{len(known):,}", better))
    text = f"Conventions: {conventions_text(evaluation.conventions)}. Intervals are over queries."
    headings = ("measure", "mean", "95 % interval", "queries", "better")
    return ReportSection("Evaluation", (text,), headings, tuple(rows))


def _importance_section(importance: Importance) -> ReportSection:
    shown = importance.groups[:_MOST_FEATURES]
    more = len(importance.groups) - len(shown)
    text = (
        f"What is lost of {importance.measure} when features are permuted within queries; those "
        f"that repeat each other are permuted together."
        + (f" {more} more groups lose less." if more else "")
    )
    rows = tuple(
        (", ".join(group.features), f"{group.importance:+.4f}", group.interval) for group in shown
    )
    return ReportSection("What matters", (text,), ("features", "importance", "95 % interval"), rows)


def _data_section(title: str, summary: Description) -> ReportSection:
    sizes = summary.sizes
    facts = {
        "queries": f"{summary.queries:,}",
        "documents": f"{summary.rows:,}" + ("" if summary.has_document_ids else ", without ids"),
        "documents per query": f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):g}",
        "labels": summary.label_kind,
        "queries in which all labels are equal": f"{summary.blank_queries:,}",
        "features that are constant": f"{summary.constant_features:,}",
        "missing values": f"{int(summary.missing.sum()):,}",
    }
    return ReportSection(title, (), ("what", "value"), tuple(facts.items()))


def _label_section(summary: Description) -> ReportSection:
    counts = list(summary.label_counts.items())
    rows = [(f"{label:g}", f"{count:,}", f"{count / summary.rows:.1%}") for label, count in counts]
    if len(rows) > _MOST_NAMES:
        rows = rows[:_MOST_NAMES]
    text = f"{len(counts):,} different labels; larger is better."
    return ReportSection("Labels", (text,), ("label", "documents", "share"), tuple(rows))


def _ranker_limits(ranker: Ranker) -> list[str]:
    limits = ["Scores are comparable within a query only."]
    limits += ranker.limits
    if ranker.categories_:
        limits.append("A category that training had not seen is a missing value.")
    limits.append("What it was trained on is not recorded in its file.")
    return limits


def _evaluation_limits(summary: Description, importance: Importance) -> list[str]:
    limits = ["If the ranker was trained on queries of the evaluation, its values are too high."]
    limits += _data_limits(summary)
    if importance.unused:
        limits.append(
            f"No score depends on {len(importance.unused)} features: {_listed(importance.unused)}."
        )
    return limits


def _data_limits(summary: Description) -> list[str]:
    limits = []
    if summary.queries < _FEW_QUERIES:
        limits.append(f"The data have few queries ({summary.queries}): intervals are wide.")
    if summary.blank_queries:
        limits.append(
            f"{summary.blank_queries:,} of {summary.queries:,} queries prefer no document to "
            "another."
        )
    missing = [
        name for name, count in zip(summary.feature_names, summary.missing, strict=True) if count
    ]
    if missing:
        limits.append(f"{len(missing)} features are missing in some rows: {_listed(missing)}.")
    if not summary.has_document_ids:
        limits.append("Documents have no ids, so rankings cannot be joined with other judgments.")
    return limits


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown
