"""The audit of a model: agreement, the alternative annotator test, biases, plans and sheets."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from podium.cli.audit import _votes
from podium.data import Candidate, CandidateList, write_jsonl
from podium.errors import ArgumentError, DataError
from podium.judging import AnswerLog, Grade, Outcome, Session, SessionFile, Verdict
from podium.judging.agreement import Ratings
from podium.judging.agreement.coefficients import cluster_interval, cohen_kappa, krippendorff_alpha
from podium.judging.auditing.alt_test import alt_test
from podium.judging.auditing.audit import audit
from podium.judging.auditing.plan import plan_audit
from podium.judging.auditing.report import audit_page
from podium.judging.auditing.sample import AuditSample, HumanLabels, human_labels
from podium.judging.auditing.sheet import draw_units, read_sheet, write_sheet
from podium.judging.models.answer_log import ModelAnswer
from podium.judging.models.rubric import read_rubric, rubric_text
from tests.cli.run_podium import fail, succeed

PEOPLE = ("ann", "bob", "cem")


def grade_answer(query, item, label, *, repeat=0, length=100, probabilities=None):
    question = f"{query}-{item}-{repeat}"
    return ModelAnswer(
        question, "tiny", "grades/1", "h", query, (item,), str(label), repeat=repeat,
        lengths=(length,), probabilities=probabilities,
    )  # fmt: skip


def pair_answer(query, first, second, label, *, repeat=0, lengths=(100, 100)):
    question = f"{query}-{first}-{second}-{repeat}"
    return ModelAnswer(
        question, "tiny", "pairs/1", "h", query, (first, second), label, repeat=repeat,
        lengths=lengths,
    )  # fmt: skip


def noisy(random, truth, share):
    """Labels that are the truth, or with some probability any of four."""
    wrong = random.random(len(truth)) < share
    return np.where(wrong, random.integers(0, 4, len(truth)), truth).astype(float)


def graded_sample(units=120, noise=0.3, model_noise=0.3, seed=0):
    random = np.random.default_rng(seed)
    truth = random.integers(0, 4, units)
    ids = [(f"q{n % 40}", f"d{n}") for n in range(units)]
    votes = {name: dict(zip(ids, noisy(random, truth, noise), strict=True)) for name in PEOPLE}
    labels = noisy(random, truth, model_noise).astype(int)
    answers = [grade_answer(*unit, label) for unit, label in zip(ids, labels, strict=True)]
    return answers, votes


def test_alt_test_is_that_of_the_paper():
    random = np.random.default_rng(1)
    truth = random.integers(0, 4, 90)
    votes = np.column_stack([noisy(random, truth, 0.3) for _ in range(5)])
    votes[random.random(votes.shape) < 0.2] = np.nan
    values = noisy(random, truth, 0.25)
    for graded in (False, True):
        result = alt_test(values, votes, epsilon=0.1, graded=graded)
        p_values, ahead = [], []
        for person in range(5):
            model_indicators, person_indicators = [], []
            for unit in range(90):
                others = [
                    votes[unit, each]
                    for each in range(5)
                    if each != person and not math.isnan(votes[unit, each])
                ]
                if math.isnan(votes[unit, person]) or not others:
                    continue

                def score(value, others=others, graded=graded):
                    if graded:
                        return -math.sqrt(np.mean([(value - each) ** 2 for each in others]))
                    return np.mean([value == each for each in others])

                model, own = score(values[unit]), score(votes[unit, person])
                model_indicators.append(model >= own)
                person_indicators.append(own >= model)
            difference = np.subtract(person_indicators, model_indicators, dtype=float)
            p_values.append(stats.ttest_1samp(difference, 0.1, alternative="less").pvalue)
            ahead.append(np.mean(model_indicators))
        assert [test.p_value for test in result.tests] == pytest.approx(p_values)
        harmonic = sum(1 / rank for rank in range(1, 6))
        ranked = sorted(p_values)
        last = max([r for r in range(1, 6) if ranked[r - 1] <= r / 5 * 0.05 / harmonic], default=0)
        assert result.winning_rate == last / 5
        assert result.advantage == pytest.approx(np.mean(ahead))


def test_a_copy_wins_and_a_guess_does_not():
    random = np.random.default_rng(2)
    truth = random.integers(0, 2, 100).astype(float)
    votes = np.column_stack([np.where(random.random(100) < 0.1, 1 - truth, truth) for _ in "abc"])
    assert alt_test(truth, votes).winning_rate == 1.0
    guess = alt_test(random.integers(0, 2, 100).astype(float), votes)
    assert (guess.winning_rate, guess.passed) == (0.0, False)


def test_alt_test_needs_people_and_units():
    same = np.ones((29, 3))
    assert alt_test(np.ones(29), same) is None
    assert alt_test(np.ones(30), np.ones((30, 2))) is None
    assert alt_test(np.ones(30), np.ones((30, 3))).winning_rate == 1.0  # no variance at all
    assert alt_test(np.zeros(30), np.ones((30, 3))).winning_rate == 0.0
    with pytest.raises(ArgumentError, match="epsilon is 2"):
        alt_test(np.ones(30), np.ones((30, 3)), epsilon=2)


def binary_votes(random, rights, units, per_query, correlation):
    """Answers that are right so often; any two units of a query correlate so much."""
    queries = np.arange(units) // per_query
    alike = random.random((queries[-1] + 1, len(rights)))[queries]
    own = random.random((units, len(rights)))
    drawn = np.where(random.random((units, 1)) < math.sqrt(correlation), alike, own)
    truth = random.integers(0, 2, (units, 1))
    return np.where(drawn < rights, truth, 1 - truth).astype(float), queries


def share_passed(units, per_query, correlation, model, repeats=200):
    """How often a model passes that is right so often, where people are in 82 of 100."""
    random = np.random.default_rng(units)
    passed = 0
    for _ in range(repeats):
        votes, queries = binary_votes(
            random, [model, 0.82, 0.82, 0.82], units, per_query, correlation
        )
        passed += alt_test(votes[:, 0], votes[:, 1:], clusters=queries).passed
    return passed / repeats


def test_units_of_one_query_are_alike_to_the_alt_test():
    random = np.random.default_rng(3)
    votes, queries = binary_votes(random, [0.7, 0.8, 0.8, 0.8], 60, 4, 0.5)
    queries[:3] = 1  # of several sizes
    result = alt_test(votes[:, 0], votes[:, 1:], clusters=queries)
    for person, test in enumerate(result.tests, 1):
        others = [each for each in (1, 2, 3) if each != person]
        near = np.array(
            [(votes[:, [each]] == votes[:, others]).mean(axis=1) for each in (0, person)]
        )
        behind = (near[1] >= near[0]).astype(float) - (near[0] >= near[1])
        without = np.array([behind[queries != query].mean() for query in np.unique(queries)])
        variance = (len(without) - 1) / len(without) * ((without - behind.mean()) ** 2).sum()
        sizes = np.bincount(queries)
        freedom = sizes.sum() ** 2 / (sizes**2).sum() - 1
        expected = stats.t.cdf((behind.mean() - 0.15) / math.sqrt(variance), freedom)
        if behind.mean() < 0.15:
            unseen = (0.85 / (1 - behind.mean())) ** (freedom + 1)
            assert test.unseen == pytest.approx(unseen)
            expected = max(expected, unseen)
        assert test.p_value == pytest.approx(expected)


def test_a_model_at_the_margin_seldom_passes():
    # The others agree and are right in .82² of the units, and wrong in .18².
    margin = 0.82 - 0.15 / (0.82**2 - 0.18**2)
    assert share_passed(300, 30, 0.5, margin) <= 0.06 + 3 * math.sqrt(0.06 * 0.94 / 200)


def fails_in_some_queries(random, queries, per_query, share):
    """A model that is wrong in all units of a share of queries, and people who are seldom wrong."""
    query_of = np.repeat(np.arange(queries), per_query)
    truth = random.integers(0, 2, len(query_of))
    people = random.random((len(query_of), 3)) < 0.97
    model = (random.random(queries) >= share)[query_of]
    right = np.column_stack([model, people])
    return np.where(right, truth[:, None], 1 - truth[:, None]).astype(float), query_of


def test_a_model_that_fails_in_queries_that_few_audits_have_seldom_passes():
    random = np.random.default_rng(6)
    # The others agree and are right in 0.97² of the units, wrong in 0.03².
    lead = 0.97**2 - 0.03**2
    gap = 0.97 * lead, -0.03 * lead  # where it is wrong, and where it is right
    share = (0.15 - gap[1]) / (gap[0] - gap[1])
    passed = 0
    for _ in range(200):
        votes, queries = fails_in_some_queries(random, 12, 10, share)
        passed += alt_test(votes[:, 0], votes[:, 1:], clusters=queries).passed
    assert passed <= 200 * 0.06

    votes, queries = fails_in_some_queries(random, 12, 10, 0.0)
    few = alt_test(votes[:, 0], votes[:, 1:], clusters=queries)
    assert not few.passed
    assert all(test.p_value == test.unseen > 0.03 for test in few.tests)
    more, queries = fails_in_some_queries(random, few.queries_needed, 10, 0.0)
    enough = alt_test(more[:, 0], more[:, 1:], clusters=queries)
    assert (enough.passed, enough.queries_needed) == (True, None)


@pytest.mark.parametrize("per_query", [1, 5])
def test_a_plan_has_the_power_that_it_promises(per_query):
    plan = plan_audit(agreement=0.82**2 + 0.18**2, per_query=per_query, correlation=0.3)
    units = -(-plan.for_test // per_query) * per_query
    power = share_passed(units, per_query, 0.3, 0.82)
    assert power == pytest.approx(0.8, abs=0.05 + 3 * math.sqrt(0.8 * 0.2 / 200))


def test_few_queries_have_no_intervals_and_no_verdict():
    random = np.random.default_rng(4)
    for queries in (9, 10, 40):
        votes, query_of = binary_votes(random, [0.9, 0.9, 0.9, 0.9], 10 * queries, 10, 0.0)
        ids = [(f"q{query}", f"d{unit}") for unit, query in enumerate(query_of)]
        answers = [
            grade_answer(*unit, int(value)) for unit, value in zip(ids, votes[:, 0], strict=True)
        ]
        people: dict[str, dict[tuple[str, ...], float]] = {
            name: dict(zip(ids, votes[:, column].tolist(), strict=True))
            for column, name in enumerate(PEOPLE, 1)
        }
        result = audit(answers, people, draws=50)
        few = queries < 10
        assert math.isnan(result.with_people.low) == few
        assert (result.test is None) == few
        assert (result.conclusion.decision == "undecided") == few
        reasons = " ".join(result.conclusion.reasons)
        assert ("units of 10 queries" in reasons) == few
        assert ("the queries are too few to show more" in reasons) == (queries == 10)


def test_intervals_hold_with_few_queries():
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(150):
        values = np.repeat(random.random(10) < 0.5, 8) * 0.5 + random.random(80) * 0.5
        ends = cluster_interval(
            lambda units, values=values: float(values[units].mean()), np.arange(80) // 8, draws=60
        )
        covered += ends.low <= 0.5 <= ends.high
    assert covered / 150 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 150)


def test_figures_are_those_of_the_coefficients():
    answers, votes = graded_sample()
    result = audit(answers, votes, draws=50)
    units = [(answer.query_id, *answer.items) for answer in answers]
    model = np.array([float(answer.label) for answer in answers])
    table = np.array([[votes[name][unit] for name in PEOPLE] for unit in units])
    assert result.with_people.value == pytest.approx(
        cohen_kappa(np.repeat(model, 3), table.ravel())
    )
    one, other = zip(*[(a, b) for a in range(3) for b in range(3) if a != b], strict=True)
    assert result.between_people.value == pytest.approx(
        cohen_kappa(table[:, one].ravel(), table[:, other].ravel())
    )
    assert result.agreement.value == pytest.approx((table == model[:, None]).mean())
    assert result.alpha.value == krippendorff_alpha(Ratings.from_table(table), "ordinal")
    everyone = Ratings.from_table(np.column_stack([table, model]))
    assert result.alpha_with_model.value == krippendorff_alpha(everyone, "ordinal")


def paired_sample(names):
    """Pairs whose first document is the better one, but for noise, by what the two are called."""
    random = np.random.default_rng(3)
    answers, votes = [], {name: {} for name in PEOPLE}
    for number in range(80):
        better, worse = names(number)
        said = [better if right else worse for right in random.random(4) < 0.8]
        first, second = sorted((better, worse))
        query = f"q{number % 8}"
        for shown in ((first, second), (second, first)):
            label = "A" if shown[0] == said[3] else "B"
            answers.append(pair_answer(query, *shown, label))
        for person, choice in zip(PEOPLE, said[:3], strict=True):
            votes[person][query, first, second] = 1.0 if choice == first else -1.0
    return answers, votes


def test_agreement_on_pairs_does_not_depend_on_the_names_of_documents():
    """Were a pair seen from one side only, good documents called a... would make kappa 0."""
    good_first = audit(*paired_sample(lambda n: (f"a{n:02}", f"z{n:02}")), draws=20)
    mixed = audit(
        *paired_sample(lambda n: (f"a{n:02}", f"z{n:02}")[:: 1 if n % 2 else -1]), draws=20
    )
    for name in ("with_people", "between_people", "alpha", "alpha_with_model", "agreement"):
        assert getattr(good_first, name).value == pytest.approx(getattr(mixed, name).value)
    # Without ties and with both sides counted, chance is one half.
    assert good_first.with_people.value == pytest.approx(2 * good_first.agreement.value - 1)


def test_intervals_resample_queries():
    answers, votes = graded_sample(units=120)
    wide = audit(answers, votes, draws=300).agreement
    # The same votes ten times over, in the same queries, are no more evidence.
    copies = [
        grade_answer(answer.query_id, f"{answer.items[0]}-{n}", answer.label)
        for answer in answers
        for n in range(10)
    ]
    many: HumanLabels = {
        name: {(q, f"{d}-{n}"): value for (q, d), value in each.items() for n in range(10)}
        for name, each in votes.items()
    }
    narrow = audit(copies, many, draws=300).agreement
    assert narrow.value == pytest.approx(wide.value)
    assert narrow.high - narrow.low == pytest.approx(wide.high - wide.low, rel=0.15)
    single = audit([grade_answer("q", "d", 1)], {"ann": {("q", "d"): 1.0}}).agreement
    assert (single.value, math.isnan(single.low)) == (1.0, True)


def test_pairs_in_both_orders():
    answers, votes = [], {"ann": {}}
    for number in range(40):
        query, first, second = f"q{number}", "a", "b"
        # In a quarter of the pairs, the first wins in either order.
        backward = "A" if number % 4 == 0 else "B"
        answers += [
            pair_answer(query, first, second, "A"), pair_answer(query, second, first, backward)
        ]  # fmt: skip
        votes["ann"][query, first, second] = 1.0
    result = audit(answers, votes, draws=200)
    assert result.position_bias.value == pytest.approx(0.25)
    assert result.position_bias.low > 0
    assert result.order_consistency.value == 0.75
    assert result.agreement.value == 0.75  # contradictory answers are ties
    assert any(line.startswith("position bias 0.25") for line in result.conclusion.warnings)


def test_a_model_that_likes_long_documents():
    random = np.random.default_rng(3)
    answers, votes = [], {"ann": {}}
    for number in range(60):
        length = int(random.integers(50, 5000))
        answers.append(grade_answer(f"q{number}", "d", int(length > 1500), length=length))
        votes["ann"][f"q{number}", "d"] = float(random.integers(0, 2))
    bias = audit(answers, votes, draws=200).length_bias
    excess = [float(a.label) - votes["ann"][a.query_id, "d"] for a in answers]
    lengths = [a.lengths[0] for a in answers]
    assert bias.value == pytest.approx(stats.spearmanr(lengths, excess).statistic)
    assert bias.low > 0.2
    # A pair's longer document, in whichever order the pair was asked.
    pairs, votes = [], {"ann": {}}
    for number in range(40):
        longer_first = bool(number % 2)
        lengths = (900, 100) if longer_first else (100, 900)
        pairs.append(
            pair_answer(f"q{number}", "b", "a", "A" if longer_first else "B", lengths=lengths)
        )
        votes["ann"][f"q{number}", "a", "b"] = 0.0
    assert audit(pairs, votes, draws=50).length_bias.value == pytest.approx(1.0)


def test_repeated_questions():
    answers, votes = [], {"ann": {}}
    for number in range(20):
        labels = [1, 1, 2 if number < 5 else 1]
        answers += [grade_answer(f"q{number}", "d", x, repeat=n) for n, x in enumerate(labels)]
        votes["ann"][f"q{number}", "d"] = 1.0
    result = audit(answers, votes, draws=50)
    assert result.self_consistency.value == 35 / 40
    assert result.agreement.value == 1.0  # the most frequent answer counts


def test_calibration():
    answers, votes = [], {name: {} for name in PEOPLE}
    for number in range(40):
        sure = 0.95 if number % 2 else 0.55
        shares = {"1": sure, "0": 1 - sure}
        answers.append(grade_answer(f"q{number}", "d", 1, probabilities=shares))
        for person, name in enumerate(PEOPLE):
            votes[name][f"q{number}", "d"] = float(person == 0 or number % 2 == 0)
    result = audit(answers, votes, draws=50)
    # All agree where it is unsure, and one of three where it is sure.
    assert result.calibration_error.value == pytest.approx((0.45 + (0.95 - 1 / 3)) / 2)
    assert result.calibration == (
        (pytest.approx(0.55), 1.0, 20), (pytest.approx(0.95), pytest.approx(1 / 3), 20)
    )  # fmt: skip


def test_groups_of_queries():
    answers, votes = graded_sample(units=120)
    groups = {f"q{n}": "short" if n < 20 else "long" for n in range(39)}
    result = audit(answers, votes, groups=groups, draws=50)
    assert {name: group.units for name, group in result.groups.items()} == {"long": 57, "short": 60}
    chosen = [answer for answer in answers if groups.get(answer.query_id) == "short"]
    alone = audit(chosen, votes, draws=50)
    assert result.groups["short"].with_people.value == alone.with_people.value
    assert result.groups["short"].between_people.value == alone.between_people.value


def test_conclusions():
    assert (
        audit(*graded_sample(noise=0.3, model_noise=0.2), draws=200).conclusion.decision
        == "replace"
    )
    assist = audit(*graded_sample(noise=0.1, model_noise=0.5), draws=200).conclusion
    assert assist.decision == "assist"
    assert assist.reasons[1].startswith("the alternative annotator test: it wins against 0 of 3")
    assert (
        audit(*graded_sample(noise=0.1, model_noise=1.0), draws=200).conclusion.decision == "reject"
    )
    nobody = audit(*graded_sample(noise=1.0, model_noise=0.0), draws=200).conclusion
    assert nobody.decision == "undecided"
    assert "improve the guidelines" in nobody.reasons[1]
    few = audit(*graded_sample(units=25), draws=200).conclusion
    assert few.decision == "undecided"
    assert "the test needs 3 people with 30 units" in few.reasons[1]


def test_what_cannot_be_audited():
    answers, votes = graded_sample(units=30)
    with pytest.raises(DataError, match="nothing in common"):
        audit(answers, {"ann": {("x", "y"): 1.0}})
    other = ModelAnswer("z", "big", "grades/1", "h", "q", ("d",), "1")
    with pytest.raises(ArgumentError, match="several models or rubrics: big with grades/1"):
        audit([*answers, other], votes)
    assert audit([*answers, other], votes, model="tiny", draws=5).sample.model == "tiny"
    newer = ModelAnswer("z", "tiny", "grades/2", "k", "q0", ("d0",), "1")
    for name in ("grades/2", "k"):
        assert audit([*answers, newer], votes, rubric=name, draws=5).sample.units == (("q0", "d0"),)
    assert len(draw_units([*answers, newer], 30, rubric="grades/1")) == 30
    with pytest.raises(ArgumentError, match="several models or rubrics"):
        draw_units([*answers, newer], 30, rubric="grades")
    with pytest.raises(ArgumentError, match="no answer is by 'none'"):
        audit(answers, votes, model="none")
    unusable = ModelAnswer("u", "tiny", "grades/1", "h", "q0", ("d0",), "", problem="refused")
    sample = AuditSample.of([unusable, *answers[1:]], votes)
    assert ("q0", "d0") not in sample.units


@pytest.mark.parametrize(("agreement", "epsilon"), [(0.8, 0.15), (0.6, 0.2)])
def test_a_planned_sample_has_its_power_and_a_quarter_of_it_has_not(agreement, epsilon):
    plan = plan_audit(people=3, agreement=agreement, epsilon=epsilon, width=0.3, values=4)
    assert plan.units == max(plan.for_test, 30)
    # Two of four labels that are right or a guess agree on (1 - s)^2 + (1 - (1 - s)^2) / 4.
    noise = 1 - math.sqrt((agreement - 0.25) / 0.75)
    random = np.random.default_rng(4)

    def power(units, runs=120):
        passed = 0
        for _ in range(runs):
            truth = random.integers(0, 4, units)
            votes = np.column_stack([noisy(random, truth, noise) for _ in range(3)])
            model = noisy(random, truth, noise)
            passed += alt_test(model, votes, epsilon=epsilon, least_units=2).passed
        return passed / runs

    assert power(plan.units) > 0.75  # 0.8 was asked for
    assert power(plan.units // 4) < 0.65


def test_plans_by_their_formulas():
    plan = plan_audit(people=4, agreement=0.7, epsilon=0.1, width=0.05, per_query=5)
    level = 0.05 * 2 / 4 / (1 + 1 / 2 + 1 / 3 + 1 / 4)
    z = stats.norm.ppf
    design = 1 + 4 * 0.1
    t = stats.t.ppf(1 - level, plan.for_test / 5 - 1)
    variance = 0.3  # three others are never divided equally
    assert plan.for_test == pytest.approx((t + z(0.8)) ** 2 * variance / 0.01 * design, rel=0.01)
    right = (1 + math.sqrt(0.4)) / 2  # two agree on right² + (1 - right)² = 0.7
    five, graded = (
        plan_audit(people=5, agreement=0.7, values=values).for_test for values in (2, 4)
    )
    assert five / graded == pytest.approx(1 - 6 * (right * (1 - right)) ** 2, rel=0.02)
    assert plan.for_interval == math.ceil((z(0.975) / 0.05) ** 2 * 0.21 * design)
    assert (plan.units, plan.judgments) == (plan.for_interval, 4 * plan.for_interval)
    for wrong in ({"people": 2}, {"power": 1.0}, {"width": 0.0}, {"per_query": 0.5}, {"values": 1}):
        with pytest.raises(ArgumentError):
            plan_audit(**wrong)


def test_votes_in_logs():
    log = [
        Verdict("b", "a", Outcome.LEFT, "ann"),
        Verdict("a", "b", Outcome.TIE, "tiny"),
        Grade("a", 3, "bob"),
    ]
    assert human_labels({"q": log}, without="tiny") == {
        "ann": {("q", "a", "b"): -1.0}, "bob": {("q", "a"): 3.0}
    }  # fmt: skip


def test_a_sheet_is_blind_and_comes_back(tmp_path):
    answers = [
        answer
        for n in range(40)
        for answer in (
            pair_answer(f"q{n}", "a", "=b", "A"), pair_answer(f"q{n}", "=b", "a", "B")
        )
    ]  # fmt: skip
    units = draw_units(answers, 30, random_state=5)
    assert len(set(units)) == 30
    assert units != draw_units(answers, 30, random_state=6)
    texts = {f"q{n}": {"a": "first, text", "=b": "=HYPERLINK(1)\nnext"} for n in range(40)}
    queries = {f"q{n}": f"-query {n}" for n in range(40)}
    path = tmp_path / "ann.csv"
    write_sheet(units, texts, queries, path, random_state=5)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["query_id", "query", "a", "a_text", "b", "b_text", "answer"]
    assert {row["answer"] for row in rows} == {""}
    # Nothing that a spreadsheet would run.
    assert {row["a"] for row in rows} == {"a", "'=b"}
    assert {row["query"][:2] for row in rows} == {"'-"}
    assert 5 < sum(row["a"] == "a" for row in rows) < 25  # sides are drawn
    for row in rows[:20]:
        row["answer"] = "a" if row["a"] == "a" else "B"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    votes = read_sheet(path)
    # "=b" comes before "a": that "a" is better is -1.
    assert votes == {(row["query_id"], "=b", "a"): -1.0 for row in rows[:20]}
    with pytest.raises(ArgumentError, match="a sample of 41 of 40 units"):
        draw_units(answers, 41)
    with pytest.raises(DataError, match="has no text"):
        write_sheet(units, {}, queries, path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("query_id,document\nq,d\n", "no column 'answer'"),
        ("query_id,document,answer\nq,d,7\n", "'7' is not a valid grade"),
        ("query_id,a,b,answer\nq,d,e,C\n", "'C' is not a valid answer"),
        ("query_id,document,answer\nq,d,1\nq,d,2\n", "q d has two answers"),
        ("", "no column"),
        ("query_id,document,answer\nq,d\n", None),
        ("query_id,document,answer\nq," + "d" * 200_000 + ",1\n", "field larger than"),
    ],
)
def test_sheets_that_cannot_be_read(tmp_path, content, problem):
    csv.field_size_limit(131_072)  # Python's own: it is the process's, and imports raise it
    path = tmp_path / "ann.csv"
    path.write_text(content or "x\n1\n")
    if problem is None:
        assert read_sheet(path) == {}
        return
    with pytest.raises(DataError, match=rf"ann\.csv.*{problem}"):
        read_sheet(path)


def test_sheets_as_spreadsheets_write_them(tmp_path):
    path = tmp_path / "ann.csv"
    path.write_bytes("\ufeffquery_id;a;b;answer\r\nq;x;y;tie\r\n".encode())
    assert read_sheet(path) == {("q", "x", "y"): 0.0}
    path.write_text('query_id\tdocument\tanswer\nq\t"d\t1"\t 3\n')
    assert read_sheet(path) == {("q", "d\t1"): 3.0}
    write_sheet([("q", "d")], {"q": {"d": "x" * 40_000}}, {}, path)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        [row] = csv.DictReader(stream)
    assert row["text"] == "x" * 32_000 + " …"
    with pytest.raises(DataError, match="No such file"):
        write_sheet([("q", "d")], {"q": {"d": "x"}}, {}, tmp_path / "none" / "s.csv")


def test_the_page_escapes_what_it_shows():
    answers, votes = graded_sample()
    hostile = {f"<script>{name}": each for name, each in votes.items()}
    page = audit_page(audit(answers, hostile, groups={"q1": "<b>"}, draws=20))
    assert "&lt;script&gt;ann" in page
    assert "<script>" not in page
    assert "<td>&lt;b&gt;</td>" in page
    assert "May tiny judge?" in page
    assert "Intervals are of 95 % and" in page
    wide = audit(answers, votes, draws=20, confidence=0.995)
    assert "Intervals are of 99.5 % and" in audit_page(wide)


@pytest.fixture
def audited(tmp_path):
    """A log of answers, the candidates, and a folder."""
    answers, votes = graded_sample(units=80, noise=0.2, model_noise=0.2)
    with AnswerLog(tmp_path / "answers.jsonl") as log:
        for answer in answers:
            log.add(answer)
    lists = [
        CandidateList(
            f"q{n}",
            f"query {n}",
            tuple(
                Candidate(a.items[0], html="<p><b>Text</b></p>")
                for a in answers
                if a.query_id == f"q{n}"
            ),
        )
        for n in range(40)
    ]
    write_jsonl(lists, tmp_path / "candidates.jsonl")
    return tmp_path, votes


def test_the_command_from_plan_to_page(audited):
    folder, votes = audited
    plan = json.loads(succeed("audit", "--plan", "--agreement", 0.7, "--json"))
    assert plan["units"] == plan_audit(agreement=0.7).units
    assert "judgments" in succeed("audit", "--plan")
    succeed(
        "audit", folder / "answers.jsonl", "--sample", 60, "--to", folder / "sheet.csv",
        "--from", folder / "candidates.jsonl",
    )  # fmt: skip
    with (folder / "sheet.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 60
    assert {row["text"] for row in rows} == {"Text"}
    for name in PEOPLE[:2]:
        with (folder / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            for row in rows:
                grade = votes[name][row["query_id"], row["document"]]
                writer.writerow(row | {"answer": int(grade)})
    # The third person graded in sessions, where the model's own grades are not a person's.
    (folder / "graded").mkdir()
    for query in {row["query_id"] for row in rows}:
        mine = [row["document"] for row in rows if row["query_id"] == query]
        entries = [Grade(d, int(votes["cem"][query, d]), "cem") for d in mine]
        session = Session(mine, 1, log=[*entries, Grade(mine[0], 0, "tiny")])
        about = {"query_id": query}
        SessionFile.create(folder / "graded" / f"{query}.session", session, about).close()
    sources = [folder / "ann.csv", folder / "bob.csv", folder / "graded"]
    (folder / "groups.tsv").write_text("".join(f"q{n}\teven\n" for n in range(0, 40, 2)))
    command = (
        "audit", folder / "answers.jsonl", *sources, "--groups", folder / "groups.tsv",
        "--agreement", 0.9, "--width", 0.2,
    )  # fmt: skip
    result = json.loads(succeed(*command, "--json", "--output", folder / "audit.html"))
    assert (result["units"], result["people"]) == (60, ["ann", "bob", "cem"])
    assert result["decision"] == "replace"
    assert [test["person"] for test in result["test"]["tests"]] == list(PEOPLE)
    assert [test["units"] for test in result["test"]["tests"]] == [60, 60, 60]
    assert "May tiny judge?" in (folder / "audit.html").read_text()
    printed = succeed(*command)
    assert "Yes: the model may judge documents of this kind" in printed
    assert "kappa, even" in printed
    plan = plan_audit()
    assert f"Not decided: too few units, 60 of {plan.units}.\n" in succeed(*command[:-4])


def test_units_that_one_person_judged_do_not_count_towards_the_plan():
    answers, votes = graded_sample(units=100)
    assert audit(answers, votes, draws=20).conclusion.decision == "replace"
    for name in PEOPLE[1:]:
        votes[name] = dict(list(votes[name].items())[:60])
    few = audit(answers, votes, draws=20).conclusion
    assert few.sentence == f"Not decided: too few units, 60 of {plan_audit().units}."
    assert few.decision == "undecided"


def test_grades_that_the_rubric_does_not_have(tmp_path):
    with AnswerLog(tmp_path / "answers.jsonl") as log:
        log.add(replace(grade_answer("q", "d", 3), rubric_hash=read_rubric("grades").hash))
    sheet, qrels, session = (tmp_path / name for name in ("ann.csv", "bob.qrels", "cem.session"))
    sheet.write_text("query_id,document,answer\nq,a,3\nq,d,4\n")
    qrels.write_text("q 0 d 4\n")
    about = {"query_id": "q"}
    SessionFile.create(session, Session(["d"], 1, log=[Grade("d", 4, "cem")]), about).close()
    command = ("audit", tmp_path / "answers.jsonl")
    line = fail(*command, sheet)
    assert "ann.csv, line 3: '4' is not a valid grade. Write 0, 1, 2, 3." in line
    for person, path in (("bob", qrels), ("cem", session)):
        line = fail(*command, path)
        assert f"{person}'s grade of document 'd' for query 'q' is 4, and the rubric has 0" in line
    # A rubric of one's own is known by its file.
    own = tmp_path / "own.toml"
    own.write_text(rubric_text("grades").replace("version = 1", "version = 9"))
    with AnswerLog(tmp_path / "own.jsonl") as log:
        log.add(replace(grade_answer("q", "d", 3), rubric_hash=read_rubric(own).hash))
    assert "Not decided" in succeed("audit", tmp_path / "own.jsonl", sheet)
    assert "line 3" in fail("audit", tmp_path / "own.jsonl", sheet, "--rubric", own)


def test_the_command_says_what_is_missing(audited):
    folder, _ = audited
    log = folder / "answers.jsonl"
    assert "no answers to audit" in fail("audit")
    assert "no people to hold" in fail("audit", log)
    assert "--sample has nowhere to go" in fail("audit", log, "--sample", 3)
    assert "needs the texts" in fail("audit", log, "--sample", 3, "--to", folder / "s.csv")
    (folder / "ann.csv").write_text("query_id,document,answer\n")
    (folder / "x").mkdir()
    (folder / "x" / "ann.csv").write_text("query_id,document,answer\n")
    assert "two sheets are by 'ann'" in fail("audit", log, folder / "ann.csv", folder / "x/ann.csv")
    (folder / "groups.tsv").write_text("q1\n")
    assert "line 1: is not a query id, a tab" in fail(
        "audit", log, folder / "ann.csv", "--groups", folder / "groups.tsv"
    )


def test_what_one_person_undoes_is_their_own(tmp_path):
    about = {"query_id": "q"}
    with SessionFile.create(tmp_path / "ann.session", Session(["a", "b"], k=1), about) as ann:
        ann.add(Verdict("a", "b", Outcome.LEFT, "ann"))
    with SessionFile.create(tmp_path / "bob.session", Session(["a", "b"], k=1), about) as bob:
        bob.add(Verdict("a", "b", Outcome.RIGHT, "bob"))
        bob.undo("bob")
    files = [str(tmp_path / f"{name}.session") for name in ("ann", "bob")]
    assert _votes(files, "model") == {"ann": {("q", "a", "b"): 1.0}}


def test_people_without_a_name_count():
    log = {"q": [Grade("a", 2), Grade("b", 1, "model")]}
    assert human_labels(log) == {"": {("q", "a"): 2.0}, "model": {("q", "b"): 1.0}}
    assert human_labels(log, without="model") == {"": {("q", "a"): 2.0}}
