"""The engine parameters that a ranker passes on, and the reasons why it rejects the others.

A parameter is rejected if Podium sets it itself (the engine would ignore one of the two values, or
replace the loss), or if it has no effect because Podium computes the gradients: a parameter that is
silently ignored looks as if it had been tried. An alias counts as the parameter itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podium.errors import ArgumentError

_LOSS = "Give the ranker a loss, such as loss='LambdaLoss(k=10)'."
_THREADS = "Set the environment variable PODIUM_THREADS."
_CLUSTER = "Use podium.cluster."
_UNUSED = "Leave it out."


def _with_hint(names: str, hint: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), hint)


_RANKER_PARAMETERS = {
    "learning_rate": "Give the ranker learning_rate.",
    "seed": "Give the ranker random_state.",
    "num_iterations": "Give the ranker n_estimators.",
    "early_stopping_round": "Give the ranker early_stopping_rounds.",
    "early_stopping_min_delta": "Give the ranker early_stopping_rounds.",
    "objective": _LOSS,
    "metric": "Give the ranker a measure.",
    "num_threads": _THREADS,
}

RANKER_PARAMETERS = ("n_estimators", "learning_rate", "early_stopping_rounds", "random_state")
"""What the ranker sets itself; a misspelt name may mean one of them."""

LIGHTGBM_REJECTED: Mapping[str, str] = {
    **_RANKER_PARAMETERS,
    **_with_hint("num_class", _LOSS),
    # Parameters of LightGBM's own objectives,
    **_with_hint(
        "alpha boost_from_average fair_c is_unbalance label_gain lambdarank_norm "
        "lambdarank_truncation_level objective_seed "
        "poisson_max_delta_step reg_sqrt scale_pos_weight sigmoid tweedie_variance_power",
        _LOSS,
    ),
    # and of its own metrics.
    **_with_hint(
        "auc_mu_weights eval_at first_metric_only is_provide_training_metric metric_freq "
        "multi_error_top_k",
        _RANKER_PARAMETERS["metric"],
    ),
    **_with_hint(
        "local_listen_port machine_list_filename machines num_machines pre_partition time_out "
        "tree_learner",
        _CLUSTER,
    ),
    # These need labels or queries, which the engine does not get.
    **_with_hint(
        "bagging_by_query neg_bagging_fraction pos_bagging_fraction",
        "Give bagging_fraction and bagging_freq.",
    ),
    # Parameters of LightGBM's command line,
    **_with_hint(
        "config convert_model convert_model_language data group_column header ignore_column "
        "input_model label_column output_model output_result parser_config_file "
        "precise_float_parser refit_decay_rate save_binary snapshot_freq task two_round valid "
        "weight_column",
        _UNUSED,
    ),
    # and of its predictions.
    **_with_hint(
        "num_iteration_predict pred_early_stop pred_early_stop_freq pred_early_stop_margin "
        "predict_contrib predict_disable_shape_check predict_leaf_index predict_raw_score "
        "start_iteration_predict",
        _UNUSED,
    ),
}

XGBOOST_ALIASES: Mapping[str, str] = {
    "eta": "learning_rate",
    "random_state": "seed",
    "n_jobs": "num_threads",
    "nthread": "num_threads",
    "n_estimators": "num_iterations",
    "num_boost_round": "num_iterations",
    "num_round": "num_iterations",
    "early_stopping_rounds": "early_stopping_round",
    "obj": "objective",
    "eval_metric": "metric",
    "custom_metric": "metric",
    "min_split_loss": "gamma",
    "reg_alpha": "alpha",
    "reg_lambda": "lambda",
}
"""Other names of XGBoost's parameters; of those that LightGBM has as well, LightGBM's is the main
one."""

XGBOOST_REJECTED: Mapping[str, str] = {
    **_RANKER_PARAMETERS,
    **_with_hint(
        "num_class num_target scale_pos_weight tweedie_variance_power quantile_alpha huber_slope "
        "expectile_alpha aft_loss_distribution aft_loss_distribution_scale "
        "lambdarank_pair_method lambdarank_num_pair_per_sample lambdarank_normalization "
        "lambdarank_score_normalization lambdarank_diff_normalization ndcg_exp_gain",
        _LOSS,
    ),
    **_with_hint("lambdarank_unbiased lambdarank_bias_norm", "Give fit position=."),
    **_with_hint("disable_default_eval_metric", _RANKER_PARAMETERS["metric"]),
    **_with_hint("process_type refresh_leaf validate_parameters", _UNUSED),
}

# Each iteration of DART rescales earlier trees, so that those up to the best one are not its model.
_VALUES: Mapping[tuple[str, str], str] = {
    ("boosting", "rf"): "Give boosting gbdt.",
    ("boosting", "random_forest"): "Give boosting gbdt.",
    ("boosting", "dart"): "Give boosting gbdt.",
    ("booster", "gblinear"): "Use LinearRanker.",
    ("booster", "dart"): "Give booster gbtree.",
}
"""Single values that are rejected, with a hint."""


def check_engine_params(
    parameters: Mapping[str, Any], main_of: Mapping[str, str], rejected: Mapping[str, str]
) -> None:
    """Raise an ArgumentError for a parameter that the engine would ignore or Podium sets itself.

    Of a parameter under two names, the engine would ignore one.

    Args:
        parameters: The ranker's ``engine_params``.
        main_of: The engine's main name for each alias.
        rejected: A hint for each rejected parameter, by main name.
    """
    by_main: dict[str, str] = {}
    for name, value in parameters.items():
        main = main_of.get(name, name)
        other = by_main.setdefault(main, name)
        if other != name:
            raise ArgumentError(f"{other} and {name} are one parameter", hint="Give it once.")
        if main in rejected:
            raise ArgumentError(f"{name} cannot be set in engine_params", hint=rejected[main])
        hint = _VALUES.get((main, str(value).lower()))
        if hint is not None:
            raise ArgumentError(f"{name}={value} does not work with Podium's losses", hint=hint)


def draws_at_random(parameters: Mapping[str, Any], main_of: Mapping[str, str]) -> bool:
    """Return whether parameters of LightGBM have it draw rows, columns or thresholds."""
    values = {main_of.get(name, name): value for name, value in parameters.items()}
    by_gradient = (values.get("boosting"), values.get("data_sample_strategy"))
    return (
        "goss" in (str(value).lower() for value in by_gradient)
        or str(values.get("extra_trees", False)).lower() in ("true", "1", "+")
        or any(
            float(values.get(name, 1)) < 1
            for name in ("feature_fraction", "feature_fraction_bynode")
        )
        or (float(values.get("bagging_fraction", 1)) < 1 and int(values.get("bagging_freq", 0)) > 0)
    )


def with_defaults(
    parameters: Mapping[str, Any],
    defaults: Mapping[str, Any],
    main_of: Mapping[str, str],
    exclusive: Mapping[str, Iterable[str]],
) -> dict[str, Any]:
    """Return parameters together with the defaults that they do not set, by an alias or otherwise.

    Args:
        parameters: The parameters by name or alias.
        defaults: Default values by main name.
        main_of: The engine's main name for each alias.
        exclusive: For a default, other parameters that it cannot be combined with.
    """
    present = {main_of.get(name, name) for name in parameters}
    kept = {
        name: value
        for name, value in defaults.items()
        if name not in present and not present.intersection(exclusive.get(name, ()))
    }
    return kept | dict(parameters)
