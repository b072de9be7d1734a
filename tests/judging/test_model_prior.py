"""A model beside people: its order as a prior, and its reliability."""

import pytest

from podium.data import Candidate, CandidateList, write_jsonl
from podium.judging import AnswerLog, Outcome, Session, SessionFile, Verdict
from podium.judging.auditing.sample import model_scores
from podium.judging.models.answer_log import ModelAnswer
from tests.cli.run_podium import fail, podium

ITEMS = [f"d{n}" for n in range(8)]


def answer(query, items, label, **more):
    question = f"{query} {items}"
    rubric = "grades/1" if len(items) == 1 else "pairs/1"
    return ModelAnswer(question, "tiny", rubric, "h", query, items, label, **more)


def test_scores_of_grades_and_pairs():
    shares = {"0": 0.5, "3": 0.5}
    grades = [answer("q", ("a",), "0", probabilities=shares), answer("q", ("b",), "1")]
    unusable = answer("q", ("c",), "", problem="refused")
    assert model_scores([*grades, unusable]) == {"q": {"a": 1.5, "b": 1.0}}
    pairs = [answer("p", ("a", "b"), "A"), answer("p", ("b", "a"), "B")]
    pairs += [answer("p", ("b", "c"), "A"), answer("p", ("c", "b"), "B")]
    scores = model_scores(pairs)["p"]
    assert sorted(scores, key=scores.get) == ["c", "b", "a"]
    assert scores["b"] == pytest.approx(0.0, abs=1e-6)


def verdicts(assessor, right):
    """Verdicts on all pairs: the larger number is better, or the smaller one."""
    return [
        Verdict(one, other, Outcome.RIGHT if right else Outcome.LEFT, assessor)
        for number, one in enumerate(ITEMS)
        for other in ITEMS[number + 1 :]
    ]


def test_a_model_that_people_contradict_weighs_less():
    log = [*verdicts("ann", True), *verdicts("bob", True), *verdicts("tiny", False)]
    session = Session(ITEMS, 3, log=log)
    reliability = session.reliability()
    assert list(reliability) == ["ann", "bob", "tiny"]
    assert reliability["ann"] == pytest.approx(reliability["bob"])
    assert reliability["tiny"] < 0 < 1 < reliability["ann"]
    assert session.estimate().top == ("d7", "d6", "d5")
    agreeing = Session(ITEMS, 3, log=[*verdicts("ann", True), *verdicts("tiny", True)])
    assert agreeing.reliability() == {"ann": pytest.approx(1.0), "tiny": pytest.approx(1.0)}
    assert Session(ITEMS, 3).reliability() == {}


def test_people_start_from_the_models_order(tmp_path):
    lists = [CandidateList("q1", "red", tuple(Candidate(item, text=item) for item in ITEMS))]
    write_jsonl(lists, tmp_path / "candidates.jsonl")
    with AnswerLog(tmp_path / "answers.jsonl") as log:
        for item in ITEMS[:7]:  # d7 was not judged
            grade = str(int(item[1]) // 2)
            shares = {grade: 0.9, "0" if grade != "0" else "1": 0.1}
            log.add(answer("q1", (item,), grade, probabilities=shares))
    session = tmp_path / "q1.session"
    done = podium(
        "judge", session, "--from", tmp_path / "candidates.jsonl",
        "--prior", tmp_path / "answers.jsonl", "--k", 3, "--assessor", "ann", stdin=b"q\n",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stored = SessionFile.read(session)
    assert stored.ordered
    assert stored.items == ("d6", "d4", "d5", "d2", "d3", "d0", "d1", "d7")
    write_jsonl([CandidateList("q2", "x", (Candidate("a", text="a"),))], tmp_path / "other.jsonl")
    assert "has no answer about query 'q2'" in fail(
        "judge", tmp_path / "q2.session", "--from", tmp_path / "other.jsonl",
        "--prior", tmp_path / "answers.jsonl",
    )  # fmt: skip
