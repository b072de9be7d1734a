"""What is wrong with features in data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, write_parquet
from podium.features import read_definitions
from podium.features.check import check_definitions, check_features
from podium.features.definition import FeatureDefinition
from podium.features.definitions import FeatureDefinitions
from podium.features.sources import FieldSource
from tests.cli.run_podium import podium, succeed
from tests.features.collection import DEFINITIONS

QUERIES, SIZE = 20, 10
rng = np.random.default_rng(1)
LABELS = rng.integers(0, 3, QUERIES * SIZE).astype(np.float32)
NOISE = rng.normal(size=QUERIES * SIZE).astype(np.float32)


def defined(*names: str, **options: object) -> FeatureDefinitions:
    return FeatureDefinitions(
        tuple(FeatureDefinition(name, FieldSource(name), **options) for name in names)  # type: ignore[arg-type]
    )


def data(**columns: object) -> Dataset:
    matrix = np.column_stack(
        [np.broadcast_to(np.asarray(c), LABELS.shape) for c in columns.values()]
    )
    return Dataset.from_arrays(matrix, LABELS, group=[SIZE] * QUERIES, feature_names=list(columns))


def findings(rows: Dataset, definitions: FeatureDefinitions | None = None) -> list[tuple[str, ...]]:
    definitions = definitions or defined(*rows.feature_names)
    return [(each.kind, each.feature) for each in check_features(definitions, rows)]


def test_a_feature_without_a_problem_has_no_finding():
    half_missing = np.where(rng.random(len(LABELS)) < 0.5, np.nan, NOISE)
    noisy = LABELS + 2 * NOISE
    assert findings(data(noise=NOISE, half=half_missing, noisy=noisy)) == []


def test_undefined_and_absent_features_are_told():
    assert findings(data(a=NOISE, b=NOISE + 1), defined("b", "c")) == [
        ("undefined", "a"),
        ("not in the data", "c"),
    ]


def test_empty_constant_and_repeated_features_are_told():
    zeros = np.where(NOISE > 0, 0.0, -0.0)
    rows = data(a=NOISE, empty=np.nan, five=5.0, b=NOISE, signs=zeros)
    assert findings(rows) == [
        ("all missing", "empty"),
        ("constant", "five"),
        ("duplicate", "b"),
        ("constant", "signs"),
    ]
    texts = [each.text for each in check_features(defined(*rows.feature_names), rows)]
    assert texts[1:3] == ["has the value 5 in all rows", "has the values of a in all rows"]


def test_a_value_that_is_sometimes_missing_is_not_constant():
    assert findings(data(a=np.where(NOISE > 0, 1.0, np.nan))) == []


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (LABELS, "ranks each query as the label does (nDCG 1.0000)"),
        (np.exp(LABELS), "ranks each query as the label does (nDCG 1.0000)"),
        (-LABELS, "ranks each query as the label does, in reverse (nDCG 1.0000)"),
        (LABELS + 0.001 * NOISE, "ranks each query as the label does (nDCG 1.0000)"),
        (np.where(LABELS == 0, np.nan, NOISE), "is missing exactly where the label is 0"),
    ],
)
def test_a_feature_that_tells_the_label_is_a_leak(column, text):
    rows = data(a=column)
    (finding,) = check_features(defined("a"), rows)
    assert (finding.kind, finding.text.startswith(text)) == ("leak", True)


def test_a_feature_of_the_query_is_no_leak_however_rows_are_sorted():
    order = np.lexsort((-LABELS, np.repeat(np.arange(QUERIES), SIZE)))
    by_label = replace(data(a=np.repeat(np.arange(QUERIES), SIZE)), labels=LABELS[order])
    assert findings(by_label) == []


def test_too_few_queries_say_nothing_of_leaks():
    rows = data(a=LABELS)
    assert findings(rows.select(np.arange(4))) == []
    assert findings(rows.select(np.arange(5))) == [("leak", "a")]


def test_values_of_another_type_are_told():
    integers, codes = np.round(NOISE), np.abs(np.round(NOISE))
    assert findings(data(a=NOISE), defined("a", type="int")) == [("not of its type", "a")]
    assert findings(data(a=integers), defined("a", type="int")) == []
    assert findings(data(a=integers), defined("a", type="bool")) == [("not of its type", "a")]
    assert findings(data(a=NOISE > 0), defined("a", type="bool")) == []
    options = {"type": "category", "categories": ("x", "y")}
    assert codes.max() > 1
    assert findings(data(a=codes), defined("a", **options)) == [("not of its type", "a")]
    assert findings(data(a=np.minimum(codes, 1)), defined("a", **options)) == []


def test_data_of_other_definitions_are_told():
    definitions = defined("a")
    rows = replace(data(a=NOISE), definitions_hash="f" * 64)
    (finding,) = check_features(definitions, rows)
    assert finding.kind == "other definitions"
    assert finding.text == (
        f"the data follow definitions ffffffffffff, and these are {definitions.hash[:12]}"
    )
    assert findings(replace(rows, definitions_hash=definitions.hash), definitions) == []


def test_features_that_are_defined_alike_are_told():
    same = FeatureDefinition("b", FieldSource("a"))
    (finding,) = check_definitions(FeatureDefinitions((*defined("a").features, same)))
    assert (finding.feature, finding.text) == ("b", "is defined as a is")


def test_the_command_describes_definitions(tmp_path: Path):
    path = tmp_path / "features.toml"
    path.write_text(DEFINITIONS)
    definitions = read_definitions(path)
    lines = succeed("features", "check", path).splitlines()
    assert lines[0] == "feature\tsource\ttype\tmissing\tcomputed by"
    assert lines[2:4] == [
        "body_match\tengine\tfloat\t0\tengine",
        "place_match\tengine\tfloat\t0.25\tengine",
    ]
    assert lines[-1] == f"definitions {definitions.hash}"


def test_the_command_ends_with_status_1_if_there_is_a_finding(tmp_path: Path):
    path, file = tmp_path / "features.toml", tmp_path / "data.parquet"
    path.write_text('[[feature]]\nname = "a"\nsource = "field"\nfield = "a"\n')
    write_parquet(data(a=NOISE), file)
    assert succeed("features", "check", path, file) == (
        f"definitions {read_definitions(path).hash}\n"
    )
    write_parquet(data(a=NOISE, b=5.0), file)
    done = podium("features", "check", path, file, "--json")
    content = json.loads(done.stdout)
    assert done.returncode == 1
    assert content["definitions"] == read_definitions(path).hash
    assert content["findings"] == [
        {"kind": "undefined", "feature": "b", "text": "is in the data and not defined"},
        {"kind": "constant", "feature": "b", "text": "has the value 5 in all rows"},
    ]
    done = podium("features", "check", path, file)
    assert done.stdout.decode().splitlines()[:2] == [
        "undefined: b is in the data and not defined",
        "constant: b has the value 5 in all rows",
    ]
