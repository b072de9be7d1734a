"""The rows of a query: values of engines, and features that Podium computes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from podium.data import Dataset
from podium.errors import DataError
from podium.features.definition import FeatureDefinition
from podium.features.definitions import FeatureDefinitions, FeatureRows
from podium.features.functions import FUNCTIONS, words
from podium.features.ranker_source import RankerSource
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.features.sources import FieldSource, FunctionSource, QuerySource
from podium.rankers import LinearRanker

nan = math.nan


def rows(feature: FeatureDefinition, query: SearchQuery, *documents: LoggedDocument) -> list[float]:
    return FeatureRows(FeatureDefinitions((feature,)))(query, documents)[:, 0].tolist()


def document(values: dict[str, float] | None = None, **fields: object) -> LoggedDocument:
    return LoggedDocument("d", 1.0, values or {}, fields)


def text(words: str, **columns: str) -> SearchQuery:
    return SearchQuery("q", words, columns)


def test_booleans_are_categories_as_json_writes_them():
    feature = FeatureDefinition(
        "stock", FieldSource("in_stock"), "category", categories=("false", "true")
    )
    documents = [document(in_stock=value) for value in (True, False, None, "true", [True])]
    np.testing.assert_array_equal(rows(feature, text("x"), *documents), [1, 0, nan, 1, 1])


@pytest.mark.parametrize(
    ("function", "query", "field", "value"),
    [
        ("term_overlap", "red shoe shoe", "A RED boat", 1 / 2),
        ("term_overlap", "...", "red", nan),
        ("term_matches", "red shoe shoe", "shoe, red: shoe", 2.0),
        ("phrase_match", "red shoe", "a red shoe here", 1.0),
        ("phrase_match", "red shoe", "red and shoe", 0.0),
        ("phrase_match", "", "red", 0.0),
        ("exact_match", "Red  shoe!", "red shoe", 1.0),
        ("exact_match", "red", "red shoe", 0.0),
        ("words", "x", "one, two three", 3.0),
        ("characters", "x", "añb", 3.0),
    ],
)
def test_functions_of_words_and_text(function, query, field, value):
    assert FUNCTIONS[function](words(query), field) == pytest.approx(value, nan_ok=True)
    feature = FeatureDefinition("f", FunctionSource(function, "title"), missing=-3.0)
    expected = -3.0 if math.isnan(value) else np.float32(value)
    assert rows(feature, text(query), document(title=field), document()) == [expected, -3.0]


def test_words_do_not_depend_on_case_and_compatible_letters():
    assert words("ÄPFEL Straße ﬁne x²") == ["äpfel", "strasse", "fine", "x2"]


def test_the_text_of_a_field_may_be_a_list_or_within_objects():
    feature = FeatureDefinition("f", FunctionSource("words", "author.name"))
    documents = [
        document(author={"name": ["Ann Lee", None, "Bo"]}),
        LoggedDocument("d", 1.0, {}, {"author.name": "Ann"}),
        document(author="Ann"),
        document(author={"name": []}),
    ]
    values = rows(feature, text("x"), *documents)
    assert values[:2] == [3.0, 1.0]
    assert np.isnan(values[2:]).all()


def test_properties_and_columns_of_the_query():
    length = FeatureDefinition("f", QuerySource(property="characters"))
    assert rows(length, text("red shoe"), document(), document()) == [8.0, 8.0]
    column = FeatureDefinition("f", QuerySource(column="age"), missing=-1.0)
    assert rows(column, text("x", age="2.5"), document()) == [2.5]
    assert rows(column, text("x"), document()) == [-1.0]
    assert rows(column, text("x", age=" "), document()) == [-1.0]
    is_new = FeatureDefinition("f", QuerySource(column="new"), "bool")
    assert rows(is_new, text("x", new="true"), document()) == [1.0]
    with pytest.raises(DataError, match="column 'age' of query 'q' is 'old', and feature 'f' is"):
        rows(column, text("x", age="old"), document())


def test_categories_are_numbers_in_the_order_of_their_list():
    source = FieldSource("kind")
    kind = FeatureDefinition("f", source, "category", categories=("new", "used"), missing=9.0)
    documents = [document(kind="used"), document(kind="new"), document(kind="odd"), document()]
    assert rows(kind, text("x"), *documents) == [1.0, 0.0, 9.0, 9.0]
    country = replace(kind, source=QuerySource(column="country"), missing=nan)
    assert rows(country, text("x", country="used"), document()) == [1.0]
    assert np.isnan(rows(country, text("x", country="odd"), document())).all()


def test_values_of_the_engine_are_single_precision_or_missing():
    clicks = FeatureDefinition("clicks", FieldSource("clicks"), missing=2.0)
    given = [document({"clicks": 0.1}), document({"other": 1.0}), document({"clicks": 0.0})]
    assert rows(clicks, text("x"), *given) == [float(np.float32(0.1)), 2.0, 0.0]
    with pytest.raises(DataError, match="'clicks' of document 'd' of query 'q' is infinite"):
        rows(clicks, text("x"), document({"clicks": 1e39}))


@pytest.fixture
def first_ranker(tmp_path):
    """A ranker's file and its two features."""
    own = FeatureDefinitions(
        (
            FeatureDefinition("clicks", FieldSource("clicks")),
            FeatureDefinition("length", QuerySource(property="words")),
        )
    )
    data = Dataset.from_arrays(
        [[1.0, 2.0], [2.0, 2.0], [4.0, 2.0]], [0, 1, 2], group=[3], feature_names=own.names
    )
    ranker = LinearRanker("ListNet()").fit(replace(data, definitions_hash=own.hash))
    path = tmp_path / "first.podium"
    ranker.save(path)
    return path, own, ranker


def test_the_score_of_a_ranker_is_computed_from_its_own_features(first_ranker):
    path, own, ranker = first_ranker
    feature = FeatureDefinition("first", RankerSource(path, "0" * 64, own))
    documents = [document({"first__clicks": value, "clicks": 99.0}) for value in (3.0, 5.0)]
    X = np.array([[3.0, 2.0], [5.0, 2.0]], np.float32)
    data = Dataset.from_arrays(X, [0, 0], group=[2], feature_names=own.names)
    expected = ranker.predict(data).astype(np.float32).tolist()
    assert rows(feature, text("two words"), *documents) == expected
    assert FeatureRows(FeatureDefinitions((feature,)))(text("x"), []).shape == (0, 1)


def test_a_ranker_of_other_definitions_is_refused(first_ranker):
    path, own, _ = first_ranker
    changed = FeatureDefinitions((replace(own.features[0], missing=1.0), own.features[1]))
    feature = FeatureDefinition("first", RankerSource(path, "0" * 64, changed))
    with pytest.raises(DataError) as error:
        FeatureRows(FeatureDefinitions((feature,))).load()
    assert own.hash[:12] in str(error.value)
    assert changed.hash[:12] in str(error.value)
    fewer = FeatureDefinition(
        "first", RankerSource(path, "0" * 64, FeatureDefinitions(own.features[:1]))
    )
    with pytest.raises(DataError, match="has other features than its definitions: length"):
        FeatureRows(FeatureDefinitions((fewer,))).load()
