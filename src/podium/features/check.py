"""What is wrong with features in data: undefined, empty, repeated, or telling the label."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from podium.data import Dataset
from podium.features.definition import FeatureDefinition
from podium.features.definitions import FeatureDefinitions
from podium.kernels import Floats
from podium.measures import evaluate

Kind = Literal[
    "other definitions", "undefined", "not in the data", "same definition", "all missing",
    "constant", "duplicate", "not of its type", "leak",
]  # fmt: skip

LEAK = 0.999
"""From this nDCG of a feature on its own it is taken for the label in another form."""
LEAST_QUERIES = 5
"""Fewer queries may be ranked perfectly by chance."""


@dataclass(frozen=True)
class FeatureFinding:
    """Something wrong with a feature.

    Attributes:
        kind: What kind of problem it is.
        feature: The name of the feature, or an empty string if it is about all of them.
        text: What is wrong, in words.
    """

    kind: Kind
    feature: str
    text: str


def check_definitions(definitions: FeatureDefinitions) -> list[FeatureFinding]:
    """Return features that are defined alike.

    Example:
        >>> from podium.features.definitions import FeatureDefinitions
        >>> from podium.features.definition import FeatureDefinition
        >>> from podium.features.sources import FieldSource
        >>> clicks, visits = (FeatureDefinition(n, FieldSource("clicks")) for n in ("a", "b"))
        >>> check_definitions(FeatureDefinitions((clicks, visits)))
        [FeatureFinding(kind='same definition', feature='b', text='is defined as a is')]
    """
    first: dict[str, str] = {}
    findings = []
    for feature in definitions.features:
        content = {key: value for key, value in feature.content().items() if key != "name"}
        other = first.setdefault(repr(sorted(content.items())), feature.name)
        if other != feature.name:
            text = f"is defined as {other} is"
            findings.append(FeatureFinding("same definition", feature.name, text))
    return findings


def check_features(definitions: FeatureDefinitions, data: Dataset) -> list[FeatureFinding]:
    """Return what is wrong with the features of a data set, by its definitions.

    Example:
        >>> from podium.features.definitions import FeatureDefinitions
        >>> from podium.features.definition import FeatureDefinition
        >>> from podium.features.sources import FieldSource
        >>> clicks = FeatureDefinition("clicks", FieldSource("clicks"))
        >>> rows, labels, names = [[3.0, 1], [3.0, 0]] * 5, [1, 0] * 5, ["clicks", "grade"]
        >>> data = Dataset.from_arrays(rows, labels, group=[2] * 5, feature_names=names)
        >>> for finding in check_features(FeatureDefinitions((clicks,)), data):
        ...     print(finding.feature, finding.text)
        grade is in the data and not defined
        clicks has the value 3 in all rows
        grade ranks each query as the label does (nDCG 1.0000): is it made from the label?
    """
    findings = check_definitions(definitions)
    if data.definitions_hash not in (None, definitions.hash):
        text = (
            f"the data follow definitions {str(data.definitions_hash)[:12]}, "
            f"and these are {definitions.hash[:12]}"
        )
        findings.append(FeatureFinding("other definitions", "", text))
    defined = {feature.name: feature for feature in definitions.features}
    for name in data.feature_names:
        if name not in defined:
            text = "is in the data and not defined"
            findings.append(FeatureFinding("undefined", name, text))
    for name in defined:
        if name not in data.feature_names:
            text = "is defined and not in the data"
            findings.append(FeatureFinding("not in the data", name, text))
    findings += _columns(data, defined)
    return findings


def _columns(data: Dataset, defined: Mapping[str, FeatureDefinition]) -> Iterator[FeatureFinding]:
    compared = _with_preferences(data)
    first: dict[bytes, str] = {}
    for column, name in enumerate(data.feature_names):
        values = data.features[:, column]
        known = values[~np.isnan(values)]
        if not len(known):
            yield FeatureFinding("all missing", name, "is missing in all rows")
            continue
        if name in defined and (text := _other_type(defined[name], known)):
            yield FeatureFinding("not of its type", name, text)
        other = first.setdefault(_digest(values), name)
        if other != name:
            yield FeatureFinding("duplicate", name, f"has the values of {other} in all rows")
        if len(known) == len(values) and (known == known[0]).all():
            text = f"has the value {known[0]:g} in all rows"
            yield FeatureFinding("constant", name, text)
        elif text := _leak(compared, column):
            yield FeatureFinding("leak", name, text)


def _digest(values: Floats) -> bytes:
    # 0.0 and -0.0 are equal, and so are all NaNs.
    canonical = np.where(np.isnan(values), np.float32(np.nan), values) + np.float32(0)
    return hashlib.sha256(canonical.tobytes()).digest()


def _other_type(feature: FeatureDefinition, known: Floats) -> str:
    if feature.type == "bool" and not np.isin(known, (0, 1)).all():
        return "is a bool with values other than 0 and 1"
    if feature.type in ("int", "category") and (known % 1 != 0).any():
        return f"is of type {feature.type} with values that are not integers"
    if feature.type == "category":
        codes = known[known != feature.missing]
        if ((codes < 0) | (codes >= len(feature.categories))).any():
            return f"has values that are none of its {len(feature.categories)} categories"
    return ""


def _with_preferences(data: Dataset) -> Dataset:
    """Return the queries in which a document is preferred to another."""
    starts = data.offsets[:-1]
    if not len(starts):
        return data
    highest = np.maximum.reduceat(data.labels, starts)
    return data.select(highest > np.minimum.reduceat(data.labels, starts))


def _leak(data: Dataset, column: int) -> str:
    if len(data) < LEAST_QUERIES:
        return ""
    values = data.features[:, column].astype(np.float64)
    absent = np.isnan(values)
    lowest = data.labels == data.labels.min()
    if (absent == lowest).all():
        return f"is missing exactly where the label is {data.labels.min():g}"
    for sign, words in ((1.0, "as the label does"), (-1.0, "as the label does, in reverse")):
        scores = sign * values
        scores[absent] = scores[~absent].min() - 1 if (~absent).any() else 0.0
        mean = _mean_ndcg(data, scores)
        if mean >= LEAK:
            return f"ranks each query {words} (nDCG {mean:.4f}): is it made from the label?"
    return ""


def _mean_ndcg(data: Dataset, scores: Any) -> float:
    # Gains of 0 and more; the order of tied documents is not the feature's merit.
    labels = data.labels.astype(np.float64) - data.labels.min()
    measure = "nDCG(gains='linear')"
    means = evaluate(measure, labels, scores, group=data.sizes).means
    return float(means[measure])
