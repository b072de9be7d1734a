"""The training of a text ranker: exact gradients, continued after a stop, in several processes.

A loss needs the scores of all documents of a query at once, but its gradient by each score is all
that a document's own graph needs. So all documents are scored without a graph first; then the loss
gives the gradient by each score; then each mini-batch is scored again, with a graph, and the
gradient goes back through it. The result is the gradient of one large graph, exactly.

Where ``torch.distributed`` has several processes, each scores its share of the queries, and
gradients are summed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from podium.data.seeds import generator
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Floats, Ints
from podium.losses import Loss
from podium.losses.base import LossValues
from podium.rankers.base import FitInterrupted
from podium.rankers.communicator import SINGLE_PROCESS, Communicator
from podium.rankers.fit_progress import FitProgress, Progress
from podium.rankers.neural_checkpoint import (
    arrays_with_prefix,
    make_checkpoint,
    resume_from_checkpoint,
)
from podium.rankers.position_term import OFFSET_RATE, PositionTerm
from podium.rankers.storage import Archive, read_archive, write_archive
from podium.rankers.text_encoder import TextEncoder, mini_batches, score_batch, score_pairs
from podium.rankers.text_pairs import Pair, TextPairs
from podium.rankers.training_data import ValidationSets
from podium.rankers.validation_monitor import ValidationMonitor

_CHECKPOINT = "checkpoint.podium"


class TextTraining:
    """One training of a ranker's encoder.

    Args:
        ranker: Its parameters are those of the training.
        encoder: What is trained.
        data: Training queries.
        validation: Validation queries, if there are any.
        progress: Called after each epoch.
    """

    def __init__(
        self,
        ranker: Any,  # a TextRanker, whose module imports this one
        encoder: TextEncoder,
        data: TextPairs,
        validation: TextPairs | None,
        progress: Progress | None,
    ) -> None:
        self._ranker, self._encoder, self._data = ranker, encoder, data
        self._loss, self._rng = ranker.loss_function(), generator(ranker.random_state)
        self._optimizer = torch.optim.AdamW(
            encoder.parameters(), lr=ranker.learning_rate, weight_decay=ranker.weight_decay
        )
        self._steps = -(-len(data.queries) // ranker.batch_queries) * ranker.epochs
        self._processes = text_processes(encoder.device)
        queries = None if validation is None else validation.queries
        pairs = [] if validation is None else validation.pairs
        sets = None if queries is None else ValidationSets({"valid_0": len(queries)})
        ranker.evals_result_ = {}
        self._monitor: ValidationMonitor[dict[str, Floats]] = ValidationMonitor(
            lambda _state, _block: score_pairs(encoder, pairs, ranker.mini_batch_size),
            ranker.measure,
            queries,
            FitProgress(ranker, sets, (), progress),
            # All have the same validation queries, but must not stop at different epochs.
            self._processes,
        )
        self._checkpoint: Path | None = None
        if ranker.checkpoint_folder is not None:
            self._checkpoint = Path(ranker.checkpoint_folder) / _CHECKPOINT
            weights = hashlib.sha256()
            for value in self._state().values():
                weights.update(np.ascontiguousarray(value).tobytes())
            self._start = {
                "parameters": ranker.plain_parameters(),
                "rows": [None if each is None else each.digest() for each in (data, validation)],
                "weights": weights.hexdigest(),
            }

    def run(self) -> None:
        """Train, and set the best weights at the end, after Ctrl-C too."""
        epoch = self._resume()
        require_same(epoch, self._processes)
        try:
            self._run(epoch)
        except KeyboardInterrupt as stop:
            if self._monitor.model is None:
                raise
            self._finish()
            raise FitInterrupted from stop
        self._finish()

    def _run(self, epoch: int) -> None:
        ranker, queries = self._ranker, len(self._data.queries)
        while epoch < ranker.epochs and not self._monitor.stops_early(
            epoch, ranker.early_stopping_rounds
        ):
            self._encoder.train()
            total, order = 0.0, self._rng.permutation(queries)
            for step, first in enumerate(range(0, queries, ranker.batch_queries)):
                self._set_rate(epoch * (self._steps // ranker.epochs) + step)
                total += self._step(order[first : first + ranker.batch_queries])
            epoch += 1
            (total,) = self._processes.all_reduce(np.array([total]))
            self._monitor(epoch, self._state(), total / queries)
            if self._processes.rank == 0:
                self._save(epoch)

    def _step(self, chosen: Ints) -> float:
        """Take one step on some queries; return the sum of the losses of this process's.

        Dropout has a seed per query, so that it does not depend on who scores which of them.
        """
        self._optimizer.zero_grad()
        total, position, offsets = 0.0, self._data.position, self._data.queries.offsets
        sums = np.zeros((3, 0 if position is None else len(position.offsets)))
        seeds = self._rng.integers(2**62, size=len(chosen))
        own = slice(self._processes.rank, None, self._processes.size)
        # One by one: the memory is that of one query's tokens.
        for query, seed in zip(chosen[own].tolist(), seeds[own].tolist(), strict=True):
            torch.manual_seed(seed)
            own_term = None
            if position is not None:
                own_term = position.select(slice(offsets[query], offsets[query + 1]))
            result = add_gradients(
                self._encoder, self._loss, *self._data.query(query),
                size=self._ranker.mini_batch_size, queries=len(chosen), position=own_term,
            )  # fmt: skip
            total += result.total
            if own_term is not None:
                sums += own_term.sums(result.gradient, result.curvature)
        sum_gradients(self._encoder, self._processes)
        if position is not None:
            position.move(self._processes.all_reduce(sums), OFFSET_RATE)
        torch.nn.utils.clip_grad_norm_(self._encoder.parameters(), self._ranker.max_grad_norm)
        self._optimizer.step()
        return total

    def _set_rate(self, done: int) -> None:
        """Let the learning rate grow during the warm-up, then fall to 0."""
        steps, warmup = self._steps, int(self._ranker.warmup_ratio * self._steps)
        share = (done + 1) / (warmup + 1) if done < warmup else (steps - done) / (steps - warmup)
        for group in self._optimizer.param_groups:
            group["lr"] = self._ranker.learning_rate * share

    def _finish(self) -> None:
        if self._monitor.model is not None:
            self._set_state(self._monitor.model)
        self._encoder.eval()  # several threads may score with it, so that none has dropout

    def _save(self, epoch: int) -> None:
        if self._checkpoint is None:
            return
        self._checkpoint.parent.mkdir(parents=True, exist_ok=True)
        archive = make_checkpoint(epoch, self._state(), self._optimizer, self._monitor, self._rng)
        metadata = archive.metadata | self._start | {"evals_result": self._ranker.evals_result_}
        if self._data.position is not None:
            metadata["offsets"] = self._data.position.offsets.tolist()
        write_archive(Archive("", metadata, archive.arrays), self._checkpoint)

    def _resume(self) -> int:
        """Continue a fit that was stopped; return the number of epochs that are done."""
        path = self._checkpoint
        if path is None or not path.exists():
            return 0
        hint = "Delete it to start anew, or give another checkpoint_folder."
        try:
            checkpoint = read_archive(path)
        except DataError as error:
            raise DataError(error.problem, path=path, hint=hint) from error
        for name, words in (
            ("parameters", "of a ranker with other parameters"),
            ("rows", "of a fit to other rows"),
            ("weights", "of a fit that started from other weights"),
        ):
            if checkpoint.metadata.get(name) != self._start[name]:
                raise DataError(f"is the checkpoint {words}", path=path, hint=hint)
        try:
            self._set_state(arrays_with_prefix("now.", checkpoint))
            epoch = resume_from_checkpoint(checkpoint, self._optimizer, self._monitor, self._rng)
            self._ranker.evals_result_ = checkpoint.metadata["evals_result"]
            if self._data.position is not None:
                self._data.position.offsets[:] = checkpoint.metadata["offsets"]
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0][:200]
            problem = f"is not a whole checkpoint ({reason})"
            raise DataError(problem, path=path, hint=hint) from error
        return epoch

    def _state(self) -> dict[str, Floats]:
        values = self._encoder.state_dict()
        return {name: value.detach().cpu().numpy().copy() for name, value in values.items()}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        self._encoder.load_state_dict({name: torch.tensor(value) for name, value in state.items()})


def add_gradients(
    encoder: TextEncoder,
    loss: Loss,
    pairs: Sequence[Pair],
    labels: Any,
    *,
    size: int,
    queries: int = 1,
    position: PositionTerm | None = None,
) -> LossValues:
    """Add the gradient of a query's loss to the parameters' gradients; return the loss.

    Args:
        encoder: What scores the pairs, with or without dropout.
        loss: The loss.
        pairs: The pairs of the query.
        labels: Their labels.
        size: The number of pairs in a mini-batch.
        queries: The number of queries whose mean is minimized: the gradient is divided by it.
        position: What the loss adds to the scores.
    """
    batches, rows = mini_batches(encoder, pairs, size)
    scores = np.empty(len(pairs))
    seeds = torch.randint(2**62, (len(batches),)).tolist()
    for seed, batch, where in zip(seeds, batches, rows, strict=True):
        torch.manual_seed(seed)
        with torch.set_grad_enabled(len(batches) == 1):  # nothing is saved by scoring it twice
            kept = score_batch(encoder, batch)
        scores[where] = kept.detach().double().cpu().numpy()
    if position is not None:
        scores = position.shifted(scores)
    result = loss.evaluate(scores, labels, [0, len(pairs)])
    for seed, batch, where in zip(seeds, batches, rows, strict=True):
        torch.manual_seed(seed)  # the same units are dropped again
        again = kept if len(batches) == 1 else score_batch(encoder, batch)
        gradient = torch.from_numpy(result.gradient[where] / queries)
        again.backward(gradient.to(again))  # type: ignore[no-untyped-call]
    return result


class TorchProcesses(Communicator):
    """The default process group of ``torch.distributed``.

    Args:
        device: Where tensors are summed.
    """

    def __init__(self, device: torch.device) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._device = device

    def all_reduce(self, values: Doubles) -> Doubles:
        """Sum the values of all processes."""
        summed = torch.from_numpy(np.ascontiguousarray(values)).to(self._device)
        dist.all_reduce(summed)
        return summed.cpu().numpy()


def text_processes(device: torch.device) -> Communicator:
    """Return the processes of the default process group, or this process alone."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return TorchProcesses(device)
    return SINGLE_PROCESS


def require_same(epoch: int, processes: Communicator) -> None:
    """Raise an ArgumentError in all processes unless all continue after the same epoch."""
    epochs, squares = processes.all_reduce(np.array([epoch, epoch**2], np.float64))
    if processes.size * squares != epochs**2:
        raise ArgumentError(
            "the processes have different checkpoints",
            hint="Give a checkpoint_folder that all of them read.",
        )


def sum_gradients(module: Any, processes: Communicator) -> None:
    """Replace each gradient by the sum over processes; what no process used keeps none."""
    if processes.size == 1:
        return
    parameters = list(module.parameters())
    own = np.array([parameter.grad is not None for parameter in parameters], np.float64)
    used = processes.all_reduce(own) > 0
    for parameter, is_used in zip(parameters, used, strict=True):
        if is_used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
