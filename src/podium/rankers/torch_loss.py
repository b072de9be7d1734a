"""Podium's losses as PyTorch modules: the same kernels, with gradients for autograd."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.errors import MissingPackageError
from podium.losses import Loss
from podium.losses.names import parse_loss

try:
    import torch
except ImportError as error:
    raise MissingPackageError("torch", extra="neural") from error


class RankingLoss(torch.nn.Module):
    """A Podium loss for any PyTorch code: one score per document, ragged queries, no padding.

    Args:
        loss: The loss, or its text (``"ListMLE(k=10)"``).

    Example:
        >>> criterion = RankingLoss("PairLogistic(k=3)")
        >>> scores = torch.tensor([0.2, 0.9, 0.1, 0.4, 0.3], requires_grad=True)
        >>> labels = torch.tensor([2.0, 1.0, 0.0, 1.0, 0.0])
        >>> value = criterion(scores, labels, offsets=[0, 3, 5])
        >>> value.backward()
        >>> scores.grad.shape
        torch.Size([5])
    """

    def __init__(self, loss: Loss | str) -> None:
        super().__init__()
        self.loss = parse_loss(loss) if isinstance(loss, str) else loss

    def forward(
        self,
        scores: Any,
        labels: Any,
        offsets: Any,
        *,
        query_weights: Any = None,
        row_weights: Any = None,
    ) -> Any:
        """Return the mean over queries of their losses, each multiplied by its weight.

        Args:
            scores: One score per document, in any shape.
            labels: One label per document.
            offsets: The index of each query's first document, then the number of documents.
            query_weights: A weight for each query; or
            row_weights: for each document, if the loss has such weights.
        """
        return _Evaluate.apply(  # type: ignore[no-untyped-call]
            scores.reshape(-1), labels, offsets, self.loss, query_weights, row_weights
        )


class _Evaluate(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        scores: Any,
        labels: Any,
        offsets: Any,
        loss: Loss,
        query_weights: Any,
        row_weights: Any,
    ) -> Any:
        starts = np.asarray(offsets, np.int64)
        array = labels.detach().cpu().numpy() if torch.is_tensor(labels) else np.asarray(labels)
        evaluation = loss.evaluate(
            scores.detach().double().cpu().numpy(),
            array,
            starts,
            query_weights=query_weights,
            row_weights=row_weights,
        )
        queries = max(len(starts) - 1, 1)
        gradient = torch.from_numpy(evaluation.gradient / queries).to(scores)
        context.save_for_backward(gradient)
        return scores.new_tensor(evaluation.total / queries)

    @staticmethod
    def backward(context: Any, *outer: Any) -> Any:
        (gradient,) = context.saved_tensors
        return outer[0] * gradient, None, None, None, None, None
