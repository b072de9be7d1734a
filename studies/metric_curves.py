"""Accuracy curves of DCGLearn on simulated people: what the figures of Zhou et al. (2012) show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from podium.utility import DCGLearn, RankingPreferences, choose_pairs
from podium.utility.learned_utility import accuracy
from podium.utility.utility_tables import similarity
from studies.arrays import Doubles

LIST = (4, 4, 3, 3, 2, 2, 1, 1, 0, 0)
"""The paper's [5, 5, 4, 4, 3, 3, 2, 2, 1, 1], counted from 0."""

DIFFERENT_LIST = (4, 4, 4, 3, 3, 3, 2, 2, 1, 0)
PAPER = DCGLearn(form="by-position")
"""Eqs 1 to 3, with C by cross-validation."""

Maker = Callable[[int, np.random.Generator], RankingPreferences]
"""Draws so many pairs of rankings."""


def truth_table(gains: str, depth: int, grades: int) -> Doubles:
    """Eq. 5: ``l / log(k + 1)`` or ``(2^l - 1) / log(k + 1)``, with l from 1."""
    labels = np.arange(1.0, grades + 1)
    worth = labels if gains == "linear" else 2**labels - 1
    return np.outer(1 / np.log(np.arange(2, depth + 2)), worth)


def shuffles_of(*lists: Sequence[int]) -> Maker:
    """Pairs of random orders: of one list, or of the first and of the second."""

    def make(count: int, random: np.random.Generator) -> RankingPreferences:
        sides = [
            random.permuted(
                np.tile(np.array(lists[side % len(lists)], np.uint8), (count, 1)), axis=1
            )
            for side in range(2)
        ]
        return RankingPreferences.from_arrays(*sides, grades=5)

    return make


def best_against(other: Sequence[int]) -> Maker:
    """Pairs of the best order of the list and a random order of a list."""

    def make(count: int, random: np.random.Generator) -> RankingPreferences:
        best = np.tile(np.array(LIST, np.uint8), (count, 1))
        shuffled = random.permuted(np.tile(np.array(other, np.uint8), (count, 1)), axis=1)
        return RankingPreferences.from_arrays(best, shuffled, grades=5)

    return make


def judged(pairs: RankingPreferences, table: Doubles) -> RankingPreferences:
    """Pairs with the verdicts of someone whose utility is known; pairs without any are left out."""
    leads = pairs.leads(table)
    keep = np.abs(leads) > 1e-9
    return pairs.take(keep).with_choices(np.sign(leads[keep]))


@dataclass(frozen=True)
class Setting:
    """Whose preferences, on what rankings.

    Attributes:
        name: In figures.
        make: Draws training pairs.
        table: The true utility.
        wrong: The other usual utility.
        make_test: Draws test pairs.
    """

    name: str
    make: Maker
    table: Doubles
    wrong: Doubles
    make_test: Maker

    def train(self, count: int, random: np.random.Generator) -> RankingPreferences:
        """So many strict preferences, a few at a time until they are enough."""
        return self._enough(self.make, count, random)

    def test(self, count: int, random: np.random.Generator) -> RankingPreferences:
        """Held-out preferences."""
        return self._enough(self.make_test, count, random)

    def _enough(self, make: Maker, count: int, random: np.random.Generator) -> RankingPreferences:
        pairs = judged(make(2 * count, random), self.table)
        while len(pairs) < count:
            pairs = pairs.joined(judged(make(2 * count, random), self.table))
        return pairs.take(np.arange(count))


def paper_settings() -> list[Setting]:
    """Data 1 (gains l) and Data 2 (gains 2^l - 1)."""
    tables = [truth_table(gains, 10, 5) for gains in ("linear", "exponential")]
    make = shuffles_of(LIST)
    return [
        Setting("Data 1", make, tables[0], tables[1], make),
        Setting("Data 2", make, tables[1], tables[0], make),
    ]


@dataclass(frozen=True)
class AccuracyCurve:
    """A line of a figure: the mean over repeats at each step, and each repeat's values."""

    name: str
    steps: tuple[float, ...]
    values: Doubles

    @property
    def means(self) -> Doubles:
        """Over repeats."""
        means: Doubles = self.values.mean(axis=0)
        return means

    def plain(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {"name": self.name, "steps": list(self.steps), "values": self.values.tolist()}

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> AccuracyCurve:
        """The curve that ``plain`` gave."""
        return cls(content["name"], tuple(content["steps"]), np.array(content["values"]))


def accuracy_over_pairs(
    setting: Setting, sizes: Sequence[int], repeats: int, models: dict[str, DCGLearn], tests: int
) -> tuple[list[AccuracyCurve], list[AccuracyCurve]]:
    """Figures 2, 3 and 11: accuracy on held-out pairs over training pairs; and figure 6."""
    right = {name: np.zeros((repeats, len(sizes))) for name in (*models, "Other")}
    alike = {name: np.zeros((repeats, len(sizes))) for name in models}
    for repeat in range(repeats):
        random = np.random.default_rng(repeat)
        test, train = setting.test(tests, random), setting.train(max(sizes), random)
        right["Other"][repeat] = accuracy(test, test.leads(setting.wrong))
        for column, size in enumerate(sizes):
            for name, model in models.items():
                learned = model.fit(train.take(np.arange(size))).learned_
                right[name][repeat, column] = learned.accuracy(test)
                alike[name][repeat, column] = similarity(learned.table, setting.table)
    steps = tuple(map(float, sizes))
    return (
        [AccuracyCurve(name, steps, values) for name, values in right.items()],
        [AccuracyCurve(f"{setting.name}, {name}", steps, values) for name, values in alike.items()],
    )


def one_curve(
    setting: Setting, name: str, model: DCGLearn, sizes: Sequence[int], repeats: int, tests: int
) -> AccuracyCurve:
    """Accuracy over training pairs of one model, called by its setting and a name."""
    curves, _ = accuracy_over_pairs(setting, sizes, repeats, {name: model}, tests)
    return AccuracyCurve(f"{setting.name}, {name}", curves[0].steps, curves[0].values)


def accuracy_by_difference(
    setting: Setting, size: int, repeats: int, bands: int, tests: int
) -> list[AccuracyCurve]:
    """Figures 4, 5, 12 and 13: accuracy over the size of the true difference, in equal shares."""
    right = {name: np.zeros((repeats, bands)) for name in ("DCGLearn", "Other")}
    edges = np.zeros(bands)
    for repeat in range(repeats):
        random = np.random.default_rng(repeat)
        test, train = setting.test(tests, random), setting.train(size, random)
        size_of = np.abs(test.leads(setting.table))
        learned = PAPER.fit(train).learned_
        parts = np.array_split(np.argsort(size_of, kind="stable"), bands)
        for column, part in enumerate(parts):
            chosen = test.take(part)
            edges[column] += size_of[part].mean() / repeats
            right["DCGLearn"][repeat, column] = learned.accuracy(chosen)
            right["Other"][repeat, column] = accuracy(chosen, chosen.leads(setting.wrong))
    return [AccuracyCurve(name, tuple(edges.tolist()), values) for name, values in right.items()]


def consistency(pairs: int, bands: int) -> list[AccuracyCurve]:
    """Figure 1: how often gains l and 2^l - 1 agree, over the difference by the latter."""
    one, other = paper_settings()
    random = np.random.default_rng(0)
    drawn = other.test(pairs, random)
    size_of = np.abs(drawn.leads(other.table))
    edges = np.linspace(0, np.quantile(size_of, 0.98), bands + 1)
    middles, shares = [], []
    for low, high in pairwise(edges):
        part = drawn.take((size_of >= low) & (size_of < high))
        middles.append((low + high) / 2)
        shares.append(accuracy(part, part.leads(one.table)))
    return [AccuracyCurve("agree", tuple(middles), np.array([shares]))]


def noisy_pairs(
    setting: Setting, counts: Sequence[int], size: int, repeats: int, tests: int
) -> AccuracyCurve:
    """Figure 7: some of the training preferences are reversed; C by a validation set."""
    right = np.zeros((repeats, len(counts)))
    for repeat in range(repeats):
        random = np.random.default_rng(repeat)
        test, train = setting.test(tests, random), setting.train(size, random)
        check = setting.test(2000, random)
        order = random.permutation(size)
        for column, count in enumerate(counts):
            choices = train.choices.copy()
            choices[order[:count]] *= -1
            right[repeat, column] = _best(train.with_choices(choices), check, test)
    return AccuracyCurve(setting.name, tuple(map(float, counts)), right)


def noisy_grades(
    setting: Setting, shares: Sequence[float], size: int, repeats: int, tests: int
) -> AccuracyCurve:
    """Figures 8, 14 and 15: some documents of the training rankings have a random grade."""
    right = np.zeros((repeats, len(shares)))
    for repeat in range(repeats):
        random = np.random.default_rng(repeat)
        test, train = setting.test(tests, random), setting.train(size, random)
        check = setting.test(2000, random)
        draw = random.random((2, size, train.depth))
        other = random.integers(0, train.grades, draw.shape, np.uint8)
        for column, share in enumerate(shares):
            left, right_side = (
                np.where(draw[side] < share, other[side], (train.left, train.right)[side])
                for side in range(2)
            )
            noisy = replace(train, left=left, right=right_side)
            right[repeat, column] = _best(noisy, check, test)
    return AccuracyCurve(f"{setting.name}, {size} pairs", tuple(shares), right)


def _best(train: RankingPreferences, check: RankingPreferences, test: RankingPreferences) -> float:
    """Test accuracy with the C that is best on a validation set."""
    learned = [replace(PAPER, C=C).fit(train).learned_ for C in (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)]
    return max(learned, key=lambda each: each.accuracy(check)).accuracy(test)


def active(
    setting: Setting,
    labels: Sequence[int],
    repeats: int,
    pool_size: int,
    tests: int,
    strategies: Sequence[str] = ("random", "margin", "change"),
) -> list[AccuracyCurve]:
    """Figures 21 to 23: accuracy over labels, when they are chosen and when they are drawn."""
    model = replace(PAPER, C=10.0)
    names = {"random": "random", "margin": "SimpleMargin", "change": "expected change"}
    right = {name: np.zeros((repeats, len(labels))) for name in strategies}
    for repeat in range(repeats):
        random = np.random.default_rng(repeat)
        test, pool = setting.test(tests, random), setting.train(pool_size, random)
        for name in strategies:
            asking = choose_pairs(pool, model, strategy=name, random_state=repeat)  # type: ignore[arg-type]
            question, asked = next(asking), []
            for count in range(1, max(labels) + 1):
                asked.append(question.pool_index)
                if count in labels:
                    learned = model.fit(pool.take(asked)).learned_
                    right[name][repeat, labels.index(count)] = learned.accuracy(test)
                if count < max(labels):
                    question = asking.send(int(pool.choices[question.pool_index]))
    return [AccuracyCurve(names[name], tuple(labels), right[name]) for name in strategies]
