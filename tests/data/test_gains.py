"""Gains and discounts: one formula for arrays and for single numbers in kernels."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import podium
from podium.data.gains import (
    DISCOUNTS,
    GAINS,
    exponential_gain,
    exponential_gains,
    log2_discount,
    relative_gains,
)

RANKS = np.arange(1.0, 9.0)


def test_gains_are_the_formulas() -> None:
    labels = np.array([0.0, 1.0, 2.5, 7.0])
    assert GAINS["linear"](labels).tolist() == labels.tolist()
    expected = [2**label - 1 for label in labels.tolist()]
    assert GAINS["exponential"](labels).tolist() == pytest.approx(expected)
    for label, gain in zip(labels.tolist(), expected, strict=True):
        assert exponential_gain(label, 0.0) == pytest.approx(gain)
        assert exponential_gain(label, 7.0) == pytest.approx(gain / 2**7)


def test_gains_of_a_query_are_finite_however_large_its_labels() -> None:
    labels = np.array([3000.0, 2999.0, 0.0, -1.0])
    gains = np.empty(4)
    relative_gains(labels, gains)
    assert gains.tolist() == [1.0, 0.5, 0.0, 0.0]
    assert exponential_gains(labels[:3], 3000.0).tolist() == gains[:3].tolist()


def test_discounts_are_the_formulas() -> None:
    for rank, value in zip(RANKS.tolist(), DISCOUNTS["log2"](RANKS).tolist(), strict=True):
        assert value == pytest.approx(1 / math.log2(1 + rank))
        assert value == pytest.approx(log2_discount(rank))
    letor = [1 / math.log2(max(rank, 2)) for rank in RANKS.tolist()]
    assert DISCOUNTS["letor"](RANKS).tolist() == pytest.approx(letor)
    assert DISCOUNTS["reciprocal"](RANKS).tolist() == [1 / rank for rank in RANKS.tolist()]


def test_no_other_file_writes_them_out() -> None:
    package = Path(podium.__file__).parent
    written = re.compile(r"(np|math)\.(log2|exp2)\(")
    files = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if written.search(file.read_text())
    }
    assert files == {"data/gains.py"}
