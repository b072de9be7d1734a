"""Preferences on the command line: labels to train with, a top k to convert to, measures."""

import json
from pathlib import Path

import numpy as np
import pytest

from podium.data import Judgments, read_pairs, read_qrels, read_run
from podium.data.preferences import Preferences
from podium.judging import Outcome, Session, Verdict, preference_judgments
from podium.measures import evaluate
from podium.rankers import LinearRanker, load_ranker
from tests.cli.run_podium import podium, succeed
from tests.data.shared_files import shared


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four documents in each of five queries, judged in the order d3, d2, d1, d0, some twice."""
    monkeypatch.chdir(tmp_path)
    pairs, features = [], []
    for query in range(5):
        for better in range(4):
            features.append(f"0 qid:q{query} 1:{better + query / 10} 2:1 #docid = d{better}\n")
            for worse in range(better):
                preferred = [f"q{query} d{better} d{worse} d{better}\n"]
                pairs += preferred * (1 + (better == 3))
    (tmp_path / "human.pref").write_text("".join(pairs))
    (tmp_path / "features.txt").write_text("".join(features))
    return tmp_path


def test_labels_to_train_with(folder: Path) -> None:
    done = podium(
        "train", "features.txt", "model", "-s", "linear", "--labels", "human.pref", "--top-k", 2
    )
    assert done.returncode == 0, done.stderr
    message = " ".join(done.stderr.decode().split())
    assert "training labels human.pref: 20 of 20 documents" in message
    values = [[each + query / 10, 1] for query in range(5) for each in range(4)]
    ranker = LinearRanker().fit(values, [0, 0, 1, 2] * 5, group=[4] * 5)
    np.testing.assert_allclose(load_ranker(folder / "model").coef_, ranker.coef_, rtol=1e-5)


def test_conversion_to_a_top_k(folder: Path) -> None:
    succeed("convert", "human.pref", "top.qrels", "--top-k", 3)
    judgments = read_qrels(folder / "top.qrels")
    labels = dict(zip(judgments.document_ids.to_pylist(), judgments.labels.tolist(), strict=True))
    assert labels == {"d3": 3, "d2": 2, "d1": 1, "d0": 0}
    assert len(judgments) == 5


def test_measures_of_preferences(folder: Path) -> None:
    (folder / "good.run").write_text(
        "".join(f"q{query} Q0 d{each} 0 {each} good\n" for query in range(5) for each in range(4))
    )
    (folder / "half.run").write_text(
        "".join(f"q{query} Q0 d{each} 0 {each} half\n" for query in range(5) for each in (2, 3))
    )
    printed = json.loads(succeed("evaluate", "human.pref", "good.run", "half.run", "--json"))
    assert printed["good"]["means"] == {"ppref": 1.0, "rpref": 1.0}
    # d3 and d2 are above all others, and nothing is known of d1 and d0: 8 of 9 verdicts.
    assert printed["half"]["means"]["rpref"] == pytest.approx(8 / 9)
    report = json.loads(succeed("compare", "human.pref", "half.run", "good.run", "--json"))
    assert report["baseline"] == "half"


def test_estimates_are_those_of_sessions_with_all_verdicts() -> None:
    """Every verdict on a pair counts, whoever gave it."""
    verdicts = [1, -1, -1, 1]
    preferences = Preferences.from_columns(["q"] * 4, ["a", "a", "a", "c"], ["b"] * 4, verdicts)
    log = [
        Verdict("a", "b", Outcome.LEFT, assessor="1"),
        Verdict("a", "b", Outcome.RIGHT, assessor="2"),
        Verdict("a", "b", Outcome.RIGHT, assessor="3"),
        Verdict("c", "b", Outcome.LEFT, assessor="1"),
    ]
    expected = Session(["a", "c", "b"], 3, log=log).estimate(reliability=False)
    judgments = preference_judgments(preferences, 3)
    items = judgments.document_ids.to_pylist()
    assert judgments.labels.tolist() == expected.labels(items).tolist()
    assert expected.top == ("c", "b", "a")


def labels_of(judgments: Judgments) -> dict[tuple[str, str], float]:
    queries = np.repeat(judgments.query_ids.to_pylist(), np.diff(judgments.offsets))
    documents = judgments.document_ids.to_pylist()
    return dict(
        zip(zip(queries.tolist(), documents, strict=True), judgments.labels.tolist(), strict=True)
    )


def test_labels_depend_on_neither_the_order_of_lines_nor_the_seed() -> None:
    """Unless nothing separates documents, as a tie with the best and one between the next two."""
    random = np.random.default_rng(5)
    left, right = np.array([random.choice(12, 2, replace=False) for _ in range(70)]).T
    verdicts = np.where(random.random(70) < 0.8, 1, random.integers(-1, 1, 70))
    verdicts *= np.sign(right - left)  # d00 is the best
    names = np.array([f"d{number:02d}" for number in range(12)])
    one = Preferences.from_columns(["q"] * 70, names[left], names[right], verdicts)
    expected = labels_of(preference_judgments(one, 5))
    for seed in range(5):
        order = random.permutation(70)
        other = Preferences.from_columns(
            ["q"] * 70, names[left[order]], names[right[order]], verdicts[order]
        )
        assert labels_of(preference_judgments(other, 5, random_state=seed)) == expected
    twins = Preferences.from_columns(["q"] * 3, ["a", "a", "b"], ["b", "c", "c"], [1, 1, 0])
    with pytest.warns(
        UserWarning, match="nothing separates 2 documents in or at the top 2 of 1 of"
    ):
        labels = labels_of(preference_judgments(twins, 2))
    assert labels["q", "a"] == 2
    log = [Verdict("a", "b", Outcome.LEFT), Verdict("a", "c", Outcome.LEFT)]
    estimate = Session(["a", "b", "c"], 2, log=log).estimate()
    assert [set(level) for level in estimate.inseparable] == [{"b", "c"}]


@pytest.mark.filterwarnings("always:nothing separates")
def test_real_preferences(tmp_path: Path) -> None:
    source = shared("preferences/trec-dl21/human.pref")
    done = podium("convert", source, tmp_path / "top.qrels", "--top-k", 5)
    assert b"of 50 queries: the seed draws their order" in done.stderr
    judgments = read_qrels(tmp_path / "top.qrels")
    assert len(judgments) == len(read_pairs(source)) == 50
    for query in range(50):
        rows = slice(judgments.offsets[query], judgments.offsets[query + 1])
        assert sorted(judgments.labels[rows].tolist(), reverse=True)[:5] == [5, 4, 3, 2, 1]
    run = shared("trec/dl21-runs/NLE_P_v1.run.gz")
    printed = json.loads(succeed("evaluate", source, run, "-m", "ppref", "--json"))
    expected = evaluate("ppref", read_pairs(source), read_run(run)).means["ppref"]
    assert next(iter(printed.values()))["means"]["ppref"] == pytest.approx(expected)
