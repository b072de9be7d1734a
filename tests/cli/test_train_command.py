import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.cli.training import make_ranker
from podium.cli.tune import parse_choices
from podium.data import (
    Dataset,
    Judgments,
    read_run,
    write_letor,
    write_parquet,
    write_qrels,
    write_shards,
)
from podium.errors import PodiumError
from podium.losses import ListNet, PairHinge
from podium.rankers import LinearRanker, load_ranker
from podium.rankers.fit_progress import Progress
from podium.rankers.models import list_net
from tests.cli.run_podium import fail, podium, succeed
from tests.rankers.made_up import made_up


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("train")
    write_letor(made_up(), path / "train.txt")
    write_letor(made_up(10, seed=1), path / "held.txt")
    write_shards(made_up(), path / "shards")
    flat = made_up(5)
    write_letor(replace(flat, labels=np.ones_like(flat.labels)), path / "flat.txt")
    write_letor(with_ids(made_up()), path / "blank.txt")
    queries = with_ids(made_up()).query_id_of_row()
    others = [f"other{row}" for row in range(1000)]
    write_qrels(Judgments.from_columns(queries, others, np.ones(1000)), path / "other.qrels")
    return path


def with_ids(data: Dataset) -> Dataset:
    """The same rows with document ids and without labels."""
    ids = [f"d{row}" for row in range(data.rows)]
    return Dataset.from_arrays(
        data.features, np.zeros(data.rows), group=data.sizes, document_ids=ids
    )


@pytest.mark.slow
@pytest.mark.parametrize("scorer", ["linear", "lightgbm", "xgboost", "neural"])
def test_train_and_predict(folder: Path, scorer: str) -> None:
    setting = {"linear": "alpha=0.01", "neural": "epochs=2"}.get(scorer, "n_estimators=5")
    done = podium(
        "train", "train.txt", scorer, "--scorer", scorer, "--validation", "held.txt",
        "--set", setting,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    scores = np.array(succeed("predict", scorer, "held.txt").split(), float)
    np.testing.assert_allclose(scores, load_ranker(folder / scorer).predict(made_up(10, seed=1)))


@pytest.mark.slow
def test_shards_train_and_score_as_a_run(folder: Path) -> None:
    settings = ["--set", "num_leaves=4", "--set", "n_estimators=3"]
    done = podium("train", "shards", "model", "-l", "ListNet()", *settings)
    assert done.returncode == 0, done.stderr
    assert load_ranker(folder / "model").engine_params == {"num_leaves": 4}
    for arguments in (["-o", "scores.txt"], ["--run", "-o", "model.run"]):
        succeed("predict", "model", "shards", *arguments)
    assert len((folder / "scores.txt").read_text().splitlines()) == made_up().rows
    assert read_run(folder / "model.run").rows == made_up().rows


@pytest.mark.usefixtures("folder")
def test_a_file_with_columns_in_another_order_gets_the_same_scores() -> None:
    names = ("bm25", "clicks", "age", "length", "links", "spam")
    data = replace(made_up(), feature_names=names)
    turned = data.select_features(names[::-1])
    LinearRanker("ListNet()").fit(data).save("named")
    write_parquet(data, "named.parquet")
    write_parquet(turned, "turned.parquet")
    write_shards(turned, "turned")
    expected = succeed("predict", "named", "named.parquet")
    assert len(set(expected.split())) > 900
    assert succeed("predict", "named", "turned.parquet") == expected
    assert succeed("predict", "named", "turned") == expected
    runs = [succeed("predict", "named", each, "--run") for each in ("named.parquet", "turned")]
    assert runs[0] == runs[1]
    write_parquet(data.select_features(names[1:4]), "narrow.parquet")
    assert "missing: bm25, links, spam" in fail("predict", "named", "narrow.parquet")
    assert "only numbers in the data" in fail("predict", "named", "held.txt")


@pytest.mark.filterwarnings("default:the column 'score'")
@pytest.mark.usefixtures("folder")
def test_a_column_score_is_a_feature_and_said_to_be_one() -> None:
    names = ("score", "clicks", "age", "length", "links", "spam")
    write_parquet(replace(made_up(), feature_names=names), "score.parquet")
    arguments = ("train", "score.parquet", "scored", "-s", "linear")
    message = "the column 'score' is a feature here"
    done = podium(*arguments, "--json")
    assert f"Warning: {message}" in done.stderr.decode()
    (warning,) = json.loads(done.stdout)["warnings"]
    assert warning.startswith(message)
    write_parquet(replace(made_up(), feature_names=("s", *names[1:])), "other.parquet")
    done = podium("train", "other.parquet", *arguments[2:], "--json")
    assert json.loads(done.stdout)["warnings"] == []


@pytest.mark.usefixtures("folder")
def test_labels_are_counted() -> None:
    data = with_ids(made_up())
    judged = Judgments.from_columns(
        data.query_id_of_row()[:30], data.document_ids[:30], np.arange(30) % 3
    )
    write_qrels(judged, "some.qrels")
    done = podium("train", "blank.txt", "some", "-s", "linear", "--labels", "some.qrels")
    assert done.returncode == 0, done.stderr
    # 25 documents a query: all of the first query and five of the second.
    message = " ".join(done.stderr.decode().split())
    assert "training labels some.qrels: 30 of 50 documents" in message
    assert "2 of 40 queries, 38 left out" in message
    features, labels = made_up().features[:50], np.zeros(50)
    labels[:30] = np.arange(30) % 3
    ranker = LinearRanker().fit(features, labels, group=[25, 25])
    np.testing.assert_allclose(load_ranker("some").coef_, ranker.coef_, rtol=1e-6)


@pytest.mark.usefixtures("folder")
def test_an_interrupted_training_saves_what_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop_at(last: int) -> None:
        @contextmanager
        def steps(_title: str, _measure: str | None) -> Iterator[Progress]:
            def report(step: int, _loss: float, _value: float | None) -> None:
                if step == last:
                    raise KeyboardInterrupt

            yield report

        monkeypatch.setattr("podium.cli.training.step_progress", steps)

    stop_at(3)
    done = podium("train", "train.txt", "stopped", "--set", "n_estimators=50")
    assert done.returncode == 130
    assert b"Interrupted: saved the best TreeRanker so far in stopped" in done.stderr
    assert load_ranker("stopped").n_estimators_ == 3
    # A search or a cascade has nothing to save yet.
    stop_at(1)
    done = podium("train", "train.txt", "none", "--model", "TopRank", "--k", "5")
    assert done.returncode != 0
    assert not Path("none").exists()


@pytest.mark.slow
def test_tune_saves_the_best(folder: Path) -> None:
    done = podium(
        "tune", "train.txt", "best", "--validation", "held.txt", "--scorer", "linear",
        "--try", "alpha=1,10,0.001", "--try", "loss=SquaredError()",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.decode().splitlines()]
    assert rows[0] == ["alpha", "loss", "nDCG@10"]
    values = {float(alpha): float(value) for alpha, _loss, value in rows[1:]}
    assert list(values.values()) == sorted(values.values(), reverse=True)
    assert len(set(values.values())) == 3
    assert next(iter(values)) == load_ranker(folder / "best").alpha == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "train.txt", "m", "--loss", "ListMEL(k=3)"), "ListMLE"),
        (
            ("train", "train.txt", "m", "-s", "linear", "--set", "leaves=3"),
            "LinearRanker has no parameter leaves",
        ),
        (("train", "train.txt", "m", "--set", "leaves"), "name=value"),
        # The engine's parameters are looked at before the data are.
        (("train", "no such file", "m", "--set", "num_leafs=3"), "Did you mean: num_leaves"),
        (
            ("train", "no such file", "m", "--set", "n_estimatorz=3"),
            "Did you mean: n_estimators?",
        ),
        (
            ("train", "no such file", "m", "-s", "xgboost", "--set", "max_deep=3"),
            "Did you mean: max_depth",
        ),
        (
            ("train", "no such file", "m", "-s", "linear", "--set", "alpha=abc"),
            "alpha is 'abc'",
        ),
        (("train", "no such file", "m", "--set", "boosting=rf"), "boosting=rf does not work"),
        (("train", "no such file", "m", "--set", "eta=0.5"), "Give the ranker learning_rate"),
        (("train", "train.txt", "m", "--set", "num_leaves=1"), "LightGBM cannot train"),
        (
            (
                "tune",
                "train.txt",
                "m",
                "--validation",
                "held.txt",
                "-s",
                "linear",
                "--try",
                "alpha=abc",
            ),
            "alpha is 'abc'",
        ),
        (("train", "flat.txt", "m", "-s", "linear"), "in each of 5 queries all labels are equal"),
        (("train", "blank.txt", "m", "--labels", "other.qrels"), "none of the 1000 documents"),
        (("tune", "train.txt", "m", "--validation", "held.txt", "--try", "x"), "name=value,value"),
        (("predict", "train.txt", "held.txt"), "neither a saved ranker nor a model"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], message: str) -> None:
    assert message in fail(*arguments)


def test_models_by_name() -> None:
    common = {"measure": "ERR@5", "seed": 3}
    ranker = make_ranker("ranksvm", 10, None, None, {"alpha": 0.5}, **common)
    assert (ranker.loss, ranker.alpha, ranker.measure) == (PairHinge(k=10), 0.5, "ERR@5")
    trees = make_ranker("FocusedNet", 5, None, "lightgbm", {"num_leaves": 4}, **common)
    assert (trees.engine_params, trees.random_state) == ({"num_leaves": 4}, 3)
    cascade = make_ranker("TopRank", None, None, None, {}, **common)
    assert {each.measure for each in (cascade, cascade.base, *cascade.rerankers)} == {"ERR@5"}
    with pytest.raises(PodiumError, match="--model or --loss"):
        make_ranker("RankSVM", None, "ListNet()", None, {}, **common)
    with pytest.raises(PodiumError, match="belongs to --model"):
        make_ranker(None, 10, None, None, {}, **common)


def test_choices_are_split_outside_of_brackets() -> None:
    texts = ["hidden_layer_sizes=[64,32],[8]", "loss=Focused(ListNet(),PairHinge()),ListMLE(k=3)"]
    assert parse_choices(texts) == {
        "hidden_layer_sizes": [[64, 32], [8]],
        "loss": ["Focused(ListNet(),PairHinge())", "ListMLE(k=3)"],
    }


@pytest.mark.slow
def test_a_known_model_with_labels_by_id_and_its_own_grid(folder: Path) -> None:
    data, named = made_up(), with_ids(made_up())
    judged = Judgments.from_columns(named.query_id_of_row(), named.document_ids, data.labels)
    write_qrels(judged, "judged.qrels")
    done = podium(
        "tune", "blank.txt", "known", "--validation", "blank.txt", "--labels", "judged.qrels",
        "--model", "ListNet", "--k", "5",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == 1 + len(list_net.grid()["alpha"])
    assert repr(load_ranker(folder / "known").loss) == repr(repr(ListNet(k=5)))
    rounds = podium("tune", "blank.txt", "m", "--validation", "blank.txt", "--model", "RankBoost")
    assert b"Use podium train" in rounds.stderr


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("train copy.txt copy.txt --model ListNet", "copy.txt"),
        ("train train.txt copy.txt --model ListNet --validation ./copy.txt", "copy.txt"),
        ("tune copy.txt copy.txt --validation held.txt --model ListNet", "copy.txt"),
        ("predict linear.podium copy.txt -o copy.txt", "copy.txt"),
        ("predict linear.podium train.txt -o linear.podium", "linear.podium"),
    ],
)
def test_files_that_are_read_are_not_written_over(folder: Path, command: str, kept: str) -> None:
    (folder / "copy.txt").write_bytes((folder / "train.txt").read_bytes())
    LinearRanker("ListNet()").fit(made_up()).save(folder / "linear.podium")
    before = (folder / kept).read_bytes()
    assert "is one of the files to read. Name another file to write." in fail(*command.split())
    assert (folder / kept).read_bytes() == before


@pytest.mark.parametrize(
    ("options", "extra"),
    [
        ((), "trees"),
        (("-s", "xgboost"), "xgboost-cpu"),
        (("--model", "RankSVM"), "rankers"),
    ],
)
def test_the_extra_that_a_training_needs(options: tuple[str, ...], extra: str) -> None:
    code = "import sys; sys.modules['sklearn'] = None; from podium.cli import main; main()"
    command = [sys.executable, "-c", code, "train", "data.txt", "ranker", *options]
    error = subprocess.run(command, capture_output=True, text=True).stderr
    assert f"scikit-learn is not installed: pip install 'podium-rank[{extra}]'" in error
