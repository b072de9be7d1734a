"""The conventions of the tools that people compare with, each checked against the tool itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TypeAlias

import numpy as np

import podium.measures.definitions  # noqa: F401 (registers the measures that exceptions name)
from podium.errors import ArgumentError
from podium.measures.conventions import Conventions
from podium.measures.names import Spelling, read_spellings
from podium.measures.registry import Measure
from podium.registry import Registry

# The least label, a 32-bit number, above CatBoost's and LightGBM's border of 0.5, which itself is
# not relevant.
_ABOVE_HALF = float(np.nextafter(np.float32(0.5), np.float32(1.0)))

PODIUM = Conventions()
"""The default: gains of learning to rank, and nothing that depends on the order of rows."""

TREC_EVAL = Conventions(
    gains="linear",  # the relevance level is the gain, unless ndcg is given others
    ties="id descending",  # qsort by score, then strcmp of the document numbers backwards
    score_precision="float32",  # TEXT_RESULTS.sim is a C float: scores 1 and 1 + 1e-9 are a tie
    negative="unjudged",  # a negative relevance in the qrels means pooled but not judged
    missing="skip",  # without -c a topic missing from the run is left out of the average
    highest_grade=4.0,  # of ERR, which is gdeval.pl's, whose MAX_JUDGMENT is 4
).except_for("ERR", score_precision="float64")  # gdeval.pl compares scores as Perl numbers
"""trec_eval 9 (pytrec_eval), with ERR as TREC's gdeval.pl has it.

map_cut divides by all relevant documents, P and Rprec by the cut-off even if the list is shorter,
and a topic without relevant documents has 0 in every measure.
"""

LETOR4 = Conventions(
    discounts="letor",  # 1 for ranks 1 and 2, then log 2 / log(rank)
    ties="input order",  # Perl's sort is a stable merge sort of the lines in order
    pool="retrieved",  # the ideal ranking is made of the lines of the query
    short_list="zero",  # NDCG has an entry for each document, and a missing one prints as 0
).except_for("P", short_list="pad")  # "the hole" counts as irrelevant there
"""LETOR 4.0's Eval-Score-4.0.pl, which knows P, MAP and NDCG; a query of label 0 alone has 0."""

LIGHTGBM = Conventions(
    ties="input order",  # std::stable_sort by descending score
    pool="retrieved",
    nothing_relevant=1.0,  # NDCG and MAP are 1 for a query without positive labels
    relevant_from=_ABOVE_HALF,  # MAP takes a label above 0.5 as relevant
    ap_divisor="cut-off",  # MAP@k divides by min(relevant, k)
)
"""LightGBM's ndcg and map."""

XGBOOST = Conventions(
    ties="input order",  # common::ArgSort is stable
    score_precision="float32",  # predictions are float
    pool="retrieved",
    nothing_relevant=1.0,  # ndcg and map are 1, unless named with a minus: ndcg@10-
    short_list="length",  # pre@k divides by min(k, documents)
    ap_divisor="cut-off",  # map@k divides by min(relevant, k)
    cut_off=32,  # "ndcg", "map" and "pre" alone look at LambdaRankParam's default of 32 documents
)
"""XGBoost's ndcg, map and pre."""

CATBOOST = (
    Conventions(
        gains="linear",  # NDCG's type is Base unless set: type=Exp
        ties="worst",  # CompareDocs puts the smaller target first
        pool="retrieved",
        nothing_relevant=1.0,  # NDCG and RecallAt are 1
        short_list="length",  # PrecisionAt divides by min(top, documents)
        relevant_from=_ABOVE_HALF,  # a target above the border of 0.5
        ap_divisor="cut-off",  # MAP divides by min(relevant, top)
        satisfaction="label",  # ERR takes the target as the probability of relevance
    ).except_for("AP", nothing_relevant=0.0)  # MAP of a group without relevant documents is 0
)
"""CatBoost's NDCG, DCG, PrecisionAt, RecallAt, MAP, MRR and ERR."""

SKLEARN = Conventions(
    gains="linear",
    ties="expected",  # dcg_score and ndcg_score average over tied scores unless ignore_ties
    pool="retrieved",
).except_for("AP", ties="together")  # average_precision_score has a threshold for each score
"""scikit-learn's dcg_score, ndcg_score and average_precision_score."""

RANX = Conventions(
    gains="linear",  # ndcg is Järvelin's; ndcg_burges is exponential
    ties="quicksort",  # runs are ordered by Numba's argsort, stable for up to 15 documents only
    negative="irrelevant",  # clean_qrels keeps labels from rel_lvl on
    rbp_gain="label",  # rank_biased_precision multiplies by the judgment, not by one
)
"""ranx 0.3: P divides by the cut-off even if the list is shorter. Its bpref of all queries is void
if one of them has no relevant or no irrelevant judgments; here each query has its own value."""

PRESETS: Registry[Conventions] = Registry(
    "preset of conventions",
    {
        "podium": PODIUM,
        "trec_eval": TREC_EVAL,
        "letor4": LETOR4,
        "lightgbm": LIGHTGBM,
        "xgboost": XGBOOST,
        "catboost": CATBOOST,
        "sklearn": SKLEARN,
        "ranx": RANX,
    },
)
"""Conventions by the name of the tool."""


def conventions_named(name: str) -> Conventions:
    """The conventions of a tool.

    Example:
        >>> conventions_named("trec_eval").gains
        'linear'
    """
    return PRESETS.named(name)


Measures: TypeAlias = "Measure | str | Sequence[Measure | str]"
"""One measure or several, as values or by any of their names."""


def resolve_measures(
    measures: Measures, conventions: Conventions | str | None
) -> tuple[list[Measure], Conventions]:
    """Return the measures that were asked for, each once, and the conventions that they follow.

    Every function that takes measures from users begins with it and passes on what it returns.

    Example:
        >>> measures, conventions = resolve_measures(["ndcg_cut.5,10", "map"], None)
        >>> measures, conventions == conventions_named("trec_eval")
        ([nDCG@5, nDCG@10, AP], True)
    """
    spellings = read_spellings(measures)
    if not spellings:
        raise ArgumentError("there are no measures", hint="Give at least one, such as 'nDCG@10'.")
    several = dict.fromkeys(measure for spelling in spellings for measure in spelling.measures)
    return list(several), _conventions_of(spellings, conventions)


def resolve_measure(
    measure: Measure | str, conventions: Conventions | str | None
) -> tuple[Measure, Conventions]:
    """Return the one measure that was asked for, and the conventions that it follows."""
    measures, chosen = resolve_measures([measure], conventions)
    if len(measures) > 1:
        raise ArgumentError(
            f"{measure!r} is {len(measures)} measures", hint="Give one, such as 'nDCG@10'."
        )
    return measures[0], chosen


def conventions_for(measures: Measures, conventions: Conventions | str | None) -> Conventions:
    """The conventions that were named, or else those of the tool whose names of measures are used.

    A tool's names imply its conventions, so that its users see its values. Podium's imply
    Podium's; names of two tools at once are refused, for a measure would have two values.

    Example:
        >>> conventions_for("ndcg_cut_10", None) == conventions_named("trec_eval")
        True
        >>> conventions_for("ndcg_cut_10", "podium") == conventions_for("nDCG@10", None)
        True
        >>> conventions_for(["ndcg_cut_10", "nDCG@5"], None)
        Traceback (most recent call last):
        podium.errors.ArgumentError: 'ndcg_cut_10' is a name of trec_eval, 'nDCG@5' one of podium...
    """
    return _conventions_of(read_spellings(measures), conventions)


def _conventions_of(
    spellings: Sequence[Spelling], conventions: Conventions | str | None
) -> Conventions:
    if isinstance(conventions, Conventions):
        return conventions
    if conventions is not None:
        return conventions_named(conventions)
    firsts: dict[str, Spelling] = {}
    for spelling in spellings:
        if spelling.tool is not None:
            firsts.setdefault(spelling.tool, spelling)
    if len(firsts) > 1:
        (one, first), (other, second), *_ = firsts.items()
        # Two tools' names of one measure are one of Podium's.
        own = dict.fromkeys(repr(measure) for measure in (*first.measures, *second.measures))
        raise ArgumentError(
            f"{first.written!r} is a name of {one}, {second.written!r} one of {other}, and their "
            "conventions differ",
            hint=f"Name the conventions, such as {one}, or write {' and '.join(own)} for Podium's.",
        )
    return conventions_named(next(iter(firsts), "podium"))


def conventions_text(conventions: Conventions) -> str:
    """Conventions in words: the name of a preset, or how they differ from the nearest one.

    Example:
        >>> conventions_text(Conventions(gains="linear", ties="input order"))
        "podium with gains='linear', ties='input order'"
    """
    alike = [
        name
        for name, preset in PRESETS.items()
        if name == "podium" or preset.exceptions == conventions.exceptions
    ]
    nearest = min(alike, key=lambda name: len(choices(conventions, PRESETS[name])))
    different = choices(conventions, PRESETS[nearest])
    return f"{nearest} with {', '.join(different)}" if different else nearest


def choices(conventions: Conventions, default: Conventions = PODIUM) -> list[str]:
    """What differs from the default, or from other conventions, as it would be written."""
    own = [
        f"{each.name}={_short(getattr(conventions, each.name))}"
        for each in fields(Conventions)
        if each.name != "exceptions"
        and getattr(conventions, each.name) != getattr(default, each.name)
    ]
    if conventions.exceptions == default.exceptions:
        return own
    return own + [
        f"{name}: {choice}={_short(value)}" for name, choice, value in conventions.exceptions
    ]


def _short(value: object) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return f"{value:g}" if whole else repr(value)
