"""The commands with ``--cluster``: what they print and save is what one process gives."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks._raylets import Raylets
from podium.data import write_shards
from podium.measures import evaluate as evaluate_rows
from podium.rankers import LinearRanker, load_ranker
from tests.cli.run_podium import fail, podium
from tests.cluster.shards import cut, scored
from tests.rankers.made_up import made_up

pytestmark = [pytest.mark.slow, pytest.mark.long]


def done(*arguments: object) -> str:
    ended = podium(*arguments)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode()


def test_evaluate(raylets: Raylets, tmp_path: Path) -> None:
    raylets.replace_killed()
    data = scored(30)
    cut(data, tmp_path / "scored", 4)
    options = ("--measure", "nDCG@5", "--score-column", "clicks", "--json")
    url = f"file://{tmp_path}/scored"
    evaluation = json.loads(done("evaluate", url, *options, "--cluster", raylets.address))
    whole = evaluate_rows("nDCG@5", data, data.features[:, 1])
    (mean,) = whole.means.values()
    assert evaluation["scored"]["means"]["nDCG@5"] == pytest.approx(mean, abs=1e-9)


@pytest.mark.long
def test_train_and_tune(raylets: Raylets, tmp_path: Path) -> None:
    raylets.replace_killed()
    data, held_out = made_up(20, 10), made_up(10, 10, seed=1)
    write_shards(data, tmp_path / "train", shard_bytes=1000)
    write_shards(held_out, tmp_path / "valid")
    model = tmp_path / "model"
    kind = ("--loss", "ListNet()", "--scorer", "linear", "--measure", "nDCG@5")
    both, on = (tmp_path / "train", model, "--validation", tmp_path / "valid"), raylets.address
    done("train", *both, *kind, "--cluster", on)
    one = LinearRanker("ListNet()", measure="nDCG@5").fit(data, eval_set=held_out)
    np.testing.assert_allclose(load_ranker(model).predict(data), one.predict(data), atol=1e-5)
    table = tmp_path / "tune.parquet"
    choices = ("--try", "alpha=1e-4,1.0", "--results", table)
    printed = done("tune", *both, *kind, *choices, "--cluster", on)
    assert "alpha" in printed
    assert table.exists()
    assert "shard set" in fail("train", tmp_path, model, *kind, "--cluster", on)
