"""The settings of a search are checked before the service starts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from starlette.datastructures import QueryParams

from podium.data import Dataset
from podium.errors import DataError, PodiumError
from podium.features import read_definitions
from podium.rankers import LinearRanker
from podium.serving import ServingSettings
from podium.serving.refusal import Refusal
from podium.serving.repository import Repository
from podium.serving.search_request import parse_search, parse_search_parameters
from podium.serving.search_settings import SearchSettings, read_search_settings
from podium.serving.searcher import prepare_search
from podium.serving.settings import parse_model
from tests.engines.shop import DEFINITIONS

SETTINGS = 'engine = "solr"\nurl = "http://localhost:8983/solr/shop"\ndefinitions = "f.toml"\n'


def settings_file(tmp_path, text):
    (tmp_path / "search.toml").write_text(text)
    return str(tmp_path / "search.toml")


def test_settings_are_those_of_the_file(tmp_path):
    path = settings_file(tmp_path, SETTINGS + 'fields = ["title", "a.b"]\nbudget_ms = 80\n')
    assert read_search_settings(path) == SearchSettings(
        engine="solr", url="http://localhost:8983/solr/shop", definitions=str(tmp_path / "f.toml"),
        fields=("title", "a.b"), budget_ms=80,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("engine = ", "Invalid value"),
        (SETTINGS.replace("solr", "vespa", 1), "Invalid enum value 'vespa'"),
        (SETTINGS + "depht = 10", "unknown field `depht`"),
        (SETTINGS + "depth = 0", "Expected `int` >= 1"),
        (SETTINGS + "budget_ms = 1", "Expected `int` >= 10"),
        (SETTINGS + 'fields = ["a,b"]', "'a,b' cannot be the name of a field"),
        (SETTINGS + "#" * (1 << 20), "is larger than 1 MiB"),
        ('engine = "solr"', "missing required field `url`"),
    ],
)
def test_mistakes_name_the_file_and_the_problem(tmp_path, text, problem):
    with pytest.raises(DataError, match=r"search\.toml: ") as raised:
        read_search_settings(settings_file(tmp_path, text))
    assert problem in str(raised.value)


def test_bytes_that_are_not_text_are_refused(tmp_path):
    (tmp_path / "search.toml").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"search\.toml: "):
        read_search_settings(str(tmp_path / "search.toml"))


@pytest.fixture
def definitions(tmp_path):
    (tmp_path / "f.toml").write_text(DEFINITIONS)
    return read_definitions(tmp_path / "f.toml")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"url": "localhost:8983"}, "is not the address of a search engine"),
        ({"engine": "solr", "url": "file:///etc/passwd"}, "is not the address of a search engine"),
        ({"url": "http://h:9200"}, "does not name an index"),
        ({"url": "http://h:9200/../_all"}, "does not name an index"),
        ({"feature_set": "../x"}, "cannot be the name of a feature set"),
    ],
)
def test_an_engine_that_cannot_be_asked_is_refused(definitions, changes, problem):
    values = {"engine": "opensearch", "url": "http://h:9200/shop", "definitions": "f.toml"}
    with pytest.raises(PodiumError, match=problem):
        prepare_search(SearchSettings(**(values | changes)), definitions)


def ranker(definitions, hash_of_definitions, names=None):
    names = names or definitions.names
    data = Dataset.from_arrays(
        [[0.0] * len(names), [1.0] * len(names)], [0, 1], group=[2], feature_names=names
    )
    return LinearRanker().fit(replace(data, definitions_hash=hash_of_definitions))


def repository(tmp_path, fitted):
    fitted.save(tmp_path / "m.podium")
    search = SearchSettings(
        engine="solr", url="http://h/solr/shop", definitions=str(tmp_path / "f.toml")
    )
    models = (parse_model(str(tmp_path / "m.podium")),)
    return Repository(ServingSettings(models=models, search=search), tmp_path)


def test_a_ranker_of_other_definitions_is_not_served(tmp_path, definitions):
    repository(tmp_path, ranker(definitions, definitions.hash)).reload()
    repository(tmp_path, ranker(definitions, None)).reload()
    with pytest.raises(DataError, match=f"{'0' * 12}.*{definitions.hash[:12]}|"
                       f"{definitions.hash[:12]}.*{'0' * 12}"):  # fmt: skip
        repository(tmp_path, ranker(definitions, "0" * 64)).reload()


def test_a_ranker_with_an_undefined_feature_is_not_served(tmp_path, definitions):
    fitted = ranker(definitions, None, (*definitions.names, "other"))
    with pytest.raises(DataError, match="feature 'other' of m is not defined"):
        repository(tmp_path, fitted).reload()


def test_the_parameters_of_a_get_are_those_of_a_post():
    parameters = QueryParams(
        "q=red+shoes&from=10&size=5&fields=title,price&columns.country=de&columns.age=7"
        "&search_id=s-1&query_id=q+17"
    )
    body = {
        "query": "red shoes", "from": 10, "size": 5, "fields": ["title", "price"],
        "columns": {"country": "de", "age": "7"}, "search_id": "s-1", "query_id": "q 17",
    }  # fmt: skip
    assert parse_search_parameters(parameters) == parse_search(json.dumps(body).encode())


@pytest.mark.parametrize("text", ["columns=de", "columns.a=1&columns.a=2", "search_id=a+b", "x=1"])
def test_other_parameters_are_refused(text):
    with pytest.raises(Refusal):
        parse_search_parameters(QueryParams(f"q=a&{text}"))
