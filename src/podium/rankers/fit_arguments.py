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
    "eval_X": "Give eval_set=[(X, y)].",
    "eval_y": "Give eval_set=[(X, y)].",
    "eval_sample_weight": "Validation queries count the same: leave it out.",
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
    "X", "y", "qid", "group", "sample_weight", "position", "position_regularization", "eval_set",
    "eval_qid", "eval_group", "eval_names", "callbacks", "progress",
)  # fmt: skip


class FitStopped(Exception):  # noqa: N818 (it is not an error)
    """Raised by the progress of a fit when a callback ends it; the best model so far is kept."""


class EvalResult(NamedTuple):
    """A value on a validation set: a tuple to LightGBM below 4.7, its ``EvalResult`` since.

    Attributes:
        dataset_name: The name of the validation set, such as ``valid_0``.
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
        evaluation_result_list: The value on each validation set; empty without them.
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


class EvalSet(NamedTuple):
    """One set of validation queries as it was given to ``fit``.

    Attributes:
        X: Features, or a data set.
        y: Labels.
        qid: One query id per row.
        group: The number of rows of each query.
        is_training: Whether they are the training data themselves.
    """

    X: Any
    y: Any
    qid: Any
    group: Any
    is_training: bool


def validation_arguments(
    eval_set: Any,
    eval_qid: Any,
    eval_group: Any,
    eval_names: Any = None,
    training: tuple[Any, Any] = (None, None),
) -> dict[str, EvalSet]:
    """Return the sets of validation queries by their names; none if there are none.

    Args:
        eval_set: A data set, ``(X, y)``, or a list of these, as in LightGBM.
        eval_qid: One query id per row, or a list of such arrays.
        eval_group: The number of rows of each query, or a list of such arrays.
        eval_names: The sets' names; by default ``valid_0`` and so on. As in LightGBM, the training
            data beside other sets are called ``training``.
        training: ``X`` and ``y`` of the training data.
    """
    if eval_set is None:
        if eval_qid is not None or eval_group is not None or eval_names is not None:
            raise ArgumentError("there is no eval_set", hint="Give eval_set=[(X, y)] as well.")
        return {}
    listed = list(eval_set) if _is_several(eval_set) else [eval_set]
    if not listed:
        raise ArgumentError("eval_set is empty", hint="Give eval_set=[(X, y)], or leave it out.")
    ids, sizes = (
        _for_each(values, name, len(listed))
        for values, name in ((eval_qid, "eval_qid"), (eval_group, "eval_group"))
    )
    sets = [
        EvalSet(X, y, qid, group, X is training[0] and y is training[1])
        for (X, y), qid, group in zip(map(_labeled, listed), ids, sizes, strict=True)
    ]
    names = [f"valid_{number}" for number in range(len(sets))]
    if eval_names is not None:
        names = [eval_names] if isinstance(eval_names, str) else list(eval_names)
        if not all(isinstance(name, str) for name in names):
            raise ArgumentError(f"eval_names are {names!r}", hint="Give strings.")
    elif len(sets) > 1:
        names = [
            "training" if each.is_training else name for name, each in zip(names, sets, strict=True)
        ]
    if len(names) != len(sets) or len(set(names)) != len(sets):
        raise ArgumentError(
            f"{len(sets)} validation sets have the names {', '.join(map(repr, names))}",
            hint="Give each one of its own: eval_names=[...].",
        )
    return dict(zip(names, sets, strict=True))


def only_set(sets: Mapping[str, EvalSet]) -> EvalSet | None:
    """Return the set of validation queries for rankers that take one; None if there is none."""
    if len(sets) > 1:
        raise ArgumentError(
            f"eval_set has {len(sets)} data sets", hint="Give one: eval_set=[(X, y)]."
        )
    return next(iter(sets.values()), None)


def _is_several(eval_set: Any) -> bool:
    """Whether sets are listed: in a list, or as XGBoost also takes them, in a tuple of pairs."""
    if isinstance(eval_set, tuple):
        return all(isinstance(each, tuple | Dataset | ShardSet) for each in eval_set)
    return isinstance(eval_set, list)


def _labeled(eval_set: Any) -> tuple[Any, Any]:
    if isinstance(eval_set, Dataset | ShardSet):
        return eval_set, None
    if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
        raise ArgumentError(
            f"eval_set is a {type(eval_set).__name__}",
            hint="Give a data set, or eval_set=[(X, y)] with eval_qid=[qid] or eval_group=[group].",
        )
    X, y = eval_set
    return X, y


def check_callbacks(
    callbacks: Sequence[Callable[[Any], None]] | None, *, has_validation: bool
) -> None:
    """Raise an ArgumentError for callbacks that could not do what they are for."""
    for callback in callbacks or ():
        hint = _UNSUPPORTED_CALLBACKS.get(type(callback).__name__)
        if hint is not None:
            raise ArgumentError(f"{type(callback).__name__} has no effect here", hint=hint)
        if stops_early(callback) and not has_validation:
            raise ArgumentError(
                "there are no validation queries for early stopping", hint="Give eval_set."
            )


def stops_early(callback: Callable[[Any], None]) -> bool:
    """Whether a callback is LightGBM's ``early_stopping``, which training data do not concern."""
    return type(callback).__name__ == "_EarlyStoppingCallback"


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


def _for_each(values: Any, name: str, sets: int) -> list[Any]:
    """Return one array per set of LightGBM's list; with one set, its array may be given itself."""
    if values is None:
        return [None] * sets
    is_list = isinstance(values, list | tuple) and len(values) > 0
    if is_list and all(each is None or _is_array(each) for each in values):
        if len(values) != sets:
            raise ArgumentError(
                f"{name} has {len(values)} arrays", hint=f"Give {sets}, as in eval_set."
            )
        return list(values)
    if sets > 1:
        raise ArgumentError(
            f"{name} is one array for {sets} data sets", hint=f"Give a list of {sets} arrays."
        )
    return [values]


def _is_array(value: Any) -> bool:
    return not isinstance(value, str) and hasattr(value, "__len__")
