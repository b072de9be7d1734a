"""A measure is a value: ``nDCG@10`` is an expression, a string and a dictionary key at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from podium.errors import ArgumentError
from podium.measures.parameters import Value


@dataclass(frozen=True, repr=False)
class Measure:
    """A measure with its parameters and its cut-off, equal to any other written alike.

    Call it to set parameters, and ``@`` a number to look at the first documents only.

    Attributes:
        name: Under which the measure is registered.
        parameters: The parameters that were set, in the order the measure lists them.
        cut_off: How many documents from the top are looked at; None means all of them.

    Example:
        >>> from podium.measures import P, kNDCG, nDCG
        >>> nDCG@10, P(rel=2)@5, kNDCG(k=10)@5
        (nDCG@10, P(rel=2)@5, kNDCG(k=10)@5)
        >>> nDCG@10 == nDCG(gains="linear")@10
        False
    """

    name: str
    parameters: tuple[tuple[str, Value], ...] = ()
    cut_off: int | None = None

    def __call__(self, **parameters: object) -> Measure:
        """The same measure with parameters set."""
        from podium.measures.registry import definition_of

        definition = definition_of(self)
        chosen: dict[str, Value] = dict(self.parameters)
        for name, value in parameters.items():
            parameter = definition.parameter(name)
            try:
                chosen[name] = parameter.checked(value)
            except (TypeError, ValueError) as error:
                raise ArgumentError(
                    f"{self.name} does not take {name}={value!r}", hint=f"{error}."
                ) from error
        in_order = tuple(
            (each.name, chosen[each.name]) for each in definition.parameters if each.name in chosen
        )
        return replace(self, parameters=in_order)

    def __matmul__(self, cut_off: float) -> Measure:
        """The same measure of the first documents only, or at a level: ``IPrec@0.1``."""
        from podium.measures.registry import definition_of

        for parameter in definition_of(self).parameters:
            if self.name.lower() in parameter.suffix_of:
                return self(**{parameter.name: cut_off})
        if not definition_of(self).takes_cut_off:
            raise ArgumentError(f"{self.name} has no cut-off", hint=f"Write {self!r} alone.")
        if isinstance(cut_off, bool) or not isinstance(cut_off, int) or cut_off < 1:
            raise ArgumentError(
                f"the cut-off of {self.name} is {cut_off!r}", hint="Give an integer of at least 1."
            )
        return replace(self, cut_off=cut_off)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters)
        arguments = f"({parameters})" if parameters else ""
        cut_off = "" if self.cut_off is None else f"@{self.cut_off}"
        return f"{self.name}{arguments}{cut_off}"

    def __getitem__(self, name: str) -> Value | None:
        """The value of a parameter: as set, else its default, else None."""
        from podium.measures.registry import definition_of

        default = definition_of(self).parameter(name).default
        return dict(self.parameters).get(name, default)

    @property
    def larger_is_better(self) -> bool:
        """False for losses."""
        from podium.measures.registry import definition_of

        return definition_of(self).larger_is_better
