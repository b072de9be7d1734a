"""Models of LightGBM, XGBoost and CatBoost in the commands that take a saved ranker."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.run_podium import fail, podium, succeed

ROWS = np.random.default_rng(0).gamma(1.0, 2.0, (300, 4)).astype(np.float32)
GRADES = np.round(np.clip(ROWS[:, 0] - ROWS[:, 1], 0, 3)).astype(int)
GROUP = [10] * 30


def lightgbm_file() -> Any:
    import lightgbm

    data = lightgbm.Dataset(ROWS, GRADES, group=GROUP)
    model = lightgbm.train({"objective": "lambdarank", "verbosity": -1, "num_threads": 1}, data, 5)
    model.save_model("model.txt")
    return "model.txt", model.predict(ROWS, raw_score=True)


def xgboost_file(name: str) -> Any:
    import xgboost

    data = xgboost.DMatrix(ROWS, GRADES, group=GROUP)
    model = xgboost.train({"objective": "rank:ndcg", "nthread": 1}, data, 5)
    model.save_model(name)
    return name, model.predict(data, output_margin=True)


def catboost_model() -> Any:
    import catboost

    model = catboost.CatBoostRegressor(
        iterations=5, verbose=0, thread_count=1, allow_writing_files=False
    )
    return model.fit(ROWS, GRADES)


def catboost_file() -> Any:
    model = catboost_model()
    model.save_model("model.json", format="json")
    return "model.json", model.predict(ROWS)


FILES = {
    "LightGBM": lightgbm_file,
    "XGBoost JSON": lambda: xgboost_file("model.json"),
    "XGBoost UBJ": lambda: xgboost_file("model.ubj"),
    "CatBoost": catboost_file,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [
        f"{grade} qid:{row // 10} " + " ".join(f"{i + 1}:{value!r}" for i, value in enumerate(x))
        for row, (grade, x) in enumerate(zip(GRADES, ROWS.tolist(), strict=True))
    ]
    (tmp_path / "data.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize("library", FILES)
def test_commands_take_models_of_other_libraries(library, folder):
    model, expected = FILES[library]()
    path = "data.txt"
    scores = succeed("predict", model, path).split()
    np.testing.assert_allclose(np.array(scores, float), expected, atol=1e-6)
    importance = json.loads(succeed("importance", model, path, "--json", "--repeats", "2"))
    assert 0 < importance["value"] <= 1
    assert "ModelRanker" in succeed("card", model)
    # The scores are compared as one more feature.
    assert "0 of 5 features" in succeed("drift", path, path, "--ranker", model)
    assert "another library trained this model" in fail("explain", model, path, "--query", "0")
    done = podium("export", model, "--to", "vespa", "-o", "out", "--validation", path)
    assert done.returncode == 0, done.stderr
    measured = json.loads((folder / "out/manifest.json").read_text())["measure"]
    assert 0 < measured["nDCG@10"] <= 1


@pytest.mark.parametrize("command", [["predict"], ["importance"], ["explain"], ["card"]])
def test_models_that_are_not_read_say_how_to_save_them(command, folder):
    catboost_model().save_model("model.cbm")
    (folder / "model.pkl").write_bytes(pickle.dumps({}))
    for model, problem, hint in (
        ("model.cbm", "CatBoost's binary format", "format='json'"),
        ("model.pkl", "reading a pickle can run code", "save_model('model.txt')"),
    ):
        message = fail(*command, model, "data.txt")
        assert problem in message
        assert hint in message
