"""The page of the default of TreeRanker says where its aim is missed."""

import numpy as np

from studies.defaults import CHOSEN, DEFAULTS, _behind

SMALL, LARGE = "LightGBM lambdarank, 15 leaves, rate 0.05", f"LightGBM lambdarank, {DEFAULTS}"


def test_data_on_which_the_default_is_behind_are_named() -> None:
    random = np.random.default_rng(0)
    ours, less = random.random(50), 0.01 * random.random(50)
    test = {(CHOSEN, "won"): ours, (SMALL, "won"): ours - less, (LARGE, "won"): ours - less}
    test |= {(CHOSEN, "lost"): ours, (SMALL, "lost"): ours + less, (LARGE, "lost"): ours - less}
    test |= {
        (CHOSEN, "even"): ours,
        (SMALL, "even"): ours[::-1] + 0.001,
        (LARGE, "even"): ours - less,
    }
    said = _behind(test, ["won", "lost", "even"], [SMALL, LARGE])
    behind_defaults, behind_six = said.split(", and ")
    assert behind_defaults.endswith("the best at defaults on no data")
    assert behind_six.startswith("the best of six on lost (p = ")
    assert "even" not in behind_six
