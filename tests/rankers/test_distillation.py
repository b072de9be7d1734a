"""A teacher's order as labels."""

from __future__ import annotations

import numpy as np
import pytest

from podium.errors import ArgumentError, DataError
from podium.rankers import LinearRanker, TreeRanker, teacher_labels
from tests.rankers.made_up import made_up


def test_labels_are_the_teachers_top_k() -> None:
    scores = [0.1, 5.0, 5.0 + 1e-12, -3.0, 2.0, 2.0]
    qid = ["a", "b", "a", "a", "b", "b"]
    # a: 5.0..., 0.1, -3; b: 5.0, then the first of two equal scores.
    assert teacher_labels(scores, qid=qid, k=2).tolist() == [1, 2, 2, 0, 1, 0]
    assert teacher_labels(scores[::-1], group=[3, 3], k=5).tolist() == [5, 4, 3, 5, 4, 3]
    # Scores that single precision cannot tell apart.
    assert teacher_labels([1.0, 1.0 + 1e-12], group=[2], k=2).tolist() == [1, 2]


def test_a_student_learns_the_teachers_order() -> None:
    data = made_up()
    teacher = TreeRanker("lambdarank", n_estimators=20).fit(data)
    order = teacher.predict(data)
    labels = teacher_labels(order, group=data.sizes, k=10)
    student = LinearRanker("ListMLE(k=10)").fit(data.features, labels, group=data.sizes)
    assert np.corrcoef(student.predict(data.features), order)[0, 1] > 0.7


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"group": [2], "k": 0}, ArgumentError, "k is 0"),
        ({"group": [2], "k": 1.5}, ArgumentError, "k is 1.5"),
        ({}, ArgumentError, "not grouped by query"),
        ({"qid": ["a"]}, DataError, "2 scores for 1 rows"),
    ],
)
def test_what_does_not_fit(arguments: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        teacher_labels([1.0, 2.0], **arguments)
    with pytest.raises(DataError, match="a score is NaN"):
        teacher_labels([1.0, np.nan], group=[2])
