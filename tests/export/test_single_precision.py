"""A moved threshold separates the same single-precision numbers."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from podium.export.targets.solr import SLACK, written_thresholds
from podium.scorers.single_precision import at_most, below

DOUBLES = st.floats(allow_nan=False, allow_infinity=True)
SINGLES = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(DOUBLES | SINGLES, SINGLES, st.booleans())
def test_every_single_precision_number_takes_the_same_branch(
    threshold: float, value: float, strict: bool
) -> None:
    last = float(at_most([threshold], strict=strict)[0])
    first = float(below([threshold], strict=strict)[0])
    with np.errstate(over="ignore"):  # below the smallest number is minus infinity
        before = np.nextafter(np.float32(last), np.float32(-np.inf))
    near = [value, last, first, before]
    for number in map(float, near):
        if np.isinf(number):
            continue
        left = number < threshold if strict else number <= threshold
        assert (number <= last) == left
        assert (number < first) == left


@given(SINGLES)
@example(float(np.finfo(np.float32).max))
def test_solr_reads_back_the_threshold_or_the_nearest_that_it_can(threshold: float) -> None:
    wanted = np.array([threshold], np.float32)
    written, effective = written_thresholds(wanted)
    assert effective[0] == written[0] + SLACK
    # What is written is coarser than the threshold, if it is larger: no value is nearer.
    gap = abs(float(effective[0]) - threshold)
    with np.errstate(all="ignore"):  # the largest number has no next one
        spacing = np.spacing(np.float32(abs(threshold)) + SLACK)
    assert gap == 0 or gap <= spacing
    assert (effective[0] >= 0) == (threshold >= 0)


def test_solr_thresholds_of_ordinary_size_are_exact() -> None:
    random = np.random.default_rng(0)
    wanted = (10.0 ** random.uniform(-4, 30, 10_000)).astype(np.float32)
    _, effective = written_thresholds(wanted)
    assert np.array_equal(effective, wanted)
