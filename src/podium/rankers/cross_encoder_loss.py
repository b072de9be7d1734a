"""Podium's losses in trainings of sentence-transformers."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.errors import ArgumentError, DataError, MissingPackageError
from podium.losses import Loss
from podium.rankers.torch_loss import RankingLoss

try:
    import torch
    from torch.utils.checkpoint import checkpoint
except ImportError as error:
    raise MissingPackageError("torch", extra="text") from error


class CrossEncoderLoss(torch.nn.Module):
    """A Podium loss for ``CrossEncoderTrainer`` of sentence-transformers, from version 6 on.

    The columns of the training data are those of its own ``LambdaLoss``: a query, a list of
    documents and a list of labels. Memory is that of one mini-batch, however many documents a query
    has: mini-batches are scored again when the gradient goes back through them.

    Args:
        model: A ``CrossEncoder`` of sentence-transformers with one output.
        loss: The loss, or its text (``"ListMLE(k=10)"``).
        mini_batch_size: How many documents are in memory with all that their gradient needs.

    Example::

        trainer = CrossEncoderTrainer(
            model=model, train_dataset=lists, loss=CrossEncoderLoss(model, "ListMLE(k=10)")
        )
    """

    def __init__(self, model: Any, loss: Loss | str, *, mini_batch_size: int = 16) -> None:
        super().__init__()
        if model.num_labels != 1:
            raise ArgumentError(
                f"the model has {model.num_labels} outputs", hint="Give one with num_labels=1."
            )
        self.model = model
        self.criterion = RankingLoss(loss)
        self.mini_batch_size = mini_batch_size

    def forward(
        self, inputs: Any, labels: Any, prompt: str | None = None, task: str | None = None
    ) -> Any:
        """Return the mean loss of some queries.

        Args:
            inputs: Queries, and for each its documents.
            labels: For each query, the labels of its documents.
            prompt: Passed on to the model.
            task: Passed on to the model.
        """
        queries, lists = inputs
        for own, documents in zip(labels, lists, strict=True):
            if len(own) != len(documents):
                raise DataError(
                    f"a query has {len(documents)} documents and {len(own)} labels",
                    hint="Give one label per document.",
                )
        pairs = [(query, each) for query, own in zip(queries, lists, strict=True) for each in own]
        scores = []
        for first in range(0, len(pairs), self.mini_batch_size):
            part = pairs[first : first + self.mini_batch_size]
            tokens = self.model.preprocess(part, prompt=prompt, task=task)
            device = self.model.device
            moved = {
                name: value.to(device) if torch.is_tensor(value) else value
                for name, value in tokens.items()
            }
            scores.append(checkpoint(self._scores, moved, use_reentrant=False))
        offsets = np.concatenate(([0], np.cumsum([len(own) for own in lists])))
        flat = torch.cat([torch.as_tensor(own).reshape(-1) for own in labels])
        return self.criterion(torch.cat(scores), flat, offsets)

    def _scores(self, tokens: Any) -> torch.Tensor:
        scores: torch.Tensor = self.model(tokens)["scores"].reshape(-1)
        return scores

    def get_config_dict(self) -> dict[str, Any]:
        """Return what a model card says of the loss."""
        return {"loss": repr(self.criterion.loss), "mini_batch_size": self.mini_batch_size}
