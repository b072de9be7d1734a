"""Cards say what is known of a ranker and of data, and nothing else."""

import re
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from markdown_it import MarkdownIt

from podium.data import Dataset, write_parquet
from podium.errors import DataError
from podium.explain import permutation_importance
from podium.explain.cards import data_card, model_card
from podium.measures import Conventions, evaluate
from podium.measures.comparison.statistics import mean_interval
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
)
from tests.cli.run_podium import fail, succeed
from tests.rankers.made_up import made_up

DATA, TEST = made_up(15, 12), made_up(20, 12, seed=1)
EVIL = "<script>alert(1)</script> | `x` [a](b) *c* _d_ # &amp;"


def tables(markdown: str) -> dict[str, list[list[str]]]:
    """The rows of the tables of a card, by the heading of their section, as Markdown shows them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    rows: dict[str, list[list[str]]] = {}
    heading = ""
    for before, token in pairwise(tokens):
        if token.type != "inline":
            if token.type == "tr_open":
                rows.setdefault(heading, []).append([])
            continue
        text = "".join(
            "" if part.type == "softbreak" else part.content for part in token.children or []
        )
        if before.type == "heading_open":
            heading = text
        elif before.type in ("td_open", "th_open"):
            rows[heading][-1].append(text)
    return rows


@pytest.fixture(scope="module")
def ranker() -> Ranker:
    return LinearRanker("PairLogistic()", alpha=0.01).fit(DATA)


def test_a_card_follows_the_conventions_of_the_rankers_own_measure() -> None:
    ranker = LinearRanker("PairLogistic()", measure="ndcg_cut_10").fit(DATA)
    rows = tables(model_card(ranker, TEST, repeats=1).as_markdown())["Evaluation"]
    expected = evaluate(
        ["nDCG@10", "AP", "RR"], TEST, ranker.predict(TEST), conventions="trec_eval"
    ).means
    shown = {row[0]: row[1] for row in rows[1:]}
    assert shown == {
        "nDCG@10": f"{expected['nDCG@10']:.4f}",
        "AP": f"{expected['AP']:.4f}",
        "RR": f"{expected['RR']:.4f}",
    }


def test_a_model_card_has_the_parameters_and_the_digest(ranker: Ranker) -> None:
    facts = dict(tables(model_card(ranker).as_markdown())["Model"])
    assert facts["kind"] == "LinearRanker"
    assert facts["parameter alpha"] == "0.01"
    assert facts["parameter loss"] == "'PairLogistic()'"
    assert facts["SHA-256"] == sha256(ranker.to_bytes()).hexdigest()
    assert facts["weights other than 0"] == "6"


def test_a_model_card_has_measures_with_intervals(ranker: Ranker) -> None:
    card = model_card(ranker, TEST, ["nDCG@5", "RR"], repeats=2).as_markdown()
    evaluation = evaluate(["nDCG@5", "RR"], TEST, ranker.predict(TEST))
    rows = tables(card)["Evaluation"]
    assert rows[0] == ["measure", "mean", "95 % interval", "queries", "better"]
    for row, name in zip(rows[1:], ("nDCG@5", "RR"), strict=True):
        mean, low, high = mean_interval(evaluation[name])
        interval = f"{low:.4f} to {high:.4f}" if low < high else "-"  # all have RR 1
        assert row == [name, f"{mean:.4f}", interval, "20", "larger"]
    assert "Conventions: podium." in card
    importance = permutation_importance(ranker, TEST, "nDCG@5", repeats=2)
    assert tables(card)["What matters"][1:] == [
        [", ".join(group.features), f"{group.importance:+.4f}", group.interval]
        for group in importance.groups
    ]
    assert dict(tables(card)["Data of the evaluation"])["documents"] == "240, without ids"


def test_the_usual_measures_begin_with_the_own_one() -> None:
    ranker = LinearRanker(measure="nDCG@10").fit(DATA)
    rows = tables(model_card(ranker, TEST, repeats=1).as_markdown())["Evaluation"]
    assert [row[0] for row in rows[1:]] == ["nDCG@10", "AP", "RR"]
    ranker = LinearRanker(measure="WKT(k=5)").fit(DATA)
    rows = tables(model_card(ranker, TEST, repeats=1).as_markdown())["Evaluation"]
    assert [row[0] for row in rows[1:]] == ["WKT(k=5)", "nDCG@10", "AP", "RR"]
    assert rows[1][-1] == "smaller"


@pytest.mark.parametrize(
    ("ranker", "limit"),
    [
        (LinearRanker(), "Missing values are refused."),
        (TreeRanker(n_estimators=2), "Missing values are taken as in training"),
        (NeuralRanker(hidden_layer_sizes=(), epochs=1), "scored as the mean of its feature"),
        (CascadeRanker(LinearRanker(), [LinearRanker()]), "It ranks whole queries"),
    ],
)
def test_limits_of_a_ranker(ranker: Ranker, limit: str) -> None:
    card = model_card(ranker.fit(DATA)).as_markdown()
    limits = card.partition("## Limits")[2]
    assert limit in limits
    assert "Scores are comparable within a query only." in limits
    assert [other for other in LIMITS if other in limits] == [limit]


LIMITS = [
    "Missing values are refused.",
    "Missing values are taken as in training",
    "scored as the mean of its feature",
    "It ranks whole queries",
]


def test_limits_of_the_evaluation() -> None:
    features = DATA.features.copy()
    features[:, 5] = np.repeat(np.arange(15), 12)
    features[3, 1] = np.nan
    labels = DATA.labels.copy()
    labels[:24] = 1
    data = replace(DATA, features=features, labels=labels)
    limits = model_card(BoostedRanker(n_estimators=3).fit(DATA), data, repeats=1).as_markdown()
    assert "2 of 15 queries prefer no document to another." in limits
    assert "The data have few queries (15)" in limits
    assert "1 features are missing in some rows: 2." in limits
    assert re.search(r"No score depends on \d features: .*6\.", limits)


def test_a_data_card_has_labels_features_and_limits() -> None:
    features = np.column_stack([DATA.features, np.exp(DATA.features[:, 0])])
    features[:, 3] = np.repeat(np.arange(15), 12)
    data = Dataset.from_arrays(features, DATA.labels, group=DATA.sizes)
    card = data_card(data, name="a.txt").as_markdown()
    assert card.startswith("# Data card: a.txt\n")
    shown = tables(card)
    assert dict(shown["Data"])["queries"] == "15"
    labels, counts = np.unique(DATA.labels, return_counts=True)
    assert shown["Labels"][1:] == [
        [f"{label:g}", f"{count}", f"{count / 180:.1%}"]
        for label, count in zip(labels, counts, strict=True)
    ]
    assert len(shown["Features"]) == 8
    assert shown["Features"][4] == ["4", "0", "14", "0", "0.0%"]
    assert shown["Features that repeat each other"][1:] == [["1", "7", "+1.000"]]
    assert "constant within every query: 4." in card


def test_names_cannot_become_markup() -> None:
    data = Dataset.from_arrays(
        DATA.features[:, :2], DATA.labels, group=DATA.sizes, feature_names=[EVIL, "two\nlines"]
    )
    ranker = LinearRanker().fit(data)
    for card in (model_card(ranker, data, repeats=1), data_card(data, name=EVIL)):
        page = card.as_html()
        assert "<script" not in page
        assert "&lt;script&gt;" in page
        rendered = (
            MarkdownIt("commonmark", {"html": True}).enable("table").render(card.as_markdown())
        )
        assert "<script" not in rendered
        assert "<a " not in rendered
        assert "<em>" not in rendered
        cells = [
            cell for rows in tables(card.as_markdown()).values() for row in rows for cell in row
        ]
        assert EVIL in cells or any(EVIL in cell for cell in cells)


def test_categories_are_named() -> None:
    random = np.random.default_rng(3)
    brands = random.choice(["acme", "bolt"], 120)
    table = pa.table({"price": random.random(120), "brand": pa.array(brands).dictionary_encode()})
    ranker = TreeRanker(n_estimators=2, min_data_in_leaf=5).fit(
        table, brands == "bolt", group=[12] * 10
    )
    card = model_card(ranker).as_markdown()
    assert tables(card)["Features"][1] == ["brand", "2 categories: acme, bolt"]
    assert "A category that training had not seen is a missing value." in card


def test_the_command_writes_what_python_writes(
    ranker: Ranker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ranker.save("ranker")
    write_parquet(TEST, "test.parquet")
    assert succeed("card", "ranker") == model_card(ranker).as_markdown()
    printed = succeed("card", "ranker", "test.parquet", "-m", "RR", "--repeats", 2)
    assert printed == model_card(ranker, TEST, ["RR"], repeats=2).as_markdown()
    succeed("card", "ranker", "test.parquet", "-m", "RR", "--repeats", 2, "-o", "card.html")
    page = model_card(ranker, TEST, ["RR"], repeats=2).as_html()
    assert Path("card.html").read_text() == page
    succeed("card", "test.parquet", "-o", "data.md")
    assert Path("data.md").read_text() == data_card(TEST, name="test.parquet").as_markdown()
    assert "is not a saved ranker" in fail("card", "test.parquet", "ranker")
    assert "ends in .md or .html" in fail("card", "ranker", "-o", "card.pdf")
    assert "Measures need DATA" in fail("card", "ranker", "-m", "RR")
    assert "no such file" in fail("card", "none.txt")


def test_an_evaluation_without_values_is_refused(ranker: Ranker) -> None:
    with pytest.raises(DataError, match="no query has a value"):
        model_card(
            ranker,
            replace(TEST, labels=np.zeros_like(TEST.labels)),
            ["AP"],
            conventions=Conventions(nothing_relevant="skip"),
        )
