"""Gradients of a loss of whole lists in the memory of one mini-batch.

A loss needs the scores of all documents of a query at once, but its gradient by each score is all
that a document's own graph needs. So all documents are scored without a graph first; then the loss
gives the gradient by each score; then each mini-batch is scored again, with a graph, and the
gradient goes back through it. The result is the gradient of one large graph, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from podium.kernels import Doubles
from podium.losses import Loss
from podium.losses.base import LossValues

Score = Callable[[Any], torch.Tensor]
"""Scores the documents of a mini-batch: one score each."""


def accumulate_gradients(
    score: Score,
    batches: Sequence[Any],
    rows: Sequence[Any],
    evaluate: Callable[[Doubles], LossValues],
) -> LossValues:
    """Add the gradient of a loss to the parameters' gradients, and return the loss.

    Args:
        score: Scores a mini-batch; may draw random numbers (dropout).
        batches: The mini-batches.
        rows: For each mini-batch, which rows of the scores its documents are.
        evaluate: The loss of all scores.
    """
    count = sum(map(len, rows))
    scores = np.empty(count)
    states = _RandomStates(len(batches))
    kept: torch.Tensor | None = None
    for number, (batch, where) in enumerate(zip(batches, rows, strict=True)):
        states.save(number)
        if len(batches) == 1:  # nothing is saved by scoring it twice
            kept = score(batch)
            scores[where] = _array(kept)
        else:
            with torch.no_grad():
                scores[where] = _array(score(batch))
    result = evaluate(scores)
    for number, (batch, where) in enumerate(zip(batches, rows, strict=True)):
        if kept is None:
            states.restore(number)  # the same units are dropped again
        again = score(batch) if kept is None else kept
        gradient = torch.from_numpy(result.gradient[where])
        again.backward(gradient.to(again))  # type: ignore[no-untyped-call]
    return result


def mean_loss(
    loss: Loss, labels: Any, offsets: Any, queries: int
) -> Callable[[Doubles], LossValues]:
    """Return a function of scores: the loss divided by a number of queries, with its gradient."""

    def evaluate(scores: Doubles) -> LossValues:
        result = loss.evaluate(scores, labels, offsets)
        return LossValues(
            result.values / queries, result.gradient / queries, result.curvature / queries
        )

    return evaluate


def _array(scores: torch.Tensor) -> Doubles:
    return np.asarray(scores.detach().double().cpu().numpy(), np.float64)


class _RandomStates:
    """The states of the random generators before each mini-batch.

    They are written into one block that is allocated first: a small allocation that stays after
    each mini-batch would keep the memory that the mini-batch leaves from being used again whole.
    """

    def __init__(self, count: int) -> None:
        self._states = [torch.empty((count, len(state)), dtype=state.dtype) for state in _states()]

    def save(self, number: int) -> None:
        for kept, state in zip(self._states, _states(), strict=True):
            kept[number] = state

    def restore(self, number: int) -> None:
        # Copied: PyTorch reads a generator's state from the beginning of a tensor's memory.
        state, *devices = (kept[number].clone() for kept in self._states)
        torch.set_rng_state(state)
        if devices:
            torch.cuda.set_rng_state_all(devices)


def _states() -> list[torch.Tensor]:
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *devices]
