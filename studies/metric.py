"""Zhou et al. (2012): gains and discounts learned from preferences, figure by figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from podium.utility import DCGLearn, utility_report
from studies.image_search_pages import read_pages
from studies.metric_curves import (
    DIFFERENT_LIST,
    LIST,
    PAPER,
    Setting,
    accuracy_by_difference,
    accuracy_over_pairs,
    active,
    best_against,
    consistency,
    noisy_grades,
    noisy_pairs,
    one_curve,
    paper_settings,
)
from studies.metric_grades import grade_settings
from studies.metric_page import write
from studies.metric_verdicts import five_point_people, tied_people
from studies.parts import Part
from studies.study import Setup, Study

_GRADED = {"MQ2007": "letor/MQ2007", "MSLR sample": "mslr-sample"}


def _setting(name: str, data: Path | None) -> Setting:
    settings = paper_settings() if data is None else grade_settings(data)
    return next(each for each in settings if each.name == name)


def gains_agree(pairs: int) -> Any:
    """Figure 1."""
    return [curve.plain() for curve in consistency(pairs, 20)]


def over_pairs(
    name: str, data: Path | None, sizes: Sequence[int], repeats: int, tests: int
) -> dict[str, Any]:
    """Figures 2, 3 and 11, and 6."""
    models = {"DCGLearn": PAPER, "DCGLearn, rank-one": DCGLearn()}
    right, alike = accuracy_over_pairs(_setting(name, data), sizes, repeats, models, tests)
    return {"right": [each.plain() for each in right], "alike": [each.plain() for each in alike]}


def by_difference(name: str, data: Path | None, size: int, repeats: int, tests: int) -> Any:
    """Figures 4, 5, 12 and 13."""
    curves = accuracy_by_difference(_setting(name, data), size, repeats, 8, tests)
    return [each.plain() for each in curves]


def reversed_pairs(name: str, counts: Sequence[int], repeats: int, tests: int) -> Any:
    """Figure 7."""
    return noisy_pairs(_setting(name, None), counts, 800, repeats, tests).plain()


def wrong_grades(
    name: str, data: Path | None, sizes: Sequence[int], repeats: int, tests: int
) -> Any:
    """Figures 8, 14 and 15."""
    shares = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
    setting = _setting(name, data)
    return [noisy_grades(setting, shares, size, repeats, tests).plain() for size in sizes]


def best_orders(name: str, sizes: Sequence[int], repeats: int, tests: int) -> dict[str, Any]:
    """Figures 9 and 10: pairs with the best order, of the same list and of another one."""
    setting = _setting(name, None)
    knows = DCGLearn(form="by-position", decreasing=True)
    same = replace(setting, make=best_against(LIST))
    other = replace(setting, make=best_against(DIFFERENT_LIST))
    fit = (sizes, repeats, tests)
    return {
        "same": [
            one_curve(same, "best order", knows, *fit).plain(),
            one_curve(same, "discounts free", PAPER, *fit).plain(),
        ],
        "other": [
            one_curve(other, "best order", knows, *fit).plain(),
            one_curve(setting, "random orders", knows, *fit).plain(),
        ],
    }


def chosen_pairs(
    name: str, data: Path | None, labels: Sequence[int], repeats: int, tests: int
) -> Any:
    """Figures 21 to 23."""
    curves = active(_setting(name, data), tuple(labels), repeats, 2000, tests)
    return [each.plain() for each in curves]


def result_pages(data: Path) -> dict[str, Any]:
    """Figure 16 with the data available: whole pages of image search, by cross-validation."""
    pages = read_pages(data / "preferences" / "image-search", depth=10, grades=5)
    report = utility_report(pages, resamples=200, test_position=False)
    return {
        "pages": len(pages),
        "strict": int(np.count_nonzero(pages.strict)),
        "accuracies": [[each.name, each.share, each.low, each.high] for each in report.accuracies],
    }


def _parts(setup: Setup) -> list[Part]:
    quick = setup.quick
    sizes = (20, 200, 800) if quick else (20, 50, 100, 200, 300, 400, 500, 600, 700, 800)
    flipped = (5, 200) if quick else (5, 25, 50, 75, 100, 125, 150, 175, 200)
    labels = (50, 100) if quick else (20, 40, 60, 80, 100, 150, 200, 250, 300, 350, 400)
    effort = (1, 2000) if quick else (10, 20_000)
    parts = [
        Part("agree", gains_agree, (20_000 if quick else 200_000,)),
        Part("ties", tied_people, effort),
        Part("five-point", five_point_people, effort),
    ]
    for name in ("Data 1", "Data 2"):
        parts += [
            Part(f"{name}.pairs", over_pairs, (name, None, sizes, *effort)),
            Part(f"{name}.difference", by_difference, (name, None, 800, *effort)),
            Part(f"{name}.reversed", reversed_pairs, (name, flipped, *effort)),
            Part(f"{name}.grades", wrong_grades, (name, None, (800,), *effort)),
            Part(f"{name}.best", best_orders, (name, sizes, *effort)),
            Part(f"{name}.active", chosen_pairs, (name, None, labels, *effort)),
        ]
    there = [name for name, folder in _GRADED.items() if setup.has(folder)]
    real_sizes = (100, 1000) if quick else (20, 50, 100, 200, 400, 600, 800, 1000)
    effort = (1, 2000) if quick else (5, 10_000)
    for name in there if len(there) == len(_GRADED) else ():
        data = setup.data
        noisy = (600,) if quick else (200, 600, 1000)
        parts += [
            Part(f"{name}.pairs", over_pairs, (name, data, real_sizes, *effort)),
            Part(f"{name}.difference", by_difference, (name, data, 1000, *effort)),
            Part(f"{name}.grades", wrong_grades, (name, data, noisy, *effort)),
            Part(f"{name}.active", chosen_pairs, (name, data, labels, *effort)),
        ]
    if setup.has("preferences/image-search"):
        parts.append(Part("pages", result_pages, (setup.data,)))
    return parts


STUDY = Study(
    "metric",
    "Gains and discounts from preferences",
    "Zhou et al. 2012: gains and discounts learned from preferences.",
    """
Zhou et al. (*Learning the gain values and discount factors of discounted cumulative gains*, IEEE
TKDE 2012) show that two sensible gain vectors disagree on which ranking is better, and learn gains
and discounts from preferences between rankings (DCGLearn). Simulated people judge random orders of
the grades 5, 5, 4, 4, 3, 3, 2, 2, 1, 1 by gains `l` (Data 1) or `2^l - 1` (Data 2), as in the
paper. Web10K and Web30K are not available in full: the grades of MQ2007 and of a sample of MSLR-WEB
replace them. The news search data of figures 16 to 20 and 23(c) are not available: simulated people
with five-point verdicts, and 102 real verdicts on whole pages of image search, replace them.
*Other* uses the gains of the other data set. [How it works](../explanation/utility.md) has its own
page.
""",
    "grades of MQ2007 and of the MSLR sample, verdicts on result pages of image search (Xie et al. "
    "2020).",
    _parts,
    write,
)
