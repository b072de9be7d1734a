import json
from pathlib import Path

import numpy as np
import pytest

from podium.cli.train import make_ranker
from podium.cli.tune import parse_choices
from podium.data import Dataset, Judgments, read_run, write_letor, write_qrels, write_shards
from podium.errors import PodiumError
from podium.losses import ListNet, PairHinge
from podium.rankers import load_ranker
from podium.rankers.models import ListNet as ListNetModel
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
    return path


@pytest.mark.slow
@pytest.mark.parametrize("scorer", ["linear", "lightgbm", "xgboost", "neural"])
def test_train_and_predict(folder: Path, scorer: str) -> None:
    setting = {"linear": "penalty=0.01", "neural": "epochs=2"}.get(scorer, "n_estimators=5")
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
    assert load_ranker(folder / "model").parameters == {"num_leaves": 4}
    for arguments in (["-o", "scores.txt"], ["--run", "-o", "model.run"]):
        succeed("predict", "model", "shards", *arguments)
    assert len((folder / "scores.txt").read_text().splitlines()) == made_up().rows
    assert read_run(folder / "model.run").rows == made_up().rows


@pytest.mark.slow
def test_tune_saves_the_best(folder: Path) -> None:
    done = podium(
        "tune", "train.txt", "best", "--validation", "held.txt", "--scorer", "linear",
        "--try", "penalty=0.001,10", "--try", "loss=ListMLE(k=5)",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"penalty" in done.stdout
    assert json.dumps(load_ranker(folder / "best").penalty) in ("0.001", "10")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "train.txt", "m", "--loss", "ListMEL(k=3)"), "ListMLE"),
        (("train", "train.txt", "m", "-s", "linear", "--set", "leaves=3"), "no such parameter"),
        (("train", "train.txt", "m", "--set", "leaves"), "name=value"),
        (("tune", "train.txt", "m", "--validation", "held.txt", "--try", "x"), "name=value,value"),
        (("predict", "train.txt", "held.txt"), "no saved ranker"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], message: str) -> None:
    assert message in fail(*arguments)


def test_models_by_name() -> None:
    common = {"measure": "ERR@5", "seed": 3}
    ranker = make_ranker("ranksvm", 10, None, None, {"penalty": 0.5}, **common)
    assert (ranker.loss, ranker.penalty, ranker.measure) == (PairHinge(k=10), 0.5, "ERR@5")
    trees = make_ranker("FocusedNet", 5, None, "lightgbm", {"num_leaves": 4}, **common)
    assert (trees.parameters, trees.seed) == ({"num_leaves": 4}, 3)
    cascade = make_ranker("TopRank", None, None, None, {}, **common)
    assert {each.measure for each in (cascade, cascade.base, *cascade.rerankers)} == {"ERR@5"}
    with pytest.raises(PodiumError, match="--model or --loss"):
        make_ranker("RankSVM", None, "ListNet()", None, {}, **common)
    with pytest.raises(PodiumError, match="belongs to --model"):
        make_ranker(None, 10, None, None, {}, **common)


def test_choices_are_split_outside_of_brackets() -> None:
    texts = ["hidden=[64,32],[8]", "loss=Focused(ListNet(),PairHinge()),ListMLE(k=3)"]
    assert parse_choices(texts) == {
        "hidden": [[64, 32], [8]],
        "loss": ["Focused(ListNet(),PairHinge())", "ListMLE(k=3)"],
    }


@pytest.mark.slow
def test_a_known_model_with_labels_by_id_and_its_own_grid(folder: Path) -> None:
    data = made_up()
    ids, blank = [f"d{row}" for row in range(data.rows)], np.zeros(data.rows)
    named = Dataset.from_arrays(data.features, blank, group=data.sizes, document_ids=ids)
    write_letor(named, "blank.txt")
    judged = Judgments.from_columns(named.query_id_of_row(), ids, data.labels)
    write_qrels(judged, "judged.qrels")
    done = podium(
        "tune", "blank.txt", "known", "--validation", "blank.txt", "--labels", "judged.qrels",
        "--model", "ListNet", "--k", "5",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == 1 + len(ListNetModel.grid()["penalty"])
    assert repr(load_ranker(folder / "known").loss) == repr(repr(ListNet(k=5)))
    rounds = podium("tune", "blank.txt", "m", "--validation", "blank.txt", "--model", "RankBoost")
    assert b"Use podium train" in rounds.stderr
