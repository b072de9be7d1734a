"""Definition files: what they say, their hash, and what is refused, with its line."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path

import pytest

from podium.data import Dataset
from podium.errors import ArgumentError, DataError
from podium.features import read_definitions
from podium.features.definition import FeatureDefinition
from podium.features.definitions import FeatureDefinitions
from podium.features.sources import EngineSource, FieldSource, FunctionSource, QuerySource
from podium.rankers import LinearRanker
from tests.features.collection import DEFINITIONS, MORE

FIELD = '[[feature]]\nname = "clicks"\nsource = "field"\nfield = "clicks"\n'


def read(folder: Path, text: str) -> FeatureDefinitions:
    path = folder / "features.toml"
    path.write_text(text)
    return read_definitions(path)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(DataError) as error:
        read(folder, text)
    return str(error.value).removeprefix(str(folder / "features.toml"))


def test_a_file_says_where_values_come_from(tmp_path):
    definitions = read(tmp_path, DEFINITIONS + MORE)
    assert definitions.names == (
        "title_match", "body_match", "place_match", "popularity", "age",
        "query_words", "country", "overlap", "kind",
    )  # fmt: skip
    sources = {feature.name: feature.source for feature in definitions.features}
    assert sources["title_match"] == EngineSource(
        {"match": {"title": "{{query}}"}}, "{!dismax qf=title}{{query}}"
    )
    assert sources["popularity"] == FieldSource("clicks")
    assert sources["query_words"] == QuerySource(property="words")
    assert sources["country"] == QuerySource(column="country")
    assert sources["overlap"] == FunctionSource("term_overlap", "title")
    missing = {feature.name: feature.missing for feature in definitions.features}
    assert math.isnan(missing.pop("title_match"))
    assert (missing["age"], missing["place_match"], missing["kind"]) == (9.0, 0.25, 7.0)
    logged = [feature.name for feature in definitions.logged]
    assert logged == ["title_match", "body_match", "place_match", "popularity", "age"]
    assert definitions.stored_fields == ("kind", "title")
    assert definitions.query_columns == ("country", "place")
    assert definitions.parameters("opensearch") == ("place", "query")


def test_the_hash_is_of_canonical_json(tmp_path):
    content = {
        "version": 1,
        "features": [
            {"name": "clicks", "source": "field", "type": "float", "missing": None,
             "field": "clicks"},
        ],
    }  # fmt: skip
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert read(tmp_path, FIELD).hash == hashlib.sha256(text.encode()).hexdigest()


def test_a_source_whose_content_is_not_json_has_no_hash():
    source = QuerySource(property=Path("prices.csv"))  # type: ignore[arg-type]
    definitions = FeatureDefinitions((FeatureDefinition("price", source),))
    with pytest.raises(ArgumentError, match=r"Path is not JSON .*Let `content` of your own"):
        _ = definitions.hash


def test_the_hash_does_not_depend_on_layout_order_or_candidates(tmp_path):
    first = read(tmp_path, DEFINITIONS)
    candidates, *features = re.split(r"(?=\[\[feature\]\])", DEFINITIONS)
    others = "".join(reversed(features)).replace(" = ", "   =  ").replace("\n\n", "\n# note\n\n")
    second = read(tmp_path, others)
    assert second.names == tuple(reversed(first.names))
    assert second.hash == first.hash
    assert (
        read(tmp_path, DEFINITIONS.replace("missing = 0\n", "missing = -0.0\n")).hash == first.hash
    )
    assert (
        read(tmp_path, candidates.replace("body", "title") + "".join(features)).hash == first.hash
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"clicks"', '"visits"'),
        ("missing = 9", "missing = 8"),
        ("missing = 9\n", ""),
        ('type = "int"', 'type = "float"'),
        ("match = { title", "match_phrase = { title"),
        ("{!field f=body}", "{!field f=title}"),
        ('name = "age"', 'name = "days"'),
        ('property = "words"', 'property = "characters"'),
        ('categories = ["at", "de"]', 'categories = ["de", "at"]'),
        ('"term_overlap"', '"term_matches"'),
    ],
)
def test_the_hash_depends_on_everything_that_defines_values(tmp_path, old, new):
    text = DEFINITIONS + MORE
    assert old in text
    assert read(tmp_path, text).hash != read(tmp_path, text.replace(old, new, 1)).hash


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[feature]\n", ", line 1: is not TOML (Expected ']]' at the end of an array "
         "declaration, column 10). Fix it."),
        ("", ": has 0 features. Define 1 to 1000 of them."),
        ("[other]\n", ": has an unknown table 'other'. Write [[feature]] or [candidates]."),
        ("feature = 3\n", ": has a feature that is not a table. Begin each with [[feature]]."),
        (FIELD + FIELD, ", line 6: feature 'clicks', name: is defined twice. Give it another "
         "name."),
        (FIELD.replace('"clicks"', '"1st"', 1), ", line 2: feature '1st', name: '1st' is not "
         "valid. Give letters, digits and underscores, no digit first."),
        (FIELD.replace('"clicks"', '"label"', 1), ", line 2: feature 'label', name: 'label' is a "
         "column of every data set. Choose another name."),
        (FIELD.replace('"field"\n', '"index"\n'), ", line 3: feature 'clicks', source: 'index' is "
         "unknown. Give one of engine, field, query, function, ranker."),
        (FIELD.replace("field = ", "fields = "), ", line 4: feature 'clicks', fields: is unknown "
         "here. Known: name, source, type, missing, categories, field."),
        (FIELD.replace('field = "clicks"', ""), ", line 1: feature 'clicks', field: is missing. "
         "Give the name of a field."),
        (FIELD + "missing = inf\n", ", line 5: feature 'clicks', missing: is not a finite number "
         "or nan. Give a number."),
        (FIELD + "missing = 1e39\n", ", line 5: feature 'clicks', missing: is too large for "
         "single precision. Give a smaller number."),
        (FIELD + f"missing = {10**400}\n", ", line 5: feature 'clicks', missing: is too large "
         "for single precision. Give a smaller number."),
        (FIELD + "missing = 2\ntype = 'bool'\n", ", line 5: feature 'clicks', missing: is neither "
         "true nor false. Give true, false or nan."),
        (FIELD + "missing = 2.5\ntype = 'int'\n", ", line 5: feature 'clicks', missing: is not an "
         "integer. Give an integer, or nan."),
        (FIELD + "type = 'category'\n", ", line 1: feature 'clicks', categories: is not a list of "
         "distinct strings. List the known values, in order."),
        (FIELD + "categories = ['a']\n", ", line 5: feature 'clicks', categories: belongs to type "
         "= 'category'. Leave it out."),
        ("[[feature]]\nname='a'\nsource='engine'\n", ", line 1: feature 'a': has no query. Give "
         "template (OpenSearch, Elasticsearch), solr, or both."),
        ("[[feature]]\nname='a'\nsource='engine'\ntype='int'\nsolr='*:*'", ", line 4: feature "
         "'a', type: the source engine has no values of type int. Choose one of float."),
        ("[[feature]]\nname='a'\nsource='query'\nproperty='words'\ncolumn='b'", ", line 1: "
         "feature 'a': needs either property or column. Give one of them."),
        ("[[feature]]\nname='a'\nsource='function'\nfield='b'\nfunction='eval'", ", line 5: "
         "feature 'a', function: 'eval' is unknown. Give one of term_overlap, term_matches, "
         "phrase_match, exact_match, words, characters."),
        ("[candidates]\nsolr='title:{{query}}'\n" + FIELD, ", line 2: candidates, solr: "
         "'title:{{query}}' would let the query's words change the structure of the request. "
         "Write {!PARSER OPTIONS}{{query}} with one of the parsers dismax, field, term, such as "
         "{!field f=title}{{query}}."),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_key(tmp_path, text, message):
    assert refused(tmp_path, text) == message


@pytest.mark.parametrize(
    "template",
    [
        "{ match = { title = '{{{query}}}' } }",
        "{ match = { title = '{{#query}}x{{/query}}' } }",
        "{ match = { title = '{{query' } }",
        "{ match = { '{{query}}' = 'x' } }",
        "{ range = { day = { gte = 2026-01-01 } } }",
        "{ boost = inf }",
        "{ a = " + "[" * 25 + "]" * 25 + " }",
    ],
)
def test_templates_have_plain_placeholders_in_strings_of_json(tmp_path, template):
    text = f"[[feature]]\nname = 'a'\nsource = 'engine'\ntemplate = {template}\n"
    assert refused(tmp_path, text).startswith(", line 4: feature 'a', template: ")


@pytest.mark.parametrize(
    "solr",
    [
        "{!lucene}{{query}}", "{!edismax qf=title}{{query}}", "{!dismax v={{query}}}", "{{query}}",
        "{!field f=a}{{a}} {{b}}",
        "{!xmlparser}{{query}}", "{!field f=${x}}{{query}}", "{!join from=a to=b}{{query}}",
    ],
)  # fmt: skip
def test_words_cannot_change_the_structure_of_a_query_of_solr(tmp_path, solr):
    text = f"[[feature]]\nname = 'a'\nsource = 'engine'\nsolr = '{solr}'\n"
    assert ", line 4: feature 'a', solr: " in refused(tmp_path, text)


def test_large_files_and_folders_are_refused(tmp_path):
    assert refused(tmp_path, "#" * (1 << 20) + "\n") == (": is larger than 1 MiB. Check the path.")
    with pytest.raises(DataError, match="Is a directory"):
        read_definitions(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_definitions(tmp_path / "absent.toml")


def test_a_byte_order_mark_is_skipped_and_long_numbers_are_refused(tmp_path):
    path = tmp_path / "features.toml"
    path.write_bytes(b"\xef\xbb\xbf" + FIELD.encode())
    assert read_definitions(path).names == ("clicks",)
    assert refused(tmp_path, f"{FIELD}missing = {'9' * 5000}\n") == (
        ": is nested too deeply or has a number that is too long (ValueError). Make it simpler."
    )


def nested(folder: Path, text: str = FIELD) -> FeatureDefinitions:
    """Definitions with the score of a ranker that has features of its own."""
    (folder / "first.toml").write_text(text)
    own = read_definitions(folder / "first.toml")
    data = Dataset.from_arrays([[1.0], [2.0]], [0, 1], group=[2], feature_names=own.names)
    LinearRanker("ListNet()").fit(data).save(folder / "first.podium")
    ranker = (
        "[[feature]]\nname = 'first'\nsource = 'ranker'\nranker = 'first.podium'\n"
        "definitions = 'first.toml'\n"
    )
    return read(folder, ranker)


def test_the_hash_depends_on_a_nested_ranker_and_its_features(tmp_path):
    first = nested(tmp_path)
    assert [feature.name for feature in first.logged] == ["first__clicks"]
    assert nested(tmp_path).hash == first.hash
    assert nested(tmp_path, FIELD + "missing = 1\n").hash != first.hash
    data = Dataset.from_arrays([[1.0], [2.0]], [1, 0], group=[2], feature_names=["clicks"])
    nested(tmp_path)
    LinearRanker("ListNet()").fit(data).save(tmp_path / "first.podium")
    assert read_definitions(tmp_path / "features.toml").hash != first.hash


@pytest.mark.parametrize("path", ["/etc/hostname", "../first.podium", ""])
def test_rankers_outside_the_folder_are_refused(tmp_path, path):
    nested(tmp_path)
    text = (tmp_path / "features.toml").read_text().replace("first.podium", path)
    assert ", line 4: feature 'first', ranker: " in refused(tmp_path, text)


def test_a_file_cannot_be_nested_in_itself(tmp_path):
    nested(tmp_path)
    text = (tmp_path / "features.toml").read_text()
    itself = text.replace("first.toml", "features.toml")
    assert refused(tmp_path, itself) == (
        ", line 5: feature 'first', definitions: is this file. Name the file of the ranker's own "
        "features."
    )
    (tmp_path / "first.toml").write_text(text.replace("first.toml", "features.toml"))
    assert "ranker: is nested deeper than 3 files" in refused(tmp_path, text)


def test_a_name_of_a_nested_feature_in_engines_is_not_taken_twice(tmp_path):
    nested(tmp_path)
    text = (tmp_path / "features.toml").read_text()
    other = FIELD.replace('"clicks"', '"first__clicks"', 1)
    assert refused(tmp_path, text + other) == (
        ": has a feature named as one of a ranker's own is in engines: 'first__clicks'. Rename it."
    )


def engine(name: str, missing: float = math.nan) -> FeatureDefinition:
    source = EngineSource({"match": {"title": "{{query}}"}}, "{!field f=title}{{query}}")
    return FeatureDefinition(name, source, missing=missing)


def test_opensearch_computes_features_with_the_value_of_absent_ones():
    clicks = FieldSource("clicks")
    definitions = FeatureDefinitions(
        (
            engine("plain"), engine("zero", 0.0), engine("two", 2.0),
            FeatureDefinition("field", clicks), FeatureDefinition("field_5", clicks, missing=5.0),
        )
    )  # fmt: skip
    body = definitions.to_opensearch("shop")["featureset"]
    match = {"match": {"title": "{{query}}"}}
    zero, two = (
        {"constant_score": {"filter": {"match_all": {}}, "boost": boost}} for boost in (0.0, 2.0)
    )
    factor = {"field": "clicks"}
    assert body["name"] == "shop"
    assert [feature["params"] for feature in body["features"]] == [["query"]] * 3 + [[], []]
    assert {feature["name"]: feature["template"] for feature in body["features"]} == {
        "plain": match,
        "zero": {"bool": {"must": [zero], "should": [match]}},
        "two": {
            "bool": {
                "should": [match, {"bool": {"must": [two], "must_not": [match]}}],
                "minimum_should_match": 1,
            }
        },
        "field": {
            "function_score": {
                "query": {"exists": {"field": "clicks"}},
                "functions": [{"field_value_factor": factor}],
                "boost_mode": "replace",
            }
        },
        "field_5": {
            "function_score": {
                "query": {"match_all": {}},
                "functions": [{"field_value_factor": {**factor, "missing": 5.0}}],
                "boost_mode": "replace",
            }
        },
    }
    extractors = definitions.to_elasticsearch()
    assert extractors[0] == {"query_extractor": {"feature_name": "plain", "query": match}}


def test_solr_computes_features_with_the_value_of_absent_ones():
    field = FeatureDefinition("field", FieldSource("clicks"), missing=-5.0)
    definitions = FeatureDefinitions((engine("plain"), engine("zero", 0.0), field))
    package = "org.apache.solr.ltr.feature"
    query = "{!field f=title}${query}"
    assert definitions.to_solr("shop") == [
        {
            "store": "shop", "name": "plain", "class": f"{package}.SolrFeature",
            "params": {"q": query, "defaultValue": "NaN"},
        },
        {
            "store": "shop", "name": "zero", "class": f"{package}.SolrFeature",
            "params": {"q": query, "defaultValue": "0.0"},
        },
        {
            "store": "shop", "name": "field", "class": f"{package}.FieldValueFeature",
            "params": {"field": "clicks", "defaultValue": "-5.0"},
        },
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("feature", "target", "message"),
    [
        (FeatureDefinition("a", QuerySource(property="words")), "opensearch",
         "OpenSearch cannot compute feature 'a': it is a property of the query. Podium computes"),
        (FeatureDefinition("a", FunctionSource("words", "title")), "solr",
         "Solr cannot compute feature 'a': it is the function words of query and document"),
        (FeatureDefinition("a", FieldSource("k"), "category", categories=("x",)), "solr",
         "Solr cannot compute feature 'a': it is a category, and engines rank by numbers"),
        (FeatureDefinition("a", EngineSource(solr="*:*")), "elasticsearch",
         "Elasticsearch cannot compute feature 'a': it is a query of Solr only. Add template"),
        (FeatureDefinition("a", EngineSource({"match_all": {}})), "solr",
         "Solr cannot compute feature 'a': it is a query of OpenSearch and Elasticsearch only"),
        (engine("a", -1.0), "o19s", "it is -1 where it is absent, and a query's score is not "
         "negative. Leave missing out, or give a number of at least 0"),
        (FeatureDefinition("a", FieldSource("k"), missing=-1.0), "opensearch", "it is -1 where"),
        (engine("a"), "onnx", "'onnx' does not compute features. Targets: opensearch, o19s, "
         "solr, elasticsearch"),
    ],
)  # fmt: skip
def test_a_target_refuses_what_it_cannot_compute(feature, target, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        FeatureDefinitions((feature,)).extractors(target)


def test_a_target_refuses_the_score_of_a_ranker(tmp_path):
    with pytest.raises(ArgumentError, match="'first': it is the score of another ranker"):
        nested(tmp_path).to_opensearch()


def test_an_export_takes_the_extractors_of_some_features():
    definitions = FeatureDefinitions(
        (engine("title"), FeatureDefinition("length", QuerySource(property="words")))
    )
    assert definitions.extractors("opensearch", ["title"]) == {
        "title": {"match": {"title": "{{query}}"}}
    }
