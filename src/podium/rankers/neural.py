"""Neural scorers in PyTorch: a multi-layer perceptron, or a linear layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.data.seeds import generator
from podium.errors import ArgumentError, DataError, MissingPackageError
from podium.kernels import Doubles, Floats
from podium.losses import Loss
from podium.measures.registry import Measure
from podium.rankers.base import DistributedRanker, FitInterrupted
from podium.rankers.communicator import SINGLE_PROCESS, Communicator
from podium.rankers.fit_progress import Progress
from podium.rankers.integrated_gradients import Layers, integrated_gradients
from podium.rankers.neural_checkpoint import (
    arrays_with_prefix,
    average_gradients,
    make_checkpoint,
    resume_from_checkpoint,
)
from podium.rankers.parameter_checks import check_integer, check_number
from podium.rankers.position_term import OFFSET_RATE
from podium.rankers.sample_weights import FitWeights, evaluate_weighted, weighted_blocks
from podium.rankers.storage import Archive
from podium.rankers.training_data import TrainingData, query_blocks
from podium.rankers.validation_monitor import ValidationMonitor
from podium.scorers.models import NetworkModel

"""How far the offsets of ranks move to where a batch alone would have them."""


class NeuralRanker(DistributedRanker):
    """A multi-layer perceptron that scores each document, trained by AdamW on any loss.

    Features are standardized to mean 0 and standard deviation 1 over the training rows, and missing
    values become 0. A batch consists of whole queries of any length, without padding.

    Args:
        loss: The loss, or its text.
        hidden_layer_sizes: The width of each hidden layer; none makes the scorer linear.
        epochs: The maximum number of passes over the training queries.
        learning_rate: AdamW's learning rate.
        weight_decay: AdamW's weight decay.
        batch_queries: The number of queries per batch.
        early_stopping_rounds: With an ``eval_set``: stop after this many epochs without a better
            measure; None never stops early.
        measure: The measure of the validation queries.
        random_state: The seed of the initial weights and of the batches. The same seed gives the
            same model on the same machine with the same number of PyTorch's threads; with another
            number, sums are rounded differently.

    Attributes:
        module_: The scorer, a ``torch.nn.Module``.
        mean_: The mean of each feature over the training rows.
        scale_: The standard deviation of each feature.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((200, 3))
        >>> y = np.round(3 * X[:, 0])
        >>> ranker = NeuralRanker("ListMLE(k=5)", hidden_layer_sizes=[8], epochs=3)
        >>> ranker = ranker.fit(X, y, group=[20] * 10)
        >>> ranker.predict(X).shape
        (200,)
    """

    streams = True
    takes_weights = True
    has_loss = True
    scores_fast = False
    extra = "neural"
    limits = ("A missing value is scored as the mean of its feature in training.",)

    def __init__(
        self,
        loss: Loss | str = "ListMLE(k=10)",
        *,
        hidden_layer_sizes: Sequence[int] = (64, 32),
        epochs: int = 100,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        batch_queries: int = 32,
        early_stopping_rounds: int | None = 10,
        measure: str | Measure = "nDCG@10",
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_queries = batch_queries
        self.early_stopping_rounds = early_stopping_rounds
        self.measure = measure
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are invalid for any data."""
        for name in ("epochs", "batch_queries"):
            check_integer(name, getattr(self, name))
        check_number("learning_rate", self.learning_rate, positive=True)
        check_number("weight_decay", self.weight_decay)
        check_integer("early_stopping_rounds", self.early_stopping_rounds, optional=True)
        if isinstance(self.hidden_layer_sizes, str) or not isinstance(
            self.hidden_layer_sizes, Sequence | np.ndarray
        ):
            raise ArgumentError(
                f"hidden_layer_sizes is {self.hidden_layer_sizes!r}",
                hint="Give a list of integers.",
            )
        for width in self.hidden_layer_sizes:
            check_integer("a width in hidden_layer_sizes", width)

    @property
    def backend(self) -> str:
        """The library that trains: PyTorch."""
        return "torch"

    def _fit(
        self,
        data: TrainingData,
        validation: TrainingData | None,
        progress: Progress | None,
        communicator: Communicator = SINGLE_PROCESS,
        weights: FitWeights | None = None,
    ) -> None:
        torch = _torch()
        from podium.rankers.torch_loss import RankingLoss

        rng = generator(self.random_state)
        self._set_scale(data, communicator, weights)
        self.module_ = self._module()
        for parameter in self.module_.parameters():
            bound = 1 / np.sqrt(parameter.shape[-1])
            drawn = rng.uniform(-bound, bound, tuple(parameter.shape))
            parameter.data = torch.tensor(drawn, dtype=torch.float32)
        criterion = RankingLoss(self.loss_function())
        optimizer = torch.optim.AdamW(
            self.module_.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        monitor: ValidationMonitor[dict[str, Floats]] = ValidationMonitor(
            lambda _state, block: self._predict(block.features),
            self.measure,
            validation,
            progress,
            communicator,
        )
        epoch = 0
        checkpoint = communicator.load_checkpoint()
        if checkpoint is not None:
            self._set_state(arrays_with_prefix("now.", checkpoint))
            epoch = resume_from_checkpoint(checkpoint, optimizer, monitor, rng)
        try:
            while epoch < self.epochs and not monitor.stops_early(
                epoch, self.early_stopping_rounds
            ):
                total = 0.0
                for batch, batch_weights in self._batches(data, rng, communicator, weights):
                    optimizer.zero_grad()
                    if batch is not None:
                        scores = self.module_(torch.from_numpy(self._scaled(batch.features)))
                        labels = torch.from_numpy(batch.labels)
                        options: dict[str, Doubles] = {}
                        if batch_weights is not None:
                            options = dict([batch_weights.argument()])
                            if batch_weights.position is not None:
                                scores = self._move_offsets(scores, batch, batch_weights)
                        value = criterion(scores, labels, batch.offsets, **options)
                        value.backward()
                        total += float(value.detach()) * len(batch)
                    if communicator.size > 1:
                        average_gradients(self.module_, batch, communicator)
                    optimizer.step()
                epoch += 1
                loss_sum, queries = communicator.all_reduce(np.array([total, len(data)]))
                monitor(epoch, self._state(), float(loss_sum / queries))
                make_state = partial(make_checkpoint, epoch, self._state(), optimizer, monitor, rng)
                communicator.save_checkpoint(epoch, make_state)
        except KeyboardInterrupt as stop:
            if monitor.model is None:
                raise
            self._set_state(monitor.model)
            raise FitInterrupted from stop
        if monitor.model is not None:
            self._set_state(monitor.model)

    def _move_offsets(self, scores: Any, batch: Dataset, weights: FitWeights) -> Any:
        """Return scores as the loss sees them, and move the offsets of the batch's ranks."""
        torch = _torch()
        position = weights.position
        assert position is not None
        own = scores.detach().double().numpy().reshape(-1)
        shifted = scores.reshape(-1) + torch.from_numpy(position.shifted(own) - own).float()
        evaluation = evaluate_weighted(self.loss_function(), own, batch, weights)
        position.step(evaluation.gradient, evaluation.curvature, OFFSET_RATE)
        return shifted

    def _batches(
        self,
        data: TrainingData,
        rng: np.random.Generator,
        communicator: Communicator,
        weights: FitWeights | None,
    ) -> Iterator[tuple[Dataset | None, FitWeights | None]]:
        """Yield batches of this process's queries, then None while other processes have more.

        With each go the weights of its queries or rows, relative to the mean weight of all
        queries: a batch of unimportant queries makes a small step.
        """
        size = -(-self.batch_queries // communicator.size)
        # Reduced before the first batch: all processes must reduce in the same order.
        most = self._max_batches(data, size, communicator) if communicator.size > 1 else 0
        steps = 0
        mean_weight = 1.0 if weights is None else weights.total / len(data)
        for block, block_weights in weighted_blocks(query_blocks(data), weights):
            order = rng.permutation(len(block))
            for first in range(0, len(order), size):
                chosen = np.sort(order[first : first + size])
                own = None
                if block_weights is not None:
                    own = block_weights.select(chosen, block.offsets).relative_to(mean_weight)
                yield block.select(chosen), own
                steps += 1
        yield from [(None, None)] * (most - steps)

    def _max_batches(self, data: TrainingData, size: int, communicator: Communicator) -> int:
        """Return the number of batches of the process with the most queries."""
        counts = np.zeros(communicator.size)
        counts[communicator.rank] = sum(-(-len(block) // size) for block in query_blocks(data))
        return int(communicator.all_reduce(counts).max())

    def _set_scale(
        self, data: TrainingData, communicator: Communicator, weights: FitWeights | None
    ) -> None:
        sums = np.zeros((3, self.n_features_in_))
        for block, block_weights in weighted_blocks(query_blocks(data), weights):
            present = np.isfinite(block.features)
            values = np.where(present, block.features, 0.0).astype(np.float64)
            row_weights = np.ones(block.rows)
            if block_weights is not None:
                row_weights = block_weights.of_rows(block.offsets)
            sums += row_weights @ present, row_weights @ values, row_weights @ values**2
        count, total, total_square = communicator.all_reduce(sums)
        count = np.where(count > 0.0, count, 1.0)
        self.mean_ = total / count
        variance = np.maximum(total_square / count - self.mean_**2, 0.0)
        deviation = np.sqrt(variance)
        # A feature that hardly varies only has rounding errors: it is centered, but not scaled.
        constant = deviation <= 1e-7 * np.maximum(np.abs(self.mean_), 1.0)
        self.scale_ = np.where(constant, 1.0, deviation)

    def _scaled(self, features: Floats) -> Floats:
        scaled = (features - self.mean_) / self.scale_
        return np.asarray(np.nan_to_num(scaled, nan=0.0), np.float32)

    def _module(self) -> Any:
        torch = _torch()
        widths = [self.n_features_in_, *self.hidden_layer_sizes]
        layers: list[Any] = []
        for before, after in pairwise(widths):
            layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1))

    def _state(self) -> dict[str, Floats]:
        return {name: value.numpy().copy() for name, value in self.module_.state_dict().items()}

    def _set_state(self, state: dict[str, Floats]) -> None:
        torch = _torch()
        self.module_.load_state_dict({name: torch.tensor(value) for name, value in state.items()})

    def _predict(self, features: Floats) -> Doubles:
        layers = self._layers()
        scores = np.empty(len(features), np.float32)
        for first in range(0, len(features), 1 << 16):
            values = self._scaled(features[first : first + (1 << 16)]).astype(np.float64)
            for number, (weights, biases) in enumerate(layers):
                values = (np.maximum(values, 0.0) if number else values) @ weights.T + biases
            # In which order a product is added up depends on a row's position in its batch. That
            # changes the last bits of a double, which rounding drops: equal documents have equal
            # scores.
            scores[first : first + (1 << 16)] = values[:, 0]
        return scores.astype(np.float64)

    def _contributions(self, features: Floats) -> Doubles:
        inputs = self._scaled(features).astype(np.float64)
        return integrated_gradients(self._layers(), inputs.mean(axis=0), inputs)

    def contribution_method(self) -> str:
        """Return how contributions of features are defined, as a phrase."""
        return "integrated gradients from the query's mean document"

    def _layers(self) -> Layers:
        # Layers and rectifiers alternate: the layers have even numbers.
        state = {name: value.astype(np.float64) for name, value in self._state().items()}
        numbers = sorted(int(name.split(".")[0]) for name in state if name.endswith(".weight"))
        return [(state[f"{number}.weight"], state[f"{number}.bias"]) for number in numbers]

    def _fitted_model(self) -> NetworkModel:
        layers = tuple(
            (weights.astype(np.float32), biases.astype(np.float32))
            for weights, biases in self._layers()
        )
        return NetworkModel(self.feature_names_, self.mean_, self.scale_, layers)

    def _archive(self) -> Archive:
        arrays = {f"weights.{name}": value for name, value in self._state().items()}
        return Archive("", {}, {"mean": self.mean_, "scale": self.scale_, **arrays})

    def _restore(self, archive: Archive) -> None:
        self.mean_, self.scale_ = archive.arrays["mean"], archive.arrays["scale"]
        self.module_ = self._module()
        try:
            self._set_state(arrays_with_prefix("weights.", archive))
        except RuntimeError as error:
            raise DataError(
                f"the weights do not match the network ({error})", hint="Save it again."
            ) from error


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingPackageError("torch", extra="neural") from error
    return torch
