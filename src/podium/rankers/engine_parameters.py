"""Which of an engine's own parameters a ranker passes on, and why it refuses the others.

A parameter is refused if Podium sets it itself (its own value would win, or replace the loss), or
if it has no effect where Podium computes the gradients and grows the trees: an ignored setting
looks like one that was tried. An alias counts as the parameter itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podium.errors import ArgumentError

_LOSS = "Give the ranker a loss, as loss='LambdaLoss(k=10)'."
_THREADS = "Set the environment variable PODIUM_THREADS."
_CLUSTER = "Use podium.cluster."
_UNUSED = "Leave it out."


def _each(names: str, hint: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), hint)


_OWN = {
    "learning_rate": "Give the ranker learning_rate.",
    "seed": "Give the ranker seed.",
    "num_iterations": "Give the ranker n_estimators.",
    "early_stopping_round": "Give the ranker patience.",
    "early_stopping_min_delta": "Give the ranker patience.",
    "objective": _LOSS,
    "metric": "Give the ranker a measure.",
    "num_threads": _THREADS,
}

LIGHTGBM_REFUSED: Mapping[str, str] = {
    **_OWN,
    **_each("num_class", _LOSS),
    # Parameters of LightGBM's own objectives
    **_each(
        "alpha boost_from_average fair_c is_unbalance label_gain lambdarank_norm "
        "lambdarank_position_bias_regularization lambdarank_truncation_level objective_seed "
        "poisson_max_delta_step reg_sqrt scale_pos_weight sigmoid tweedie_variance_power",
        _LOSS,
    ),
    # and of its own metrics.
    **_each(
        "auc_mu_weights eval_at first_metric_only is_provide_training_metric metric_freq "
        "multi_error_top_k",
        _OWN["metric"],
    ),
    **_each(
        "local_listen_port machine_list_filename machines num_machines pre_partition time_out "
        "tree_learner",
        _CLUSTER,
    ),
    # They need labels or queries, which the engine is not given.
    **_each(
        "bagging_by_query neg_bagging_fraction pos_bagging_fraction",
        "Give bagging_fraction and bagging_freq.",
    ),
    # What LightGBM's command line reads, writes and does
    **_each(
        "config convert_model convert_model_language data group_column header ignore_column "
        "input_model label_column output_model output_result parser_config_file "
        "precise_float_parser refit_decay_rate save_binary snapshot_freq task two_round valid "
        "weight_column",
        _UNUSED,
    ),
    # and how it predicts.
    **_each(
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
}
"""XGBoost's names of what LightGBM has as well."""

XGBOOST_REFUSED: Mapping[str, str] = {
    **_OWN,
    **_each(
        "num_class num_target scale_pos_weight tweedie_variance_power quantile_alpha huber_slope "
        "expectile_alpha aft_loss_distribution aft_loss_distribution_scale "
        "lambdarank_pair_method lambdarank_num_pair_per_sample lambdarank_normalization "
        "lambdarank_score_normalization lambdarank_diff_normalization lambdarank_unbiased "
        "lambdarank_bias_norm ndcg_exp_gain",
        _LOSS,
    ),
    **_each("disable_default_eval_metric", _OWN["metric"]),
    **_each("process_type refresh_leaf validate_parameters", _UNUSED),
}

_VALUES: Mapping[tuple[str, str], str] = {
    ("boosting", "rf"): "Give boosting gbdt or dart.",
    ("boosting", "random_forest"): "Give boosting gbdt or dart.",
    ("booster", "gblinear"): "Use LinearRanker.",
}
"""Values of parameters that are passed on otherwise."""


def refuse_parameters(
    parameters: Mapping[str, Any], main_of: Mapping[str, str], refused: Mapping[str, str]
) -> None:
    """Raise an ArgumentError for a parameter that the engine would ignore or Podium sets itself.

    Args:
        parameters: What was given to the ranker.
        main_of: The engine's main name for each alias.
        refused: What to do instead, by main name.
    """
    for name, value in parameters.items():
        main = main_of.get(name, name)
        if main in refused:
            raise ArgumentError(
                f"{name} cannot be set among the engine's parameters", hint=refused[main]
            )
        hint = _VALUES.get((main, str(value)))
        if hint is not None:
            raise ArgumentError(f"{name}={value} does not work with Podium's losses", hint=hint)


def with_defaults(
    parameters: Mapping[str, Any],
    defaults: Mapping[str, Any],
    main_of: Mapping[str, str],
    instead: Mapping[str, Iterable[str]],
) -> dict[str, Any]:
    """Parameters and those defaults that they do not set, be it by an alias.

    Args:
        parameters: What was given.
        defaults: Values by main name.
        main_of: The engine's main name for each alias.
        instead: Other parameters that replace a default, which excludes them.
    """
    given = {main_of.get(name, name) for name in parameters}
    kept = {
        name: value
        for name, value in defaults.items()
        if name not in given and not given.intersection(instead.get(name, ()))
    }
    return kept | dict(parameters)
