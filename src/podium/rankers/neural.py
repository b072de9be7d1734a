"""Neural scorers in PyTorch, from linear to a multi-layer perceptron."""

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
from podium.measures import Measure
from podium.rankers.base import FitInterrupted, Progress, Ranker, Training, blocks_of
from podium.rankers.communicator import ALONE, Together
from podium.rankers.neural_epochs import arrays_under, resume_epochs, saved_epochs, share_gradients
from podium.rankers.parameter_checks import check_integer, check_number, check_patience
from podium.rankers.storage import Archive
from podium.rankers.validation_monitor import Watch


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

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are wrong whatever the data are."""
        for name in ("epochs", "batch_queries"):
            check_integer(name, getattr(self, name))
        check_number("learning_rate", self.learning_rate, positive=True)
        check_number("weight_decay", self.weight_decay)
        check_patience(self.patience)
        if isinstance(self.hidden, str) or not isinstance(self.hidden, Sequence | np.ndarray):
            raise ArgumentError(f"hidden is {self.hidden!r}", hint="Give a list of widths.")
        for width in self.hidden:
            check_integer("a width of hidden", width)

    def _fit(
        self,
        data: Training,
        validation: Training | None,
        progress: Progress | None,
        together: Together = ALONE,
    ) -> None:
        torch = _torch()
        from podium.rankers.torch_loss import RankingLoss

        random = generator(self.seed)
        self._set_scale(data, together)
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
            lambda _state, block: self._predict(block.features),
            self.measure,
            validation,
            progress,
            together,
        )
        epoch = 0
        saved = together.saved()
        if saved is not None:
            self._set_state(arrays_under("now.", saved))
            epoch = resume_epochs(saved, optimiser, watch, random)
        try:
            while epoch < self.epochs and not self._waited_enough(epoch, watch):
                total = 0.0
                for batch in self._batches(data, random, together):
                    optimiser.zero_grad()
                    if batch is not None:
                        scores = self.module_(torch.from_numpy(self._scaled(batch.features)))
                        value = criterion(scores, torch.from_numpy(batch.labels), batch.offsets)
                        value.backward()
                        total += float(value.detach()) * len(batch)
                    if together.size > 1:
                        share_gradients(self.module_, batch, together)
                    optimiser.step()
                epoch += 1
                whole, queries = together.total(np.array([total, len(data)]))
                watch(epoch, self._state(), float(whole / queries))
                state = partial(saved_epochs, epoch, self._state(), optimiser, watch, random)
                together.save(epoch, state)
        except KeyboardInterrupt as stop:
            if watch.model is None:
                raise
            self._set_state(watch.model)
            raise FitInterrupted from stop
        if watch.model is not None:
            self._set_state(watch.model)

    def _waited_enough(self, epoch: int, watch: Watch[Any]) -> bool:
        waited = epoch - watch.best_step
        return self.patience is not None and epoch > 0 and waited >= self.patience

    def _batches(
        self, data: Training, random: np.random.Generator, together: Together
    ) -> Iterator[Dataset | None]:
        """Batches of this process's queries, then None for as long as others have more."""
        own = -(-self.batch_queries // together.size)
        # Asked first: all processes must add up the same things in the same order.
        most = self._most_batches(data, own, together) if together.size > 1 else 0
        steps = 0
        for block in blocks_of(data):
            order = random.permutation(len(block))
            for first in range(0, len(order), own):
                yield block.select(np.sort(order[first : first + own]))
                steps += 1
        yield from [None] * (most - steps)

    def _most_batches(self, data: Training, own: int, together: Together) -> int:
        """How many batches the process with the most queries has."""
        counts = np.zeros(together.size)
        counts[together.rank] = sum(-(-len(block) // own) for block in blocks_of(data))
        return int(together.total(counts).max())

    def _set_scale(self, data: Training, together: Together) -> None:
        sums = np.zeros((3, self.n_features_in_))
        for block in blocks_of(data):
            known = np.isfinite(block.features)
            values = np.where(known, block.features, 0.0).astype(np.float64)
            sums += known.sum(axis=0), values.sum(axis=0), (values**2).sum(axis=0)
        count, total, square = together.total(sums)
        count = np.maximum(count, 1.0)
        self.mean_ = total / count
        variance = np.maximum(square / count - self.mean_**2, 0.0)
        spread = np.sqrt(variance)
        # What hardly varies carries rounding errors only; it is left as it is, centred.
        constant = spread <= 1e-7 * np.maximum(np.abs(self.mean_), 1.0)
        self.scale_ = np.where(constant, 1.0, spread)

    def _scaled(self, features: Floats) -> Floats:
        scaled = (features - self.mean_) / self.scale_
        return np.asarray(np.nan_to_num(scaled, nan=0.0), np.float32)

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
            self._set_state(arrays_under("weights.", archive))
        except RuntimeError as error:
            raise DataError(f"weights do not fit ({error})", hint="Save it again.") from error


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingPackageError("torch", extra="neural") from error
    return torch
