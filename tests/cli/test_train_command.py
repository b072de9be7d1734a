import json
from pathlib import Path

import numpy as np
import pytest

from podium.data import read_run, write_letor, write_shards
from podium.rankers import load_ranker
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
