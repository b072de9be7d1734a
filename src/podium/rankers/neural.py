"""Neural scorers in PyTorch, from linear to a multi-layer perceptron."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.data.seeds import generator
from podium.errors import DataError, MissingPackageError
from podium.kernels import Doubles, Floats
from podium.losses import Loss
from podium.measures import Measure
from podium.rankers.base import Progress, Ranker, Training, blocks_of
from podium.rankers.storage import Archive
from podium.rankers.watch import Watch


class NeuralRanker(Ranker):
    """A multi-layer perceptron that scores each document, trained by Adam on any loss.

    Features are brought to mean 0 and deviation 1 over the training rows (missing ones to 0). A
    batch is some whole queries, however long: nothing is padded.

    Args:
        loss: The loss, or its text.
        hidden: The width of each hidden layer; none makes the scorer linear.
        epochs: How often every query is seen, at most.
        learning_rate: Adam's step.
        weight_decay: The weight of the regulariser (AdamW's).
        batch_queries: Queries a batch.
        patience: With validation queries: stop after this many epochs without a better measure.
        measure: What the validation queries are measured by.
        seed: Draws the first weights and the batches; the same seed gives the same model.

    Attributes:
        module_: The scorer, a ``torch.nn.Module``.

    Example:
        >>> random = np.random.default_rng(0)
        >>> X = random.random((200, 3))
        >>> y = np.round(3 * X[:, 0])
        >>> ranker = NeuralRanker("ListMLE(k=5)", hidden=[8], epochs=3).fit(X, y, group=[20] * 10)
        >>> ranker.predict(X).shape
        (200,)
    """

    streams = True

    def __init__(
        self,
        loss: Loss | str = "ListMLE(k=10)",
        *,
        hidden: Sequence[int] = (64, 32),
        epochs: int = 100,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        batch_queries: int = 32,
        patience: int | None = 10,
        measure: str | Measure = "nDCG@10",
        seed: int = 0,
    ) -> None:
        self.loss = loss
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_queries = batch_queries
        self.patience = patience
        self.measure = measure
        self.seed = seed

    def _fit(self, data: Training, validation: Training | None, progress: Progress | None) -> None:
        torch = _torch()
        from podium.rankers.torch_loss import RankingLoss

        random = generator(self.seed)
        self._set_scale(data)
        self.module_ = self._module()
        for parameter in self.module_.parameters():
            bound = 1 / np.sqrt(parameter.shape[-1])
            drawn = random.uniform(-bound, bound, tuple(parameter.shape))
            parameter.data = torch.tensor(drawn, dtype=torch.float32)
        criterion = RankingLoss(self._loss())
        optimiser = torch.optim.AdamW(
            self.module_.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        watch: Watch[dict[str, Floats]] = Watch(
            lambda _state, block: self._predict(block.features), self.measure, validation, progress
        )
        try:
            for epoch in range(1, self.epochs + 1):
                total = 0.0
                for batch in self._batches(data, random):
                    optimiser.zero_grad()
                    scores = self.module_(torch.from_numpy(self._scaled(batch.features)))
                    value = criterion(scores, torch.from_numpy(batch.labels), batch.offsets)
                    value.backward()
                    optimiser.step()
                    total += float(value.detach()) * len(batch)
                watch(epoch, self._state(), total / len(data))
                if self.patience is not None and epoch - watch.best_step >= self.patience:
                    break
        except KeyboardInterrupt:  # the best epoch so far is kept
            pass
        if watch.model is not None:
            self._set_state(watch.model)

    def _batches(self, data: Training, random: np.random.Generator) -> Iterator[Dataset]:
        for block in blocks_of(data):
            order = random.permutation(len(block))
            for first in range(0, len(order), self.batch_queries):
                yield block.select(np.sort(order[first : first + self.batch_queries]))

    def _set_scale(self, data: Training) -> None:
        count = np.zeros(self.n_features_in_)
        total, square = np.zeros_like(count), np.zeros_like(count)
        for block in blocks_of(data):
            known = np.isfinite(block.features)
            values = np.where(known, block.features, 0.0).astype(np.float64)
            count += known.sum(axis=0)
            total += values.sum(axis=0)
            square += (values**2).sum(axis=0)
        count = np.maximum(count, 1.0)
        self.mean_ = total / count
        variance = np.maximum(square / count - self.mean_**2, 0.0)
        spread = np.sqrt(variance)
        # What hardly varies carries rounding errors only; it is left as it is, centred.
        constant = spread <= 1e-7 * np.maximum(np.abs(self.mean_), 1.0)
        self.scale_ = np.where(constant, 1.0, spread)

    def _scaled(self, features: Floats) -> Floats:
        scaled = (features - self.mean_) / self.scale_
        return np.nan_to_num(scaled, nan=0.0).astype(np.float32)

    def _module(self) -> Any:
        torch = _torch()
        widths = [self.n_features_in_, *self.hidden]
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
        torch = _torch()
        parts = [np.empty(0)]
        with torch.inference_mode():
            for first in range(0, len(features), 1 << 16):
                rows = torch.from_numpy(self._scaled(features[first : first + (1 << 16)]))
                parts.append(self.module_(rows).reshape(-1).double().numpy())
        return np.concatenate(parts)

    def _archive(self) -> Archive:
        arrays = {f"weights.{name}": value for name, value in self._state().items()}
        return Archive("", {}, {"mean": self.mean_, "scale": self.scale_, **arrays})

    def _restore(self, archive: Archive) -> None:
        self.mean_, self.scale_ = archive.arrays["mean"], archive.arrays["scale"]
        self.module_ = self._module()
        try:
            self._set_state(
                {
                    name.removeprefix("weights."): value
                    for name, value in archive.arrays.items()
                    if name.startswith("weights.")
                }
            )
        except RuntimeError as error:
            raise DataError(f"weights do not fit ({error})", hint="Save it again.") from error


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingPackageError("torch", extra="neural") from error
    return torch
