"""People with five-point verdicts and ties, simulated: figures 16 to 20 of Zhou et al. (2012)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from podium.utility import RankingPreferences, simulated_choices
from podium.utility.learned_utility import accuracy
from studies.arrays import Doubles
from studies.metric_curves import PAPER, paper_settings

_NOISE, _SAME, _MUCH = 0.3, 0.4, 1.5
"""In standard deviations of the true lead: the noise, what seems the same, what seems much."""

TIE_WEIGHTS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def _people(count: int, seed: int) -> tuple[RankingPreferences, Doubles]:
    """Pairs with verdicts from -2 to 2 by the gains 2^l - 1, and the table of true utilities."""
    setting = paper_settings()[1]
    pairs = setting.make(count, np.random.default_rng(seed))
    unit = float(pairs.leads(setting.table).std())
    choices = simulated_choices(
        pairs,
        setting.table,
        noise=_NOISE * unit,
        same=_SAME * unit,
        much=_MUCH * unit,
        random_state=seed,
    )
    return pairs.with_choices(choices), setting.wrong


def five_point_people(repeats: int, tests: int) -> dict[str, Any]:
    """Figures 16 to 19: accuracy on all, on much better (Set 1), on better (Set 2)."""
    sizes = (20, 50, 100, 200, 400)
    samples: dict[str, list[Any]] = {
        "whole": [],
        "over pairs": [],
        "differences": [],
        "subsets": [],
    }
    for seed in range(repeats):
        train, wrong = _people(1500, seed)
        test, _ = _people(tests, 1000 + seed)
        strict = train.take(np.flatnonzero(train.strict))
        sets = {
            "all": test.take(np.flatnonzero(test.strict)),
            "set 1": test.take(np.flatnonzero(np.abs(test.choices) == 2)),
            "set 2": test.take(np.flatnonzero(np.abs(test.choices) == 1)),
        }
        model = replace(PAPER, C=0.1)
        learned = model.fit(strict.take(np.arange(400))).learned_
        samples["whole"].append(
            {
                name: [learned.accuracy(part), accuracy(part, part.leads(wrong))]
                for name, part in sets.items()
            }
        )
        samples["over pairs"].append(
            [
                [
                    model.fit(strict.take(np.arange(size))).learned_.accuracy(part)
                    for part in sets.values()
                ]
                for size in sizes
            ]
        )
        leads = np.abs(test.leads(learned.table))
        samples["differences"].append(
            [float(leads[np.abs(test.choices) == size].mean()) for size in range(3)]
        )
        some = strict.take(np.arange(400))
        parts = [
            some,
            *(some.take(np.flatnonzero(np.abs(some.choices) == size)) for size in (2, 1)),
        ]
        samples["subsets"].append(
            [[model.fit(part).learned_.accuracy(held) for held in sets.values()] for part in parts]
        )
    whole = {
        name: np.mean([each[name] for each in samples["whole"]], axis=0).tolist()
        for name in ("all", "set 1", "set 2")
    }
    return {
        "whole": whole,
        "sizes": list(sizes),
        "over pairs": np.array(samples["over pairs"]).tolist(),
        "differences": np.mean(samples["differences"], axis=0).tolist(),
        "subsets": np.mean(samples["subsets"], axis=0).tolist(),
    }


def tied_people(repeats: int, tests: int) -> dict[str, Any]:
    """Figure 20: accuracy, and the mean difference of tied pairs, over the weight of ties."""
    right = np.zeros((repeats, len(TIE_WEIGHTS)))
    apart = np.zeros_like(right)
    for seed in range(repeats):
        train, _ = _people(400, seed)
        test, _ = _people(tests, 1000 + seed)
        tied = test.take(np.flatnonzero(test.choices == 0))
        strict = test.take(np.flatnonzero(test.strict))
        for column, weight in enumerate(TIE_WEIGHTS):
            learned = replace(PAPER, C=10.0, tie_weight=weight).fit(train).learned_
            right[seed, column] = learned.accuracy(strict)
            apart[seed, column] = np.abs(tied.leads(learned.table)).mean()
    return {"weights": list(TIE_WEIGHTS), "right": right.tolist(), "apart": apart.tolist()}
