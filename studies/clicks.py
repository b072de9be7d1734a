"""Rankers trained on simulated clicks: which ways help, on which logs, and what `auto` chooses."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from podium.clicks import (
    clicked_searches,
    fit_clicks,
    label_clicks,
    simulate_clicks,
    train_on_clicks,
)  # fmt: skip
from podium.data import Dataset, Judgments, concat_datasets
from podium.measures import evaluate
from podium.measures.comparison.statistics import paired_difference
from podium.rankers import LinearRanker, TreeRanker
from studies.arrays import Doubles
from studies.claims import table
from studies.collections import Fold, load_folds
from studies.parts import Part
from studies.study import Setup, Study, Written

COLLECTIONS = {"MQ2007": "letor/MQ2007", "MSLR-sample": "mslr-sample", "Yandex": "yandex"}
USERS = ("pbm", "cascade", "dbn")
LOGGING = ("random", "weak", "strong", "partly random")
SEARCHES = (10, 2, 40)
"""Searches for each query, in the order in which they run: a page may come before all have."""
MEASURES = ("nDCG@10", "kNDCG(k=10)@10")
WAYS = (
    "naive", "LightGBM position", "XGBoost unbiased", "COEC labels", "position", "auto",
    "true labels",
)  # fmt: skip
SWITCHES = ("LightGBM position", "XGBoost unbiased")
LOSS = "LambdaLoss()"
DEPTH = 10
_TREES: dict[str, Any] = {"learning_rate": 0.1, "num_leaves": 15}


def measure_cell(
    data: Path, collection: str, user: Any, logging: str, searches: int, quick: bool
) -> dict[str, Any]:
    """Train in every way on one simulated log: the values of the test queries."""
    fold = _fold(data, collection, quick)
    trees = 20 if quick else 60
    with tempfile.TemporaryDirectory() as folder:
        log = simulate_clicks(
            fold.train, f"{folder}/log", user=user,
            policy=_policy(data, collection, quick, logging), searches=searches, depth=DEPTH,
            shuffled=0.2 if logging == "partly random" else 0.0, random_state=searches,
        )  # fmt: skip
        taken = clicked_searches(log, fold.train)
        ranker = TreeRanker(LOSS, n_estimators=trees, **_TREES)
        result = train_on_clicks(
            TreeRanker(LOSS, n_estimators=trees, **_TREES),
            concat_datasets([fold.train, fold.validation]),
            log,
            people=Judgments.from_columns(
                fold.validation.query_id_of_row(), fold.validation.document_ids,
                fold.validation.labels,
            ),
        )  # fmt: skip
        auto = np.asarray(result.ranker.predict(_plain(fold.test)))
        coec = label_clicks(fit_clicks(log, "coec", depth=DEPTH)).judgments()
        labeled = fold.train.relabel(coec, unjudged=np.nan)
        shown = ~np.isnan(labeled.labels)
        labeled = Dataset.from_arrays(
            labeled.features[shown], labeled.labels[shown],
            qid=labeled.query_id_of_row().filter(pa.array(shown)),
        )  # fmt: skip
        weights = taken.weights
        scores = {
            "naive": auto
            if result.chosen == "naive"  # on the same searches: the queries of people have none
            else _fitted(ranker, taken.data, fold.test, sample_weight=weights),
            "LightGBM position": _lightgbm(taken, fold.test, trees),
            "XGBoost unbiased": _xgboost(taken, fold.test, trees),
            "COEC labels": _fitted(ranker, labeled, fold.test),
            "position": _fitted(
                ranker, taken.data, fold.test, sample_weight=weights, position=taken.rank,
                position_regularization=0.1,
            ),
            "auto": auto,
            "true labels": _true_labels(data, collection, quick, trees),
        }  # fmt: skip
    values = {
        name: {
            measure: np.round(evaluate(measure, _truth(fold.test, measure), own)[measure], 6)
            for measure in MEASURES
        }
        for name, own in scores.items()
    }
    return {
        "verdict": result.check.verdict,
        "chosen": result.chosen,
        "clicks": log.clicks,
        "values": {
            name: {measure: each.tolist() for measure, each in own.items()}
            for name, own in values.items()
        },
    }


@cache
def _fold(data: Path, collection: str, quick: bool) -> Fold:
    fold = load_folds(collection, data)[0].map(_named)
    if quick:
        fold = fold.map(lambda part: part.select(np.arange(min(120, len(part)))))
    return fold


def _named(data: Dataset) -> Dataset:
    position = np.arange(data.rows) - data.offsets[data.query_of_row]
    names = tuple(str(number + 1) for number in range(len(data.feature_names)))
    return replace(
        data, document_ids=pa.array(position.astype(str), pa.large_string()), feature_names=names
    )


def _plain(data: Dataset) -> Any:
    return data.features


def _truth(data: Dataset, measure: str) -> Dataset:
    return data if measure == MEASURES[0] else data.top_k(10)


@cache
def _policy(data: Path, collection: str, quick: bool, logging: str) -> Doubles | None:
    """Scores of the logging policy: of a ranker trained on 10 queries, or on all of them."""
    if logging == "random":
        return None
    train = _fold(data, collection, quick).train
    part = train.select(np.arange(10)) if logging == "weak" else train
    return LinearRanker("ListNet()", alpha=1e-2).fit(part).predict(train)


@cache
def _true_labels(data: Path, collection: str, quick: bool, trees: int) -> Doubles:
    fold = _fold(data, collection, quick)
    return _fitted(TreeRanker(LOSS, n_estimators=trees, **_TREES), fold.train, fold.test)


def _fitted(ranker: Any, data: Dataset, test: Dataset, **options: Any) -> Doubles:
    return np.asarray(ranker.fit(data, **options).predict(_plain(test)))


def _lightgbm(taken: Any, test: Dataset, trees: int) -> Doubles:
    import lightgbm

    rows = lightgbm.Dataset(
        taken.data.features, taken.data.labels, group=taken.data.sizes, position=taken.rank,
        weight=np.repeat(taken.weights, taken.data.sizes),
    )  # fmt: skip
    parameters = {"objective": "lambdarank", "verbosity": -1, "seed": 0, **_TREES}
    return np.asarray(lightgbm.train(parameters, rows, trees).predict(test.features))


def _xgboost(taken: Any, test: Dataset, trees: int) -> Doubles:
    import xgboost

    rows = xgboost.DMatrix(taken.data.features, taken.data.labels, weight=taken.weights)
    rows.set_group(taken.data.sizes)  # the rows of a search are in the order of their ranks
    parameters = {
        "objective": "rank:ndcg", "lambdarank_unbiased": True, "eta": 0.1, "max_leaves": 15,
        "grow_policy": "lossguide", "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": DEPTH, "seed": 0,
    }  # fmt: skip
    return np.asarray(
        xgboost.train(parameters, rows, trees).predict(xgboost.DMatrix(test.features))
    )


def differences(
    cells: Mapping[str, Any], one: str, other: str, measure: str = MEASURES[0]
) -> dict[str, tuple[float, float]]:
    """Return for each cell the mean difference of two ways and its p-value, corrected by Holm."""
    pairs = {
        name: paired_difference(
            np.array(cell["values"][one][measure]),
            np.array(cell["values"][other][measure]),
            tests=("randomization",),
        )
        for name, cell in cells.items()
    }
    p_values = _holm(np.array([each.p_values["randomization"] for each in pairs.values()]))
    return {
        name: (each.mean, float(p)) for (name, each), p in zip(pairs.items(), p_values, strict=True)
    }


def _holm(p_values: Doubles) -> Doubles:
    order = np.argsort(p_values)
    corrected = np.empty(len(p_values))
    steps = np.arange(len(p_values), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps * p_values[order]), 1.0)
    return corrected


def biased_and_identifiable(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells whose log shows good documents first, and still some at several ranks."""
    return {
        name: cell
        for name, cell in cells.items()
        if cell["verdict"] != "no" and "partly random" in name
    }


def parts(setup: Setup) -> list[Part]:
    """Return the simulated logs, each with all ways to learn from it."""
    names = [name for name, folder in COLLECTIONS.items() if setup.has(folder)]
    users: Sequence[str] = USERS
    searches: Sequence[int] = SEARCHES
    policies: Sequence[str] = LOGGING
    if setup.quick:
        names, users, searches = ["MQ2008"], ("pbm",), (10,)
        policies = ("random", "partly random")
    return [
        Part(
            f"{name}, {user}, {logging}, {count} searches", measure_cell,
            (setup.data, name, user, logging, count, setup.quick),
        )
        for count in searches
        for name in names
        for user in users
        for logging in policies
    ]  # fmt: skip


def _write(values: Mapping[str, Any], setup: Setup, _images: Path) -> Written:
    cells = {part.name: values[part.name] for part in parts(setup) if part.name in values}
    if not cells:
        return Written([], ["Nothing has run yet.\n"])
    head = ("log", "bias can be learned", *WAYS, "auto chose")
    sections = [
        f"## {MEASURES[0]}\n",
        "Means of the test queries, and the way that `auto` chose. **Bold**: above *naive*; "
        "*italic*: below (paired randomization test, p < 0.05, corrected by Holm for the logs of a "
        "column).\n",
        table(head, _rows(cells, MEASURES[0])),
    ]
    every = parts(setup)
    partial = [] if len(cells) == len(every) else [_not_run(every, cells)]
    return Written([], ["## In short\n", *partial, *_summary(cells), *sections])


def _not_run(every: Sequence[Part], cells: Mapping[str, Any]) -> str:
    """Return how many logs of each collection have run."""
    collections = Counter((part.name.split(", ")[0], part.name.split(", ")[-1]) for part in every)
    run = Counter((name.split(", ")[0], name.split(", ")[-1]) for name in cells)
    shares = "; ".join(
        f"{name}, {searches}: {run[name, searches]} of {count}"
        for (name, searches), count in collections.items()
    )
    return f"{len(cells)} of {len(every)} logs have run ({shares}).\n"


def _rows(cells: Mapping[str, Any], measure: str) -> list[list[str]]:
    against = {way: differences(cells, way, "naive", measure) for way in WAYS if way != "naive"}
    rows = []
    for name, cell in cells.items():
        row = [name, cell["verdict"]]
        for way in WAYS:
            text = f"{np.mean(cell['values'][way][measure]):.4f}"
            if way != "naive":
                mean, p = against[way][name]
                if p < 0.05:
                    text = f"**{text}**" if mean > 0 else f"*{text}*"
            row.append(text)
        rows.append([*row, cell["chosen"]])
    return rows


def _summary(cells: Mapping[str, Any]) -> list[str]:
    rows = []
    for way in WAYS[1:]:
        row = [way]
        for measure in MEASURES:
            against = differences(cells, way, "naive", measure).values()
            row += [
                f"{sum(p < 0.05 and mean > 0 for mean, p in against)}",
                f"{sum(p < 0.05 and mean < 0 for mean, p in against)}",
                f"{np.mean([mean for mean, _ in against]):+.4f}",
            ]
        rows.append(row)
    columns = [f"{measure}: {what}" for measure in MEASURES for what in ("above", "below", "mean")]
    beside = table(("way", *columns), rows)
    lines = []
    chosen = biased_and_identifiable(cells)
    for switch in SWITCHES:
        pairs = differences(chosen, "auto", switch) if chosen else {}
        ahead = {name: p for name, (mean, p) in pairs.items() if mean > 0}
        behind = {name: p for name, (mean, p) in pairs.items() if mean < 0}
        lines.append(
            f"- `auto` is ahead of {switch} on {len(ahead)} of {len(pairs)} logs that are biased "
            f"and identifiable, significantly on {_significant(ahead)}; behind on {len(behind)}, "
            f"significantly on {_significant(behind)}.\n"
        )
    return [
        f"Logs of {len(cells)} where a way is significantly above and below *naive*, and the mean "
        "difference.\n",
        beside,
        "".join(lines),
        *_why_behind(chosen),
    ]


def _significant(p_values: Mapping[str, float]) -> int:
    return sum(p < 0.05 for p in p_values.values())


def _why_behind(cells: Mapping[str, Any]) -> list[str]:
    """Return the logs that are biased and identifiable where a switch is ahead of `auto`."""
    rows = [
        [name, switch, f"{mean:+.4f}", f"{p:.3g}", cells[name]["chosen"],
         f"{len(cells[name]['values']['auto'][MEASURES[0]]):,}"]
        for switch in SWITCHES
        for name, (mean, p) in (differences(cells, "auto", switch) if cells else {}).items()
        if mean < 0
    ]  # fmt: skip
    if not rows:
        return []
    head = ("log", "ahead", "`auto` less it", "p", "auto chose", "test queries")
    return [
        "### Where `auto` is not ahead\n",
        "`auto` leaves clicks as they are unless another way is significantly better on people's "
        "judgments of the validation queries, and it does not try the engines' own switches. Their "
        "losses are their own too, so a difference is not of the switch alone. P-values are "
        "corrected by Holm for the logs that are biased and identifiable.\n",
        table(head, rows),
    ]


STUDY = Study(
    "clicks",
    "Rankers trained on clicks",
    "Which ways to learn from clicks help, on which simulated logs, and what auto chooses.",
    """
Users are simulated on judged data: they examine ranks by chance (`pbm`), stop at the first click
(`cascade`) or go on until they are satisfied (`dbn`). Rankings come from a random order, a ranker
that learned from 10 queries (*weak*) or from the true labels of all of them (*strong*), or from
this one with a random order in a fifth of the searches (*partly random*). Rankers are trees with
LambdaLoss, as LightGBM's and XGBoost's own; they learn from the clicks on training queries and are
measured on the true labels of test queries. `auto` chooses on the true labels of the validation
queries, which nobody searched for; *people* are these labels alone.
""",
    "MQ2007, the sample of MSLR-WEB and Yandex, one fold each.",
    parts,
    _write,
    needs_data=True,
)


def run_quick(data: Path) -> dict[str, Any]:
    """Return the small cells, without keeping them."""
    return {
        part.name: part.function(*part.arguments) for part in parts(Setup(Path(), data, quick=True))
    }
