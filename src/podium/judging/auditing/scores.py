"""A model's order of each query's documents, for people to start from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from podium.judging.auditing.sample import Unit, model_judgments, one_rubric
from podium.judging.bradley_terry import Duels, fit_bradley_terry
from podium.judging.models.answer_log import ModelAnswer


def model_scores(
    answers: Iterable[ModelAnswer], *, model: str | None = None, rubric: str | None = None
) -> dict[str, dict[str, float]]:
    """A score for each document that a model judged, by query.

    Of grades, the expected grade by the probabilities of tokens, or the grade; of pairs, the
    strength that they imply by Bradley and Terry's model.

    Args:
        answers: The model's answers.
        model: The model, if the answers are by several.
        rubric: The rubric's name or hash, if there are several.

    Example:
        >>> sure = {"1": 0.25, "2": 0.75}
        >>> one = ModelAnswer("1", "m", "r/1", "h", "q", ("a",), "2", probabilities=sure)
        >>> other = ModelAnswer("2", "m", "r/1", "h", "q", ("b",), "2")
        >>> model_scores([one, other])
        {'q': {'a': 1.75, 'b': 2.0}}
    """
    several = one_rubric(answers, model, rubric)
    grades: dict[str, dict[str, list[float]]] = {}
    for answer in several:
        if answer.label and len(answer.items) == 1:
            shares = answer.probabilities or {answer.label: 1.0}
            expected = sum(int(label) * share for label, share in shares.items())
            grades.setdefault(answer.query_id, {}).setdefault(answer.items[0], []).append(expected)
    scores = {
        query: {item: float(np.mean(values)) for item, values in items.items()}
        for query, items in grades.items()
    }
    verdicts: dict[str, dict[Unit, int]] = {}
    for unit, judgment in model_judgments(several).items():
        if len(unit) == 3 and judgment.value is not None:
            verdicts.setdefault(unit[0], {})[unit] = int(judgment.value)
    for query, pairs in verdicts.items():
        scores.setdefault(query, {}).update(_strengths(pairs))
    return scores


def _strengths(pairs: Mapping[Unit, int]) -> dict[str, float]:
    items = sorted({item for unit in pairs for item in unit[1:]})
    index_of = {item: index for index, item in enumerate(items)}
    rows = [
        (index_of[first], index_of[second], outcome, 0)
        for (_, first, second), outcome in pairs.items()
    ]
    means = fit_bradley_terry(len(items), Duels.of(rows)).means
    return dict(zip(items, means.tolist(), strict=True))
