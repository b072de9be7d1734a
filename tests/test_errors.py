"""Errors say where, what and what to do."""

import pickle

import pytest

import podium
from podium.errors import DataError, PodiumError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DataError("is wrong"), "is wrong"),
        (DataError("is wrong", path="a.txt"), "a.txt: is wrong"),
        (DataError("is wrong", path="a.txt", line=3), "a.txt, line 3: is wrong"),
        (DataError("is wrong.", hint="Mend it."), "is wrong. Mend it."),
        (DataError("is wrong", path="a", line=1, hint="Mend."), "a, line 1: is wrong. Mend."),
    ],
)
def test_messages(error: DataError, text: str) -> None:
    assert str(error) == text
    assert str(pickle.loads(pickle.dumps(error))) == text  # as process pools pass errors on


def test_a_line_further_down() -> None:
    error = DataError("is wrong", path="a", line=3, hint="Mend it.").further_down(10)
    assert (error.problem, error.path, error.line, error.hint) == ("is wrong", "a", 13, "Mend it.")
    assert DataError("is wrong").further_down(10).line is None


def test_names_of_the_package() -> None:
    assert podium.DataError is DataError
    assert issubclass(podium.DataError, podium.PodiumError)
    assert issubclass(DataError, ValueError)
    assert podium.PodiumError is PodiumError
    assert "data" in dir(podium)
    assert podium.data.Dataset.__name__ == "Dataset"
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        podium.colour  # noqa: B018
