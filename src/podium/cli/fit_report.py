"""The report at the end of ``podium train`` and ``podium tune``: what was read and learned."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from podium.cli.failing import printed_warnings
from podium.cli.printing import print_facts
from podium.data import Dataset, ShardSet

if TYPE_CHECKING:
    from podium.hybrid.objectives import Balance
    from podium.rankers import Ranker, TextRanker


@dataclass
class FitReport:
    """Facts about a fit, collected while it runs.

    Attributes:
        facts: Names and values, for JSON; ``text`` has the same in words.
        text: What is printed for people.
    """

    measure: str | None
    facts: dict[str, Any] = field(default_factory=dict)
    text: dict[str, str] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _steps: int = 0
    _values: list[float] = field(default_factory=list)

    def read(self, role: str, path: str, data: Dataset | ShardSet) -> None:
        """Note a data set: its queries, and those without any preference between documents."""
        blank = blank_queries(data)
        columns = len(data.feature_names)
        self.facts[role] = {
            "source": path,
            "queries": len(data),
            "documents": data.rows,
            "features": columns,
            "blank_queries": blank,
        }
        features = f", {columns} features" if columns else ""  # pairs of texts have none
        unused = f" ({blank:,} of them prefer no document: all labels equal)" if blank else ""
        self.text[role] = (
            f"{path}: {len(data):,} queries{unused}, {data.rows:,} documents{features}"
        )

    def matched(self, role: str, labels: str, known: int, rows: int, used: int, all_: int) -> None:
        """Note how many documents and queries of a data set the labels were for."""
        self.facts[f"{role}_labels"] = {
            "source": labels,
            "documents_labeled": known,
            "documents": rows,
            "queries_used": used,
            "queries_left_out": all_ - used,
        }
        self.text[f"{role} labels"] = (
            f"{labels}: {known:,} of {rows:,} documents, the others count as 0; {used:,} of "
            f"{all_:,} queries, {all_ - used:,} left out"
        )

    def following(self, progress: Callable[..., None]) -> Callable[..., None]:
        """Return a function for the steps of a fit that also notes them."""

        def follow(step: int, loss: float, value: float | None) -> None:
            self._steps = max(self._steps, step)
            if value is not None:
                self._values.append(value)
            progress(step, loss, value)

        return follow

    def learned(
        self, ranker: Ranker | TextRanker, output: str, values: Sequence[float] | None = None
    ) -> None:
        """Note what a fit came to.

        Args:
            ranker: The fitted ranker.
            output: Where it was saved.
            values: The measure after each step; by default those of the steps that were followed.
        """
        from podium.measures.names import parse_measure

        trees = getattr(ranker, "n_estimators_", None)
        iterations = getattr(ranker, "n_iter_", None)
        if trees is not None:
            tried = f", the best of {self._steps}" if self._steps > trees else ""
            self._note("trees", int(trees), f"{trees}{tried}")
        elif iterations is not None:
            self._note("iterations", int(iterations), f"{iterations}")
        elif self._steps:
            self._note("steps", self._steps, f"{self._steps}")
        values = self._values if values is None else values
        if values and self.measure is not None:
            larger = parse_measure(self.measure).larger_is_better
            best = max(values) if larger else min(values)
            self.facts["validation_measure"] = {self.measure: best}
            self.text[f"validation {self.measure}"] = f"{best:.4f}"
        self.saved(ranker, output)

    def saved(self, ranker: Ranker | TextRanker, output: str) -> None:
        """Note the ranker that was saved, and the time that all took."""
        seconds = time.monotonic() - self._began
        self._note("seconds", round(seconds, 3), f"{seconds:.1f}")
        self._note("ranker", type(ranker).__name__, repr(ranker).replace("\n", " "))
        self._note("saved", output, output)

    def chosen(self, params: dict[str, Any], value: float, trials: int) -> None:
        """Note what a search chose."""
        self.facts["trials"] = trials
        self.facts["chosen"] = params
        self.facts["validation_measure"] = {self.measure: value}
        words = ", ".join(
            f"{name}={json.dumps(each, default=repr)}" for name, each in params.items()
        )
        self.text["trials"] = str(trials)
        self.text["chosen"] = words
        self.text[f"validation {self.measure}"] = f"{value:.4f}"

    def balanced(self, balance: Balance) -> None:
        """Note how much of a feature the requirements allowed."""
        from podium.hybrid.report import hybrid_json

        self.facts["balance"] = hybrid_json(balance)  # people have read it above

    def _note(self, name: str, value: Any, text: str) -> None:
        self.facts[name] = value
        self.text[name] = text

    def print(self, *, as_json: bool) -> None:
        """Print the report: JSON on standard output, or text for people on standard error."""
        if as_json:
            typer.echo(json.dumps(self.facts | {"warnings": printed_warnings}, default=repr))
        else:
            print_facts(self.text, to_stderr=True)


def blank_queries(data: Dataset | ShardSet) -> int:
    """Count the queries in which all labels are equal, from which nothing can be learned."""
    blocks = data.blocks() if isinstance(data, ShardSet) else [data]
    count = 0
    for block in blocks:
        top = np.maximum.reduceat(block.labels, block.offsets[:-1])
        bottom = np.minimum.reduceat(block.labels, block.offsets[:-1])
        count += int(np.sum(top == bottom))
    return count
