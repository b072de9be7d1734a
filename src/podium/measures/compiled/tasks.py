"""One measure to compute: its function, its settings, and the conventions around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.measures.compiled.blocks import Block, Plan
from podium.measures.compiled.loops import over_labels, over_labels_in_python, over_pairs
from podium.measures.compiled.ranked import TABLE, Settings
from podium.measures.compiled.ties import fill_ranks
from podium.measures.conventions import Conventions
from podium.measures.inputs import Inputs, Pairs
from podium.measures.registry import Kind, kind_of
from podium.measures.resolve import cut_of, settle
from podium.measures.value import Measure


@dataclass(frozen=True, eq=False)
class Task:
    """A measure, ready to be computed on blocks of ranked queries.

    Attributes:
        measure: What to compute.
        kind: What is known of it.
        conventions: What holds for it.
        settings: What its function reads.
    """

    measure: Measure
    kind: Kind
    conventions: Conventions
    settings: Settings

    @classmethod
    def of(cls, measure: Measure, conventions: Conventions, inputs: Inputs) -> Task:
        """Prepare a measure for some inputs, whose truth must be of the kind that it takes."""
        kind, own = kind_of(measure), conventions.of(measure)
        if kind.on_pairs and inputs.pairs is None:
            raise ArgumentError(f"{measure!r} is a measure of preferences", hint="Give pairs=.")
        if not kind.on_pairs and inputs.labels is None:
            raise ArgumentError(f"{measure!r} is a measure of labels", hint="Give labels=.")
        return cls(measure, kind, own, settle(measure, own, inputs.longest))

    @property
    def depth(self) -> int | None:
        """How many documents of a query must be ranked; None means all of them."""
        return None if self.kind.on_pairs else cut_of(self.measure, self.conventions)

    @property
    def needs_ideal(self) -> bool:
        """Whether the labels of the pool must be sorted."""
        if self.kind.on_pairs:
            return False
        skips = self.conventions.nothing_relevant == "skip"
        return self.kind.needs_ideal or skips or self.settings.curve == TABLE

    @property
    def by_gains(self) -> tuple[float, ...]:
        """The gains by which the ideal ranking is ordered, if that is not the order of labels."""
        gains = self.settings.gains
        if (
            not self.kind.ideal_by_gain
            or self.settings.curve != TABLE
            or np.all(np.diff(gains) >= 0)
        ):
            return ()
        return tuple(gains.tolist())

    def addresses(self, tied: bool) -> tuple[int, int] | None:
        """Of the function and of its mean over ties, if there are some; None if they are Python."""
        one = self.kind.compiled
        mean = self.kind.compiled_expected if tied and self.kind.expected else one
        return None if one is None or mean is None else (one.address, mean.address)

    def run(self, plan: Plan, inputs: Inputs, block: Block, values: Doubles) -> None:
        """Compute the values of a block's queries."""
        sizes = np.diff(inputs.offsets[block.first : block.last + 1])
        shown = block.kept if plan.conventions.unjudged == "drop" else sizes
        if inputs.pairs is not None and self.kind.on_pairs:
            self._run_pairs(inputs, inputs.pairs, block, shown, values)
        else:
            self._run_labels(plan, block, shown, values)
        choice = self.conventions
        if choice.nothing_relevant != "skip":
            worth = choice.nothing_relevant
            # Of a loss as much is lost as others lack: WKT stays a bound of 1 - nDCG.
            values[np.isnan(values)] = worth if self.kind.larger_is_better else 1.0 - worth
        cut = cut_of(self.measure, choice)
        if choice.short_list == "zero" and cut is not None:
            values[shown < cut] = 0.0
        # A query that is left out stays so, however short its list is.
        if choice.nothing_relevant == "skip" and not self.kind.on_pairs:
            values[~_has_relevant(block, self.settings.rel)] = np.nan
        if choice.missing == "skip":
            values[sizes == 0] = np.nan

    def _run_labels(self, plan: Plan, block: Block, sizes: Ints, values: Doubles) -> None:
        self._check(plan, block)
        functions: Any = self.addresses(bool(block.tied.any()))
        loop: Any = over_labels
        if functions is None:
            functions = self.kind.function, self.kind.expected or self.kind.function
            loop = over_labels_in_python
        loop(
            *functions,
            block.ranked,
            block.starts,
            block.kept,
            sizes,
            block.ideal,
            block.ideal_starts,
            block.judged,
            block.ties,
            block.tied,
            self.settings,
            values,
        )

    def _run_pairs(
        self, inputs: Inputs, pairs: Pairs, block: Block, sizes: Ints, values: Doubles
    ) -> None:
        rows = int(inputs.offsets[block.last] - inputs.offsets[block.first])
        ranks = np.full(rows + 1, np.inf)  # the last entry is for documents that are not ranked
        fill_ranks(
            inputs.offsets, block.first, block.order, block.kept, block.ties, block.tied, ranks
        )
        functions = self.addresses(tied=False)
        assert functions is not None  # measures of pairs are always compiled
        begin, end = pairs.offsets[block.first], pairs.offsets[block.last]
        counts = np.diff(pairs.offsets[block.first : block.last + 1])
        starts = np.repeat(block.starts, counts)
        better, worse = pairs.better[begin:end], pairs.worse[begin:end]
        over_pairs(
            functions[0],
            ranks[np.where(better < 0, rows, starts + better)],
            ranks[np.where(worse < 0, rows, starts + worse)],
            pairs.offsets[block.first : block.last + 1] - begin,
            sizes,
            self.settings,
            values,
        )

    def _check(self, plan: Plan, block: Block) -> None:
        """Refuse what the function cannot know of."""
        ties = plan.conventions.ties
        knows = self.kind.knows_together if ties == "together" else self.kind.expected is not None
        if not knows and block.tied.any():
            raise DataError(
                f"scores are tied, and {self.measure!r} cannot be computed with ties={ties!r}",
                hint="Choose conventions with another rule, such as ties='input order'.",
            )
        settings = self.settings
        if settings.curve == TABLE and not (block.whole and block.highest < len(settings.gains)):
            raise DataError(
                f"{self.measure!r} has gains for labels 0 to {len(settings.gains) - 1}, and "
                "there are others",
                hint="Give a gain for every label, or whole labels.",
            )
        if 0 < np.float32(settings.highest) < block.highest and not settings.labels_are_chances:
            raise DataError(
                f"there is a label of {block.highest:g}, above the highest grade of "
                f"{settings.highest:g}",
                hint="Give the highest grade that there is: ERR(max=…), or highest_grade=.",
            )


def _has_relevant(block: Block, rel: float) -> Any:
    some = block.judged > 0
    best = block.ideal[np.where(some, block.ideal_starts, 0)] if len(block.ideal) else -np.inf
    return some & (best >= rel)
