"""``podium explain`` and ``podium importance``."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.data import Dataset, write_letor, write_parquet
from podium.explain import permutation_importance, smallest_changes
from podium.rankers import BoostedRanker, CascadeRanker, LinearRanker, load_ranker
from tests.cli.run_podium import fail, podium_on_terminal, succeed

EVIL = "<script>alert('x')</script>"


def hostile(queries: int = 6, size: int = 8) -> Dataset:
    """Names and ids that a page must not take for its own code, and a terminal not for its own."""
    random = np.random.default_rng(2)
    X = random.random((queries * size, 3))
    X[:, 2] = X[:, 0] * 2
    return Dataset.from_arrays(
        X,
        np.round(3 * X[:, 0] + X[:, 1]),
        qid=np.repeat([f"q{number}" for number in range(queries)], size),
        document_ids=[f"{EVIL}{row % size}" for row in range(queries * size)],
        feature_names=[EVIL, "b\x1b[2J", "twice"],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explain")
    data = hostile()
    write_parquet(data, path / "data.parquet")
    LinearRanker().fit(data).save(path / "linear")
    CascadeRanker(LinearRanker(), [BoostedRanker(n_estimators=4)]).fit(data).save(path / "cascade")
    plain = Dataset.from_arrays([[1.0, 2], [3.0, 1], [2.0, 2]], [0, 2, 1], group=[3])
    write_letor(plain, path / "one.txt")
    LinearRanker("ListNet()").fit(plain).save(path / "one")
    return path


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


class _Page(HTMLParser):
    """The tags of a page and its text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(content)

    def handle_starttag(self, tag: str, _attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_json_is_what_python_says() -> None:
    ranker, data = load_ranker("linear"), hostile()
    printed = json.loads(succeed("explain", "linear", "data.parquet", "--query", "q3", "--json"))
    explanation = ranker.explain(data, query="q3")
    pair = explanation.pair()
    assert printed["query_id"] == "q3"
    assert printed["pair"] == {
        "above": pair.above, "below": pair.below, "score_above": pair.score_above,
        "score_below": pair.score_below, "difference": pair.difference,
        "contributions": dict(zip(pair.names, pair.contributions.tolist(), strict=True)),
    }  # fmt: skip
    assert sum(printed["pair"]["contributions"].values()) == pytest.approx(pair.difference)
    assert [each["score"] for each in printed["documents"]] == sorted(explanation.scores)[::-1]
    assert [each["rank"] for each in printed["documents"]] == list(range(1, 9))
    changes = smallest_changes(ranker, data, "q3", pair.above, pair.below)
    assert [each["changed"] for each in printed["changes"]] == [each.changed for each in changes]


def test_two_documents_of_a_query() -> None:
    printed = json.loads(
        succeed(
            "explain", "linear", "data.parquet", "-q", "q1", "--json",
            "--above", f"{EVIL}2", "--below", f"{EVIL}5",
        )
    )  # fmt: skip
    assert (printed["pair"]["above"], printed["pair"]["below"]) == (f"{EVIL}2", f"{EVIL}5")


def test_a_single_query_needs_no_name() -> None:
    ranker = load_ranker("one")
    lines = succeed("explain", "one", "one.txt").split("\n")
    assert lines[:4] == [
        "query\t0",
        f"above\t1, score {ranker.predict([[3.0, 1]])[0]:.6g}",
        f"below\t2, score {ranker.predict([[2.0, 2]])[0]:.6g}",
        f"difference\t{ranker.coef_[0] - ranker.coef_[1]:+.6g}",
    ]
    assert lines[6] == "feature\tabove\tbelow\tcontribution"
    assert f"1\t3\t2\t{ranker.coef_[0]:+.6g}" in lines
    assert f"2\t1\t2\t{-ranker.coef_[1]:+.6g}" in lines
    assert "change of the lower\tnow\tneeded\tdeviations\tin the data" in lines
    assert "document\tbecause of\trank\tscore" in lines


def test_pages_escape_what_they_show(tmp_path: Path) -> None:
    for ranker in ("linear", "cascade"):
        succeed("explain", ranker, "data.parquet", "-q", "q0", "-o", tmp_path / "why.html")
        page = _Page((tmp_path / "why.html").read_text())
        assert "script" not in page.tags
        assert page.tags.count("svg") == {"linear": 1, "cascade": 3}[ranker]
        assert f"Why {EVIL}" in page.text
    succeed("importance", "linear", "data.parquet", "--repeats", 1, "-o", tmp_path / "what.html")
    page = _Page((tmp_path / "what.html").read_text())
    assert "script" not in page.tags
    assert page.tags.count("svg") == 4  # importance, and the dependence on three features
    assert EVIL in page.text


def test_cascades_are_explained_by_their_parts() -> None:
    printed = json.loads(succeed("explain", "cascade", "data.parquet", "-q", "q2", "--json"))
    pair = printed["pair"]
    assert list(pair["contributions"]) == ["base", "reranker 1"]
    assert sum(pair["contributions"].values()) == pytest.approx(pair["difference"])
    assert "changes" not in printed
    part = printed["parts"]["reranker 1"]
    assert sum(part["contributions"].values()) == pytest.approx(part["difference"])
    assert (part["above"], part["below"]) == (pair["above"], pair["below"])
    assert "\nranker\tabove\tbelow\tcontribution\n" in succeed(
        "explain", "cascade", "data.parquet", "-q", "q2"
    )


def test_importance_is_what_python_says() -> None:
    printed = json.loads(succeed("importance", "linear", "data.parquet", "--json", "-m", "nDCG@5"))
    result = permutation_importance(load_ranker("linear"), hostile(), "nDCG@5")
    assert [each["features"] for each in printed["groups"]] == [[EVIL, "twice"], ["b\x1b[2J"]]
    assert [each["importance"] for each in printed["groups"]] == [
        group.importance for group in result.groups
    ]
    assert printed["similar"] == [{"first": EVIL, "second": "twice", "correlation": 1.0}]
    assert (printed["measure"], printed["value"]) == ("nDCG@5", result.value)
    alone = json.loads(
        succeed(
            "importance", "linear", "data.parquet", "--json", "--correlation", 0, "--repeats", 1
        )
    )
    assert sorted(each["features"][0] for each in alone["groups"]) == sorted(
        [EVIL, "twice", "b\x1b[2J"]
    )


@pytest.mark.slow
def test_a_terminal_shows_no_control_characters() -> None:
    shown = podium_on_terminal("explain", "linear", "data.parquet", "-q", "q0", columns=100)
    assert "\x1b" not in shown
    assert "b\ufffd[2J" in shown
    shown = podium_on_terminal("importance", "linear", "data.parquet", "--repeats", 1)
    assert "nDCG@10 lost" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("linear", "data.parquet"), "there are 6 queries. Give --query, such as q0, q1"),
        (("linear", "data.parquet", "-q", "no"), "'no'"),
        (("linear", "data.parquet", "-q", "q0", "--above", "no"), "no document has the id 'no'"),
        (("linear", "data.parquet", "-q", "q0", "-o", "page.pdf"), "ends with .html"),
        (("linear", "one.txt"), "2 features, but the ranker was fitted on 3"),
        (("one.txt", "one.txt"), "one.txt"),
    ],
)
def test_wrong_requests(arguments: tuple[str, ...], message: str) -> None:
    assert message in fail("explain", *arguments)
