"""The examples of how to extend Podium: each is one short file that works everywhere."""

import json
import sys
from importlib import import_module, reload
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from podium.data import Dataset, write_parquet
from podium.data.format_registry import FORMATS, format_of
from podium.errors import ArgumentError, DataError
from podium.export import export_ranker, verify_export
from podium.export.targets import TARGETS
from podium.features import read_definitions
from podium.features.definitions_file import SOURCES
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.judging import Outcome, Session, Verdict
from podium.judging.algorithms import ALGORITHMS
from podium.judging.algorithms.selection import run_selection
from podium.losses.names import parse_loss
from podium.measures import evaluate
from podium.rankers import LinearRanker, Ranker, TreeRanker, load_ranker
from podium.rankers.models import MODELS
from podium.registry import Registry
from tests.cli.run_podium import fail, podium_process, succeed
from tests.rankers.made_up import made_up

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch):
    """Import an example as its user would; what it registers is gone after the test."""
    monkeypatch.syspath_prepend(EXAMPLES)
    registries: tuple[Registry[Any], ...] = (
        FORMATS, ALGORITHMS, SOURCES, TARGETS, MODELS, Ranker.KINDS
    )  # fmt: skip
    before = [dict(registry) for registry in registries]
    loaded: list[str] = []

    def load(name: str) -> ModuleType:
        loaded.append(name)
        return import_module(name)

    yield load
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)
    for name in loaded:
        sys.modules.pop(name)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 60


def test_own_loss(example) -> None:
    own = example("own_loss").squared_hinge
    data = made_up()
    found = own(margin=2.0).evaluate([0.0, 1.0], [1, 0], [0, 2])
    assert found.total == (2.0 + 1.0) ** 2
    assert found.gradient.tolist() == [-6.0, 6.0]
    assert parse_loss(repr(own(margin=2.0))) == own(margin=2.0)
    for ranker in (LinearRanker(own()), TreeRanker(own(), n_estimators=20)):
        scores = ranker.fit(data).predict(data)
        assert next(iter(evaluate("nDCG@5", data, scores).means.values())) > 0.8


def test_own_ranker(example, tmp_path: Path) -> None:
    own = example("own_ranker").CovarianceRanker
    data = made_up()
    ranker = own(shrinkage=0.0).fit(data)
    labels = data.labels.astype(np.float64)
    within = labels - np.repeat(labels.reshape(40, 25).mean(axis=1), 25)
    covariance = (within[:, None] * data.features).mean(axis=0)
    expected = covariance / data.features.var(axis=0, dtype=np.float64)
    np.testing.assert_allclose(ranker.weights_, expected)
    assert next(iter(evaluate("nDCG@5", data, ranker.predict(data)).means.values())) > 0.8
    pair = ranker.explain(data, query=str(data.query_ids[0])).pair("1", "0")
    difference = (data.features[1] - data.features[0]) * expected
    np.testing.assert_allclose(pair.contributions, difference, atol=1e-6)

    path = tmp_path / "ranker"
    ranker.save(path)
    assert load_ranker(path).get_params() == {"shrinkage": 0.0}
    assert (load_ranker(path).predict(data) == ranker.predict(data)).all()
    write_parquet(data, tmp_path / "data.parquet")
    use = {"PYTHONPATH": str(EXAMPLES)}
    for arguments in (
        ["train", tmp_path / "data.parquet", path, "--model", "covariance"],
        ["predict", path, tmp_path / "data.parquet"],
        ["export", path, "--to", "onnx", "-o", tmp_path / "onnx"],
    ):
        done = podium_process("--use", "own_ranker", *arguments, **use)
        assert done.returncode == 0, done.stderr
    done = podium_process("predict", path, tmp_path / "data.parquet")
    assert done.returncode == 2
    assert b"Import the module that defines it first (`--use`)" in done.stderr


def test_own_measure(example) -> None:
    screen = example("own_measure").screen
    arrays = {"truth": [0, 2, 1], "ranking": [3, 2, 1], "group": [3]}
    found = evaluate([screen @ 2, screen(fade=0.5)], **arrays)
    assert found[screen @ 2][0] == pytest.approx((0 + 0.8 * 2) / (2 + 0.8 * 1))
    assert found["Screen(fade=0.5)"][0] == pytest.approx((0.5 * 2 + 0.25 * 1) / (2 + 0.5 * 1))


def test_own_algorithm(example) -> None:
    example("own_algorithm")
    worth = np.random.default_rng(0).permutation(40)

    def judge(left: int, right: int) -> Outcome:
        return Outcome.LEFT if worth[left] > worth[right] else Outcome.RIGHT

    found = run_selection(ALGORITHMS["quickselect"], 40, 8, judge)
    assert found.top == np.argsort(-worth)[:8].tolist()
    session = Session([f"d{item}" for item in range(40)], 8, algorithm="quickselect")
    while not session.done:
        for left, right in session.open_pairs():
            session.add(Verdict(left, right, judge(int(left[1:]), int(right[1:])), "ann"))
    assert list(session.result().top) == [f"d{item}" for item in found.top]


def test_own_format(example, tmp_path: Path) -> None:
    own = example("own_format")
    data = made_up(3)
    own.write_semicolons(data, tmp_path / "made.ssv.gz")
    assert format_of(tmp_path / "made.ssv.gz").name == "ssv"
    again = own.read_semicolons(tmp_path / "made.ssv.gz")
    assert again.equals(
        Dataset.from_arrays(
            data.features, data.labels, group=data.sizes, feature_names=data.feature_names
        )
    )
    (tmp_path / "bad.ssv").write_text("query_id;label;a\nq;1;0.5\nq;one;2\n")
    with pytest.raises(DataError, match="line 3"):
        own.read_semicolons(tmp_path / "bad.ssv")


def test_on_the_command_line(tmp_path: Path) -> None:
    """``--use`` imports a module first, so that a verb knows what it adds."""
    (tmp_path / "in.ssv").write_text("query_id;label;a\nq;1;0.5\nq;0;2\np;1;1\np;0;0\n")
    use = {"PYTHONPATH": str(EXAMPLES)}
    done = podium_process(
        "--use", "own_format", "convert", tmp_path / "in.ssv", tmp_path / "out.txt", **use
    )
    assert (done.returncode, done.stderr) == (0, b"")
    text = succeed("convert", tmp_path / "out.txt", "-", "--to", "letor")
    assert text.splitlines()[0].startswith("1 qid:q 1:0.5")
    trained = podium_process(
        "--use", "own_loss", "train", tmp_path / "out.txt", tmp_path / "model",
        "--loss", "squared_hinge(margin=2.0)", "--scorer", "linear", **use,
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    unknown = podium_process("--use", "no_such_module", "convert", "a", "b")
    assert unknown.returncode == 2
    assert b"no_such_module" in unknown.stderr


def test_own_source(example, tmp_path: Path) -> None:
    example("own_source")
    file = tmp_path / "features.toml"
    keys = 'source = "age"\nfield = "published"\nuntil = "2026-01-31"\n'
    file.write_text(f'[[feature]]\nname = "age"\n{keys}')
    (feature,) = read_definitions(file).features
    assert feature.source.stored_fields(feature) == ("published",)
    documents = [
        LoggedDocument("new", 2.0, {}, {"published": "2026-01-30T08:00:00Z"}),
        LoggedDocument("undated", 1.0, {}),
    ]
    query = SearchQuery("1", "shoes")
    values = feature.source.column_of(feature).values(query, documents)
    np.testing.assert_array_equal(values, [1.0, np.nan])
    file.write_text(file.read_text().replace("-31", ""))
    with pytest.raises(DataError, match="until: '2026-01' is not valid") as error:
        read_definitions(file)
    assert error.value.line == 5


def test_own_target(example, tmp_path: Path) -> None:
    example("own_target")
    data = made_up()
    LinearRanker("ListNet()").fit(data).save(tmp_path / "ranker")
    done = podium_process(
        "--use", "own_target", "export", tmp_path / "ranker", "--to", "weights",
        PYTHONPATH=str(EXAMPLES),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert verify_export(tmp_path / "ranker.weights").holds
    weights = json.loads((tmp_path / "ranker.weights" / "weights.json").read_text())
    assert len(weights) == data.features.shape[1]
    with pytest.raises(ArgumentError, match="Our engine cannot express trees"):
        export_ranker(TreeRanker(n_estimators=2).fit(data), "weights", tmp_path / "trees")
    assert "There is no target 'weighs'" in fail("export", tmp_path / "ranker", "--to", "weighs")


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("own_*.py")))
def test_an_example_may_be_loaded_again(example, name: str) -> None:
    # As in a notebook, whose cell is run twice: the same definition is no other thing.
    first = example(name)
    assert reload(first) is first
