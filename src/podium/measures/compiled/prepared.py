"""One measure to compute: its functions, their arguments, and the conventions around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.measures.arguments import TABLE, EvaluationArguments
from podium.measures.compiled.blocks import Block, RankingPlan
from podium.measures.compiled.loops import loop_for, over_labels, over_pairs, over_tied_orders
from podium.measures.compiled.ties import fill_ranks
from podium.measures.conventions import Conventions
from podium.measures.inputs import Inputs, Pairs
from podium.measures.registry import Measure, MeasureDefinition, Signature, definition_of


@dataclass(frozen=True, eq=False)
class PreparedMeasure:
    """A measure, ready to be computed on blocks of ranked queries.

    Attributes:
        measure: What to compute.
        definition: What is known of it.
        conventions: Those that apply to it.
        arguments: What its functions may ask for.
    """

    measure: Measure
    definition: MeasureDefinition
    conventions: Conventions
    arguments: EvaluationArguments

    @classmethod
    def of(cls, measure: Measure, conventions: Conventions, inputs: Inputs) -> PreparedMeasure:
        """Prepare a measure for some inputs, which must have the labels or pairs that it takes."""
        definition, own = definition_of(measure), conventions.of(measure)
        if definition.on_pairs and inputs.pairs is None:
            raise ArgumentError(
                f"{measure!r} is a measure of preferences", hint="Give preferences."
            )
        if not definition.on_pairs and inputs.labels is None:
            raise ArgumentError(f"{measure!r} is a measure of labels", hint="Give labels.")
        parameters = {each.name: measure[each.name] for each in definition.parameters}
        cut_off = own.cut_off_of(measure)
        arguments = EvaluationArguments(parameters, cut_off, own, inputs.longest)
        return cls(measure, definition, own, arguments)

    @property
    def cut_off(self) -> int | None:
        """How many documents count; None means all of them."""
        return self.conventions.cut_off_of(self.measure)

    @property
    def depth(self) -> int | None:
        """How many documents of a query must be ranked; None means all of them."""
        return None if self.definition.on_pairs else self.cut_off

    @property
    def needs_ideal(self) -> bool:
        """Whether the labels of the pool must be sorted."""
        if self.definition.on_pairs:
            return False
        skips = self.conventions.nothing_relevant == "skip"
        return self.definition.needs_ideal or skips or self.arguments.curve == TABLE

    @property
    def by_gains(self) -> tuple[float, ...]:
        """The gains by which the ideal ranking is ordered, if that is not the order of labels."""
        gains = self.arguments.gains
        if (
            not self.definition.ideal_by_gain
            or self.arguments.curve != TABLE
            or np.all(np.diff(gains) >= 0)
        ):
            return ()
        return tuple(gains.tolist())

    @cached_property
    def loop(self) -> Callable[..., None]:
        """The loop over queries without ties, or over queries of pairs."""
        template = over_pairs if self.definition.on_pairs else over_labels
        return self._loop(template, self.definition.function, self.definition.signature)

    @cached_property
    def tied_loop(self) -> Callable[..., None]:
        """The loop over queries with ties that are averaged over."""
        expected, signature = self.definition.expected, self.definition.expected_signature
        if expected is None or signature is None:
            function, signature = self.definition.function, self.definition.signature
            return self._loop(over_tied_orders, function, signature)
        return self._loop(over_labels, expected, signature)

    def _loop(
        self, template: Callable[..., None], function: Callable[..., float], signature: Signature
    ) -> Callable[..., None]:
        values_of_arguments = self._values(signature)
        lazy = template is not over_tied_orders and self._same_as_python
        loop = loop_for(template, function, signature.inputs, values_of_arguments, lazy)

        def run(*inputs: Any, values: Doubles) -> None:
            loop(*inputs, values_of_arguments, values)

        return run

    @property
    def _same_as_python(self) -> bool:
        """Whether compiled code gives the bits that Python gives: of a user's measure it may not.

        Nor of Compat: where the exponent of a power is an integer, Numba multiplies.
        """
        own = self.definition.function.__module__.startswith("podium.measures.definitions.")
        return own and self.definition.name != "Compat"

    def _values(self, signature: Signature) -> tuple[Any, ...]:
        parameters = {each.name: each for each in self.definition.parameters}
        return tuple(self.arguments.argument(name, parameters) for name in signature.arguments)

    def run(self, plan: RankingPlan, inputs: Inputs, block: Block, values: Doubles) -> None:
        """Compute the values of a block's queries."""
        sizes = np.diff(inputs.offsets[block.first : block.last + 1])
        shown = block.kept if plan.conventions.unjudged == "drop" else sizes
        if inputs.pairs is not None and self.definition.on_pairs:
            self._run_pairs(inputs, inputs.pairs, block, shown, values)
        else:
            self._run_labels(plan, block, shown, values)
        choice = self.conventions
        if choice.nothing_relevant != "skip":
            value = choice.nothing_relevant
            # A loss is 1 minus what other measures are: WKT stays a bound of 1 - nDCG.
            values[np.isnan(values)] = value if self.definition.larger_is_better else 1.0 - value
        cut = self.cut_off
        if choice.short_list == "zero" and cut is not None:
            values[shown < cut] = 0.0
        # A query that is left out stays so, however short its list is.
        if choice.nothing_relevant == "skip" and not self.definition.on_pairs:
            values[~_has_relevant(block, self.arguments.rel)] = np.nan
        if choice.missing == "skip":
            values[sizes == 0] = np.nan

    def _run_labels(self, plan: RankingPlan, block: Block, sizes: Ints, values: Doubles) -> None:
        self._check(plan, block)
        tied = bool(block.tied.any())
        for of_tied in (False, True) if tied else (False,):
            loop = self.tied_loop if of_tied else self.loop
            loop(
                block.ranked,
                block.starts,
                block.kept,
                sizes,
                block.ideal,
                block.ideal_starts,
                block.judged,
                block.ties,
                block.tied,
                of_tied,
                values=values,
            )

    def _run_pairs(
        self, inputs: Inputs, pairs: Pairs, block: Block, sizes: Ints, values: Doubles
    ) -> None:
        rows = int(inputs.offsets[block.last] - inputs.offsets[block.first])
        ranks = np.full(rows + 1, np.inf)  # the last entry is for documents that are not ranked
        fill_ranks(
            inputs.offsets, block.first, block.order, block.kept, block.ties, block.tied, ranks
        )
        begin, end = pairs.offsets[block.first], pairs.offsets[block.last]
        counts = np.diff(pairs.offsets[block.first : block.last + 1])
        starts = np.repeat(block.starts, counts)
        better, worse = pairs.better[begin:end], pairs.worse[begin:end]
        self.loop(
            ranks[np.where(better < 0, rows, starts + better)],
            ranks[np.where(worse < 0, rows, starts + worse)],
            pairs.offsets[block.first : block.last + 1] - begin,
            sizes,
            values=values,
        )

    def _check(self, plan: RankingPlan, block: Block) -> None:
        """Refuse what the function cannot know of."""
        ties = plan.conventions.ties
        if ties == "together" and not self.definition.supports_shared_ranks and block.tied.any():
            raise DataError(
                f"scores are tied, and {self.measure!r} cannot be computed with ties={ties!r}",
                hint="Choose conventions with another rule, such as ties='input order'.",
            )
        arguments = self.arguments
        if arguments.curve == TABLE and not (block.whole and block.highest < len(arguments.gains)):
            raise DataError(
                f"{self.measure!r} has gains for labels 0 to {len(arguments.gains) - 1}, and "
                "there are others",
                hint="Give a gain for every label, or integer labels.",
            )
        has_highest = any(each.name == "max" for each in self.definition.parameters)
        if (
            has_highest
            and 0 < np.float32(arguments.max) < block.highest
            and not arguments.labels_are_probabilities
        ):
            raise DataError(
                f"there is a label of {block.highest:g}, above the highest grade of "
                f"{arguments.max:g} of {self.measure!r}",
                hint=f"Give the highest grade that there is: ERR(max={block.highest:g}).",
            )


def _has_relevant(block: Block, rel: float) -> Any:
    some = block.judged > 0
    best = block.ideal[np.where(some, block.ideal_starts, 0)] if len(block.ideal) else -np.inf
    return some & (best >= rel)
