"""Language models as assessors: faults of an endpoint, honest intervals, and what a model saves.

    python -m benchmarks.assessors [--quick]

An endpoint that fails 500 times while the client is killed; the coverage and the width of
prediction-powered intervals on TREC's Deep Learning track of 2021, where people's labels are known
for all queries and taken away from four in five; and how many judgments of people the order of a
model saves. The answers of real models come from ``python -m benchmarks._assessor_models``; where
they were not computed, the overlap of words judges in their place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks._assessor_data import KEPT, JudgedPassages, judged_passages
from benchmarks._assessor_faults import report_faults
from benchmarks._chat_endpoint import judge_by_overlap
from benchmarks._report import Report, wants_quick
from podium.data import Judgments
from podium.judging import Outcome, Session, Verdict
from podium.judging.agreement.coefficients import cohen_kappa
from podium.judging.auditing.sample import model_scores
from podium.judging.models.answer_log import read_answers
from podium.kernels import Doubles
from podium.measures import evaluate
from podium.measures.comparison.prediction_powered import powered_mean

_MEASURE = "nDCG@10"
_QUERIES, _SHARE = 100, 0.2
_BUDGETS = (0, 10, 20, 40, 60, 80)
_ITEMS = 50
_RIGHT = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the passages that a drawn model grades as people do: from a useless model to people."""


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    report = Report("assessors", quick, packages=["numpy", "scipy", "httpx2"])
    report_faults(report, quick)
    try:
        data = judged_passages()
    except OSError:
        report.note("the shared data sets are not here")
        report.finish()
    name, scores = _model(data)
    _describe(report, data, name, scores)
    _coverage(report, data, name, scores, 300 if quick else 1000)
    _savings(report, data, name, scores, 6 if quick else len(data.queries))
    report.finish()


def _model(data: JudgedPassages) -> tuple[str, dict[str, dict[str, float]]]:
    path = KEPT / "minilm.jsonl"
    if path.exists():
        scores = model_scores(read_answers(path))
        if all(len(scores.get(query, {})) == len(grades) for query, grades in data.grades.items()):
            return "the bi-encoder", scores
    shares = {
        query: {item: judge_by_overlap(data.queries[query], [data.texts[item]]) for item in grades}
        for query, grades in data.grades.items()
    }
    return "the overlap of words", {
        query: {
            item: sum(int(label) * share for label, share in each.items())
            for item, each in items.items()
        }
        for query, items in shares.items()
    }


def _describe(
    report: Report, data: JudgedPassages, name: str, scores: dict[str, dict[str, float]]
) -> None:
    rows = [
        (data.grades[query][item], score)
        for query, items in scores.items()
        for item, score in items.items()
    ]
    grades, values = np.array(rows).T
    kappa = cohen_kappa(grades, np.rint(values))
    report.note(
        f"{name} on DL21: {len(rows):,} passages of {len(scores)} queries, kappa with people "
        f"{kappa:.3f}, AUC of grades 2 and 3 against 0 and 1 {_auc(grades >= 2, values):.3f}"
    )
    path = KEPT / "smollm2.jsonl"
    if path.exists() and path.stat().st_size:
        answers = [answer for answer in read_answers(path) if answer.label]
        people = np.array([data.grades[each.query_id][each.items[0]] for each in answers])
        weak = model_scores(answers)
        yes = np.array([weak[each.query_id][each.items[0]] for each in answers])
        share = np.mean([each.label == "1" for each in answers])
        report.note(
            f"SmolLM2-135M: {len(answers):,} passages, says yes to {share:.0%}, AUC of grades 2 "
            f"and 3 against 0 and 1 by token probabilities {_auc(people >= 2, yes):.3f}, median "
            f"{np.median([each.seconds for each in answers]):.2f} s per answer"
        )


def _auc(positive: NDArray[np.bool_], values: Doubles) -> float:
    from scipy import stats

    ranks = stats.rankdata(values)
    count = int(positive.sum())
    rest = len(values) - count
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * rest))


def _coverage(
    report: Report,
    data: JudgedPassages,
    name: str,
    scores: dict[str, dict[str, float]],
    resamples: int,
) -> None:
    """Draw queries with replacement, keep people's labels for one in five, and count hits."""
    rows = [(q, item, score) for q, items in scores.items() for item, score in items.items()]
    machine = Judgments.from_columns(*zip(*rows, strict=True))
    runs = data.runs()
    human = np.column_stack([_values(data.judgments, run) for run in runs.values()])
    model = np.column_stack([_values(machine, run) for run in runs.values()])
    queries, people = len(human), int(_QUERIES * _SHARE)
    random = np.random.default_rng(0)
    pairs = [(0, column) for column in range(1, len(runs))]
    kinds = {
        "means": (human, model),
        "differences": tuple(
            np.column_stack([values[:, b] - values[:, a] for a, b in pairs])
            for values in (human, model)
        ),
    }
    for kind, (truth, guess) in kinds.items():
        hits, widths, alone_hits, alone = np.zeros((4, truth.shape[1]))
        for _ in range(resamples):
            chosen = random.integers(0, queries, _QUERIES)
            for column in range(truth.shape[1]):
                y, f = truth[chosen, column], guess[chosen, column]
                result = powered_mean(y[:people], f[:people], f[people:])
                target = truth[:, column].mean()
                hits[column] += result.low <= target <= result.high
                alone_hits[column] += result.human_low <= target <= result.human_high
                widths[column] += result.high - result.low
                alone[column] += result.human_high - result.human_low
        coverage = hits / resamples
        report.note(
            f"{kind} of {_MEASURE}, {truth.shape[1]} runs, {resamples:,} resamples of {_QUERIES} "
            f"queries, {people} with human labels, by {name}: coverage {coverage.min():.3f} to "
            f"{coverage.max():.3f}, people alone {(alone_hits / resamples).mean():.3f}; width "
            f"{np.mean(widths / alone):.3f} of that by people alone"
        )
        report.check(f"coverage of {kind}, lower bound", float(coverage.mean()), 0.93, unit="")
        report.check(
            f"coverage of {kind}, upper bound", float(coverage.mean()), 0.97, False, unit=""
        )
        report.check(
            f"width of {kind} against people alone", float(np.mean(widths / alone)), 1.05, False
        )


def _values(judgments: Judgments, run: object) -> Doubles:
    evaluation = evaluate(_MEASURE, judgments, run)  # type: ignore[arg-type]
    order = np.argsort(evaluation.query_ids.to_pylist())
    values: Doubles = evaluation[_MEASURE][order]
    return values


def _savings(
    report: Report,
    data: JudgedPassages,
    name: str,
    scores: dict[str, dict[str, float]],
    topics: int,
) -> None:
    """Judge the top 10 of 50 passages pair by pair, from no order, the model's, and drawn ones.

    Drawn models grade a share of the passages as people do; their other grades are shuffled.
    """
    random, draws = np.random.default_rng(1), np.random.default_rng(2)
    drawn = {f"a model right on {share:.0%}": share for share in _RIGHT}
    totals = {prior: [0.0] for prior in ("no order", "the model's order", *drawn)}
    curves = {prior: np.zeros(len(_BUDGETS)) for prior in totals}
    for query in list(data.grades)[:topics]:
        grades = data.grades[query]
        items = sorted(grades)
        items = [items[index] for index in random.permutation(len(items))[:_ITEMS]]
        by_model = sorted(items, key=lambda item: -scores[query][item])
        orders = {"no order": items, "the model's order": by_model}
        for prior, share in drawn.items():
            values = _drawn_grades([grades[item] for item in items], share, draws)
            ranked = np.lexsort((draws.random(len(items)), -values))  # ties in any order
            orders[prior] = [items[row] for row in ranked]
        for prior, order in orders.items():
            session = Session(order, 10, ordered=prior != "no order")
            judgments = 0
            while not session.done:
                for left, right in session.open_pairs():
                    if judgments in _BUDGETS:
                        curves[prior][_BUDGETS.index(judgments)] += _quality(session, grades)
                    difference = int(np.sign(grades[left] - grades[right]))
                    session.add(Verdict(left, right, Outcome(difference)))
                    judgments += 1
            for number, budget in enumerate(_BUDGETS):
                if budget >= judgments:
                    curves[prior][number] += _quality(session, grades)
            totals[prior].append(judgments)
    means = {prior: sum(counts) / topics for prior, counts in totals.items()}
    for prior, curve in curves.items():
        points = ", ".join(
            f"{budget}: {value / topics:.3f}" for budget, value in zip(_BUDGETS, curve, strict=True)
        )
        report.note(
            f"top 10 of {_ITEMS}, {topics} queries, {prior}: {means[prior]:.1f} judgments of "
            f"people; nDCG@10 of the order after so many: {points}"
        )
    saved = 1 - means["the model's order"] / means["no order"]
    report.check(f"judgments of people saved by {name}", 100 * saved, 0, unit="%")
    for prior in drawn:
        saved = 1 - means[prior] / means["no order"]
        report.check(f"judgments of people saved by {prior}", 100 * saved, -2, unit="%")


def _drawn_grades(
    grades: list[int], share: float, random: np.random.Generator
) -> NDArray[np.int64]:
    right = random.random(len(grades)) < share
    return np.where(right, grades, random.permutation(grades))


def _quality(session: Session, grades: dict[str, int]) -> float:
    """The nDCG@10 of the order so far."""
    discounts = 1 / np.log2(np.arange(10) + 2)
    gains = [grades[item] for item in session.result().top]
    best = sorted((grades[item] for item in session.items), reverse=True)[:10]
    ideal = float(discounts[: len(best)] @ best)
    return float(discounts[: len(gains)] @ gains) / ideal if ideal else 1.0


if __name__ == "__main__":
    main()
