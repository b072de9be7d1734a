"""Arguments of ``fit`` as users of LightGBM's and XGBoost's rankers know them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from podium.data import Dataset, ShardSet
from podium.errors import ArgumentError
from podium.registry import unknown_name

_UNSUPPORTED_CALLBACKS = {
    "_ResetParameterCallback": "Give the ranker learning_rate.",
}


_ELSEWHERE = {
    "eval_metric": 'Give the ranker a measure: TreeRanker(measure="nDCG@10").',
    "eval_at": 'Give the ranker a measure with its cut-off: TreeRanker(measure="nDCG@5").',
    "eval_sample_weight": "Validation queries count the same: leave it out.",
    "eval_names": "The validation data are called valid_0: leave it out.",
    "categorical_feature": "Give a data frame with columns of type category.",
    "feature_name": "Give a data frame: its columns are the names.",
    "early_stopping_rounds": "Give it to the ranker: TreeRanker(early_stopping_rounds=50).",
    "verbose": "Give callbacks=[lightgbm.log_evaluation(10)], or progress=.",
    "groups": "Give qid= with one query id per row, or group= with the number of rows per query.",
    "init_score": "Starting scores are not supported: leave it out.",
    "init_model": "Training cannot be continued: leave it out.",
    "xgb_model": "Training cannot be continued: leave it out.",
}
"""Arguments of ``fit`` in LightGBM, XGBoost and scikit-learn, and what to give instead."""


_ARGUMENTS = (
    "X", "y", "qid", "group", "sample_weight", "eval_set", "eval_qid", "eval_group", "callbacks",
    "progress",
)  # fmt: skip


class FitStopped(Exception):  # noqa: N818 (it is not an error)
    """Raised by the progress of a fit when a callback ends it; the best model so far is kept."""


class EvalResult(NamedTuple):
    """A value on the validation queries: a tuple to LightGBM below 4.7, its ``EvalResult`` since.

    Attributes:
        dataset_name: The name of the validation data, ``valid_0``.
        metric_name: The name of the measure.
        metric_value: The value.
        maximize: Whether larger is better.
    """

    dataset_name: str
    metric_name: str
    metric_value: float
    maximize: bool

    @property
    def metric_std_dev(self) -> None:
        """Known to LightGBM's cross-validation only."""
        return

    def is_cv_result(self) -> bool:
        """Whether it is a mean of LightGBM's cross-validation."""
        return False


class CallbackEnv(NamedTuple):
    """What a callback gets after each step, with the fields of LightGBM's ``CallbackEnv``.

    Attributes:
        model: The ranker.
        params: Its parameters.
        iteration: The number of the step, from 0.
        begin_iteration: 0.
        end_iteration: The maximum number of steps, if the ranker has one.
        evaluation_result_list: The value on the validation queries; empty without them.
    """

    model: Any
    params: dict[str, Any]
    iteration: int
    begin_iteration: int
    end_iteration: int | None
    evaluation_result_list: list[EvalResult]


def refuse_unknown_arguments(arguments: Mapping[str, object]) -> None:
    """Raise an ArgumentError for an argument that ``fit`` does not have."""
    for name in arguments:
        hint = _ELSEWHERE.get(name)
        if hint is None:
            raise unknown_name("argument of fit", name, _ARGUMENTS)
        raise ArgumentError(f"fit has no argument {name}", hint=hint)


def validation_arguments(
    eval_set: Any, eval_qid: Any, eval_group: Any
) -> tuple[Any, Any, Any, Any] | None:
    """Return X, y, qid and group of the validation queries; None if there are none.

    ``eval_set`` is a data set, ``(X, y)``, or a list with one of these, as in LightGBM.
    """
    if eval_set is None:
        if eval_qid is not None or eval_group is not None:
            raise ArgumentError("there is no eval_set", hint="Give eval_set=[(X, y)] as well.")
        return None
    if isinstance(eval_set, list):
        if len(eval_set) != 1:
            raise ArgumentError(
                f"eval_set has {len(eval_set)} data sets", hint="Give one: eval_set=[(X, y)]."
            )
        eval_set = eval_set[0]
    if isinstance(eval_set, Dataset | ShardSet):
        return eval_set, None, _only(eval_qid, "eval_qid"), _only(eval_group, "eval_group")
    if not isinstance(eval_set, tuple) or len(eval_set) != 2:
        raise ArgumentError(
            f"eval_set is a {type(eval_set).__name__}",
            hint="Give a data set, or eval_set=[(X, y)] with eval_qid=[qid] or eval_group=[group].",
        )
    X, y = eval_set
    return X, y, _only(eval_qid, "eval_qid"), _only(eval_group, "eval_group")


def check_callbacks(
    callbacks: Sequence[Callable[[Any], None]] | None, *, has_validation: bool
) -> None:
    """Raise an ArgumentError for callbacks that could not do what they are for."""
    for callback in callbacks or ():
        hint = _UNSUPPORTED_CALLBACKS.get(type(callback).__name__)
        if hint is not None:
            raise ArgumentError(f"{type(callback).__name__} has no effect here", hint=hint)
        if type(callback).__name__ == "_EarlyStoppingCallback" and not has_validation:
            raise ArgumentError(
                "there are no validation queries for early stopping", hint="Give eval_set."
            )


def stops_fit(callback: Callable[[Any], None], environment: CallbackEnv) -> bool:
    """Call a callback; return whether it ends the fit, as ``lightgbm.early_stopping`` does."""
    try:
        callback(environment)
    except Exception as error:
        # By its name: LightGBM need not be installed, and only its own callbacks raise it.
        if type(error).__name__ != "EarlyStopException":
            raise
        return True
    return False


def _only(values: Any, name: str) -> Any:
    """Unwrap LightGBM's list with one array per data set; a single array remains."""
    if not isinstance(values, list | tuple) or not values:
        return values
    if isinstance(values[0], str) or not hasattr(values[0], "__len__"):
        return values
    if len(values) != 1:
        raise ArgumentError(f"{name} has {len(values)} arrays", hint="Give one, as in eval_set.")
    return values[0]
