"""A text ranker: a transformer that reads query and document, trained by any loss."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal, Never, Self

import numpy as np

from podium.data.atomic import atomic_write
from podium.data.seeds import checked_seed
from podium.errors import ArgumentError, DataError, MissingPackageError
from podium.kernels import Doubles
from podium.losses import Loss
from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.rankers.base import FitInterrupted, Ranker
from podium.rankers.fit_arguments import only_set, validation_arguments
from podium.rankers.fit_progress import Progress
from podium.rankers.inputs import FittedFeatures
from podium.rankers.parameter_checks import check_integer, check_number
from podium.rankers.storage import FOLDER_FILE, pack_folder, python_value
from podium.rankers.text_pairs import TextPairs, read_pairs
from podium.rankers.training_data import require_preferences
from podium.rankers.validation_monitor import mean_value

try:
    import torch

    from podium.rankers.text_encoder import (
        TextEncoder,
        load_bi_encoder,
        load_cross_encoder,
        save_encoder,
        score_pairs,
    )
    from podium.rankers.text_training import TextTraining
except ImportError as error:
    raise MissingPackageError("sentence-transformers", extra="text") from error

_OF_THE_MACHINE = ("checkpoint_folder", "device")
"""Parameters that are not saved."""


class TextRanker(Ranker):
    """A cross-encoder or bi-encoder trained by any Podium loss on lists of any length.

    Rows are pairs of texts: ``[(query, document), ...]``, or a data frame with columns ``query``
    and ``document``. Memory is that of one mini-batch, however many documents a query has. Where
    ``torch.distributed`` has several processes, each is called with all rows and scores its share
    of every step's queries; all end with the model of one process, but for rounding.

    Args:
        model: A Hugging Face checkpoint: the folder of one, or its name. Encoders without a head
            for one score get a new one. Weights must be in safetensors.
        loss: The loss, or its text.
        architecture: ``"cross-encoder"`` reads a query and a document together; ``"bi-encoder"``
            embeds them one by one, and the score is the scaled cosine, or the dot product if the
            checkpoint says so.
        max_length: The maximum number of tokens of a query and a document together, or of each
            for a bi-encoder.
        mini_batch_size: How many documents are in memory with all that their gradient needs.
        batch_queries: The number of queries per step.
        epochs: The maximum number of passes over the training queries.
        learning_rate: AdamW's learning rate, after a warm-up; it falls to 0 linearly.
        weight_decay: AdamW's weight decay.
        warmup_ratio: The share of all steps during which the learning rate grows.
        max_grad_norm: Longer gradients are shortened to this norm.
        early_stopping_rounds: With an ``eval_set``: stop after this many epochs without a better
            measure; None never stops early.
        measure: The measure of the validation queries.
        checkpoint_folder: Where the state after each epoch is kept; a fit that was stopped is
            continued from there, with the same result as if it had not been.
        device: Such as ``"cuda"``; by default the first GPU if there is one.
        random_state: The seed of a new head, of dropout and of the batches.

    Attributes:
        encoder_: The fitted ``CrossEncoder`` or ``SentenceTransformer`` of sentence-transformers.
        evals_result_: The measure of the validation queries after each epoch.
    """

    reads_features = False
    reads_texts = True
    has_loss = True
    extra = "text"
    features_ = FittedFeatures((), named=False)

    # What scikit-learn's metadata routing passes on without a request.
    __metadata_request__fit: ClassVar = dict.fromkeys(
        ("qid", "group", "position", "eval_set", "eval_qid", "eval_group"), True
    )
    __metadata_request__score: ClassVar = dict.fromkeys(("qid", "group"), True)

    def __init__(
        self,
        model: str | os.PathLike[str],
        loss: Loss | str = "ListNet(k=10)",
        *,
        architecture: Literal["cross-encoder", "bi-encoder"] = "cross-encoder",
        max_length: int = 256,
        mini_batch_size: int = 16,
        batch_queries: int = 4,
        epochs: int = 3,
        learning_rate: float = 2e-5,
        weight_decay: float = 0.01,
        warmup_ratio: float = 0.1,
        max_grad_norm: float = 1.0,
        early_stopping_rounds: int | None = None,
        measure: str | Measure = "nDCG@10",
        checkpoint_folder: str | os.PathLike[str] | None = None,
        device: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.loss = loss
        self.architecture = architecture
        self.max_length = max_length
        self.mini_batch_size = mini_batch_size
        self.batch_queries = batch_queries
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.warmup_ratio = warmup_ratio
        self.max_grad_norm = max_grad_norm
        self.early_stopping_rounds = early_stopping_rounds
        self.measure = measure
        self.checkpoint_folder = checkpoint_folder
        self.device = device
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are invalid for any data."""
        if self.architecture not in ("cross-encoder", "bi-encoder"):
            raise ArgumentError(
                f"architecture is {self.architecture!r}",
                hint="Give 'cross-encoder' or 'bi-encoder'.",
            )
        for name in ("max_length", "mini_batch_size", "batch_queries", "epochs"):
            check_integer(name, getattr(self, name))
        check_integer("early_stopping_rounds", self.early_stopping_rounds, optional=True)
        check_number("learning_rate", self.learning_rate, positive=True)
        check_number("max_grad_norm", self.max_grad_norm, positive=True)
        check_number("weight_decay", self.weight_decay)
        check_number("warmup_ratio", self.warmup_ratio)
        if self.warmup_ratio >= 1:
            raise ArgumentError(
                f"warmup_ratio is {self.warmup_ratio!r}", hint="Give a number below 1."
            )
        checked_seed(self.random_state)

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        position: Any = None,
        position_regularization: float | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit the ranker to pairs of texts and labels.

        Args:
            X: Pairs of a query and a document, or a data frame.
            y: One label per pair: grades, a full order or a top-k order.
            qid: One query id per pair (or a column ``qid`` of the data frame); or
            group: the number of pairs of each query.
            position: The rank at which each pair was shown, if labels are clicks: the loss sees
                each score plus an offset of the rank, learned with the scores (``position_bias_``).
            position_regularization: The weight of an L2 penalty of each row's offset, by default 0.
            eval_set: Validation queries, ``[(X, y)]``: the best model on them is kept.
            eval_qid: Their query ids, ``[qid]``; or
            eval_group: the number of pairs of each query, ``[group]``.
            progress: Called after each epoch with its number, the loss and the measure or None.

        Raises:
            FitInterrupted: After Ctrl-C, if an epoch is complete; the ranker keeps the best model.
        """
        self.check_parameters()
        self.loss_function()
        data = TextPairs.from_rows(
            X, y, qid=qid, group=group, position=position,
            position_regularization=position_regularization,
        )  # fmt: skip
        require_preferences(data.queries, "training")
        held_out = only_set(validation_arguments(eval_set, eval_qid, eval_group))
        validation = None
        if held_out is not None:
            validation = TextPairs.from_rows(
                held_out.X, held_out.y, qid=held_out.qid, group=held_out.group
            )
            require_preferences(validation.queries, "validation")
        with torch.random.fork_rng():
            encoder = self._load(self.model)
            try:
                TextTraining(self, encoder, data, validation, progress).run()
            except FitInterrupted:
                self.encoder_ = encoder
                raise
            finally:
                self.position_bias_ = {} if data.position is None else data.position.bias()
        self.encoder_ = encoder
        return self

    def plain_parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON has them, without those of this machine."""
        values = self.get_params(deep=False)
        for name in _OF_THE_MACHINE:
            del values[name]
        values["model"] = os.fspath(self.model)
        plain = {
            name: repr(value) if isinstance(value, Loss | Measure) else value
            for name, value in values.items()
        }
        return dict(json.loads(json.dumps(plain, default=python_value)))

    def _load(self, model: str | os.PathLike[str], *, new_head: bool = True) -> TextEncoder:
        if self.architecture == "bi-encoder":
            return load_bi_encoder(model, self.max_length, device=self.device)
        return load_cross_encoder(
            model, self.max_length, device=self.device, seed=self.random_state, new_head=new_head
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")

    def predict(self, X: Any) -> Doubles:
        """Score pairs of a query and a document."""
        self._require_fitted()
        return score_pairs(self.encoder_, read_pairs(X), self.mini_batch_size)

    def score(  # type: ignore[override]
        self, X: Any, y: Any, *, qid: Any = None, group: Any = None
    ) -> float:
        """Return the mean of the ranker's ``measure``, negated if smaller is better."""
        data = TextPairs.from_rows(X, y, qid=qid, group=group)
        value = mean_value(self.measure, data.queries, self.predict(data.pairs))
        return value if parse_measure(self.measure).larger_is_better else -value

    def explain(self, _X: Any, *, query: str | None = None) -> Never:  # noqa: ARG002
        """Raise an ArgumentError: it reads texts, and no feature contributes to its scores."""
        raise ArgumentError(
            "a text ranker reads a query and a document whole, and no feature contributes to its "
            "scores",
            hint="Give its scores to a ranker of features as one of them, and explain that.",
        )

    def to_bytes(self) -> bytes:
        """Return the files that ``save`` writes as one."""
        with tempfile.TemporaryDirectory(prefix="podium-ranker-") as folder:
            self.save(folder)
            return pack_folder(Path(folder))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the fitted ranker as a folder in the layout of sentence-transformers.

        ``CrossEncoder(folder)``, ``SentenceTransformer(folder)`` for a bi-encoder, and transformers
        load it with equal scores.
        """
        self._require_fitted()
        path = Path(folder)
        require_own_folder(path)
        path.mkdir(parents=True, exist_ok=True)
        # Written last: half of a ranker, over one that was there, is none.
        (path / FOLDER_FILE).unlink(missing_ok=True)
        save_encoder(self.encoder_, path)
        content = {
            "kind": "TextRanker",
            "podium": version("podium-rank"),
            "parameters": self.plain_parameters(),
        }
        (path / "README.md").write_text(_model_card(self))
        with atomic_write(path / FOLDER_FILE) as file:
            file.write(json.dumps(content, indent=1, sort_keys=True).encode() + b"\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Load a ranker that ``save`` wrote."""
        path = Path(folder)
        try:
            content = json.loads((path / FOLDER_FILE).read_text())
            if content["kind"] != "TextRanker":
                raise ValueError("it is of another kind")
            parameters: Mapping[str, Any] = content["parameters"]
            if set(parameters) & set(_OF_THE_MACHINE):
                raise ValueError("it has parameters of a machine")
            ranker = cls(**parameters)
            ranker.check_parameters()
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"is not a saved TextRanker ({error})",
                path=path,
                hint="Save it with TextRanker.save; other checkpoints are given as model=.",
            ) from error
        with torch.random.fork_rng():
            ranker.encoder_ = ranker._load(path, new_head=False)
        ranker.encoder_.eval()
        return ranker


def out_of_fold_scores(
    ranker: Any, X: Any, y: Any, *, qid: Any, n_splits: int = 5,
    progress: Callable[[int, int], None] | None = None,
) -> Doubles:  # fmt: skip
    """Score each row by a ranker that was fitted without the row's query.

    Such scores are a feature that does not know its row's label, so a linear or tree ranker can be
    trained on them and others.

    Args:
        ranker: A ``TextRanker`` or another estimator of pairs of texts; it is not changed itself.
        X: Pairs of texts.
        y: One label per pair.
        qid: One query id per pair.
        n_splits: The number of parts; a ``checkpoint_folder`` gets a folder for each.
        progress: Called with the number of parts that are done and of all parts.

    Example:
        >>> from sklearn.base import BaseEstimator
        >>> class MeanLabel(BaseEstimator):
        ...     def fit(self, X, y, qid):
        ...         self.mean_ = y.mean()
        ...         return self
        ...
        ...     def predict(self, X):
        ...         return [self.mean_] * len(X)
        >>> pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
        >>> out_of_fold_scores(MeanLabel(), pairs, [3, 1, 0, 1], qid=[1, 1, 2, 2], n_splits=2)
        array([0.5, 0.5, 2. , 2. ])
    """
    from sklearn.base import clone
    from sklearn.model_selection import GroupKFold

    pairs, labels = read_pairs(X), np.asarray(y)
    queries = np.asarray([str(each) for each in qid])
    for name, values in (("labels", labels), ("query ids", queries)):
        if len(values) != len(pairs):
            raise DataError(
                f"{len(pairs)} pairs of texts for {len(values)} {name}",
                hint="Give one for each row.",
            )
    check_integer("n_splits", n_splits, minimum=2)
    if n_splits > len(set(queries.tolist())):
        raise ArgumentError(
            f"n_splits is {n_splits}, and there are fewer queries", hint="Give a smaller number."
        )
    scores = np.empty(len(pairs))
    folds = GroupKFold(n_splits).split(scores, groups=queries)
    for done, (train, test) in enumerate(folds):
        own = clone(ranker)
        if getattr(own, "checkpoint_folder", None) is not None:
            own.set_params(checkpoint_folder=Path(own.checkpoint_folder) / f"part-{done + 1}")
        fitted = own.fit([pairs[row] for row in train], labels[train], qid=queries[train])
        scores[test] = fitted.predict([pairs[row] for row in test])
        if progress is not None:
            progress(done + 1, n_splits)
    return scores


def require_own_folder(folder: Path) -> None:
    """Raise an ArgumentError for a path that has something other than a saved ranker."""
    has_other_content = folder.is_dir() and any(folder.iterdir())
    if folder.is_file() or (has_other_content and not (folder / FOLDER_FILE).is_file()):
        raise ArgumentError(
            f"{folder} is not a folder to save in: it has other content",
            hint="Give an empty or a new folder.",
        )


def _model_card(ranker: TextRanker) -> str:
    rows = "\n".join(f"| {name} | `{value}` |" for name, value in ranker.plain_parameters().items())
    return f"""---
library_name: sentence-transformers
pipeline_tag: text-ranking
---

# A {ranker.architecture} for ranking

Scores a query and a document: larger is better, comparable within a query only. Trained with Podium
{version("podium-rank")}.

| parameter | value |
| --- | --- |
{rows}

```python
from podium.rankers import TextRanker
TextRanker.load(".").predict([("query", "document")])
```
"""
