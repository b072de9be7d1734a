"""A fit by options of the command line: labels from elsewhere, rankers by name, Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.console import Console

from podium.cli.click_training import train_on_log
from podium.cli.fit_report import FitReport
from podium.cli.progress import byte_progress, stage_progress, step_progress
from podium.cli.reading import Reading
from podium.cli.text import shown
from podium.data import Dataset, Judgments, ShardSet
from podium.data.preferences import Preferences
from podium.errors import ArgumentError, DataError, MissingPackageError

if TYPE_CHECKING:
    from podium.hybrid.objectives import Balance
    from podium.rankers import Ranker, TextRanker

STUDIO = "studio:"
_EXTRAS = {"lightgbm": "trees", "xgboost": "xgboost-cpu", "neural": "neural"}
"""The extras of scorers, which have what every ranker needs, too."""


INTERRUPTED = 130
"""Exit status of a command ended by Ctrl-C."""


@dataclass(frozen=True)
class TrainingRequest:
    """What ``podium train`` learns from files, and how.

    Attributes are the options of the command, but for where it works and what it writes.
    """

    data: str
    model: str | None
    k: int | None
    loss: str | None
    scorer: str | None
    validation: str | None
    labels: str | None
    top_k: int
    measure: str
    settings: dict[str, Any]
    seed: int
    reading: Reading

    def ranker(self) -> Ranker:
        """Create the ranker that is to be fitted."""
        return make_ranker(
            self.model,
            self.k,
            self.loss,
            self.scorer,
            self.settings,
            measure=self.measure,
            seed=self.seed,
        )

    def fit(self, ranker: Ranker, output: str, report: FitReport) -> None:
        """Read the files, fit the ranker and save it."""
        source = LabelSource(self.labels, self.top_k, self.seed)
        with byte_progress("Reading") as read:
            train = read_labeled("training", self.data, self.reading, source, report, read)
            held_out = None
            if self.validation is not None:
                held_out = read_labeled(
                    "validation", self.validation, self.reading, source, report, read
                )
        with (
            saving(ranker, output),
            step_progress("Training", report.measure) as progress,
        ):
            ranker.fit(train, eval_set=held_out, progress=report.following(progress))
        report.learned(ranker, output)

    def fit_balanced(
        self,
        ranker: Ranker,
        maximize: str,
        requirements: list[str],
        output: str,
        report: FitReport,
        **options: Any,
    ) -> Balance:
        """Read the file, and save a ranker with as much of a feature as requirements allow."""
        from podium.hybrid import balance_ranker
        from podium.rankers import Ranker
        from podium.rankers.training_data import in_memory

        source = LabelSource(self.labels, self.top_k, self.seed)
        with byte_progress("Reading") as read:
            data = read_labeled("training", self.data, self.reading, source, report, read)
        with stage_progress() as stage:
            result = balance_ranker(
                ranker, in_memory(data), maximize, requirements, measure=self.measure,
                random_state=self.seed, progress=stage("Fits"), **options,
            )  # fmt: skip
        assert isinstance(result.model, Ranker)
        result.model.save(output)
        report.balanced(result)
        report.saved(result.model, output)
        return result

    def fit_to_clicks(
        self,
        ranker: Ranker,
        log: str,
        position_bias: str | None,
        topics: str | None,
        output: str,
        report: FitReport,
    ) -> None:
        """Read the files, fit the ranker to the clicks of a log and save it."""
        people = LabelSource(self.validation, self.top_k, self.seed).judgments
        with byte_progress("Reading") as read:
            data = self.reading.data_set(self.data, unlabeled=True, progress=read)
        with saving(ranker, output), step_progress("Training", None) as progress:
            train_on_log(
                ranker, data, log, position_bias, people, topics, report,
                report.following(progress), measure=self.measure, seed=self.seed,
            )  # fmt: skip
        report.learned(ranker, output)


@contextmanager
def saving(ranker: Ranker | TextRanker, output: str) -> Iterator[None]:
    """Save the ranker after its fit, or what it learned before Ctrl-C."""
    from podium.rankers.base import FitInterrupted

    console = Console(stderr=True)
    try:
        yield
    except FitInterrupted as stop:
        ranker.save(output)
        console.print(
            shown(f"Interrupted: saved the best {type(ranker).__name__} so far in {output}.")
        )
        raise typer.Exit(INTERRUPTED) from stop
    ranker.save(output)


def make_ranker(
    model: str | None,
    k: int | None,
    loss: str | None,
    scorer: Any,
    settings: dict[str, Any],
    *,
    measure: str,
    seed: int,
) -> Ranker:
    """Create a ranker from a model's name, or from a loss and a scorer, with its parameters."""
    # Imported here: rankers need packages that the other commands do not.
    try:
        from podium.rankers import models
    except MissingPackageError as error:
        needed = scorer or ("linear" if model else "lightgbm")
        raise MissingPackageError(str(error.name), extra=_EXTRAS.get(needed, error.extra)) from None
    from podium.rankers.tuning import with_parameters

    if model is None and k is not None:
        raise ArgumentError("--k belongs to --model. Give a loss its k, as 'ListMLE(k=10)'.")
    if model is None:
        scorer = scorer or "lightgbm"
        default = "SquaredError()" if scorer in ("lightgbm", "xgboost") else "ListMLE(k=10)"
        ranker = models.make_ranker(scorer, loss or default)
    elif loss is not None:
        raise ArgumentError("A model has its own loss. Give --model or --loss.")
    else:
        ranker = models.get_model(model)(k, scorer=scorer or "linear")
    common = {"measure": measure, "random_state": seed}
    known = ranker.get_params(deep=False)
    fitting = {name: value for name, value in common.items() if name in known}
    configured = with_parameters(ranker, fitting | settings)
    configured.check_parameters()  # before reading data, which can take long
    return configured


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Parse ``name=value`` strings; a value is JSON if it parses, else a string."""
    parsed: dict[str, Any] = {}
    for setting in settings or []:
        name, separator, value = setting.partition("=")
        if not separator or not name:
            raise ArgumentError(f"{setting!r} is not name=value.")
        try:
            parsed[name] = json.loads(value)
        except ValueError:
            parsed[name] = value
    return parsed


@dataclass(frozen=True)
class LabelSource:
    """Where labels come from, if not from the data.

    Attributes:
        source: A file of judgments or preferences, a studio's project, or None.
        k: How many documents to put in order by preferences.
        seed: The seed for documents between which no preference decides.
    """

    source: str | None
    k: int
    seed: int

    @cached_property
    def judgments(self) -> Judgments | None:
        """The labels; None to take those of the data."""
        if self.source is None:
            return None
        if self.source.startswith(STUDIO):
            # Imported here: it needs packages that only users of a studio have.
            from podium.studio.client import StudioClient, project_at

            url, number = project_at(self.source.removeprefix(STUDIO))
            with StudioClient(url) as studio:
                return studio.project(number).labels()
        content = Reading().truth(self.source)
        if isinstance(content, Preferences):
            from podium.judging import preference_judgments

            return preference_judgments(content, self.k, random_state=self.seed)
        return content


def read_labeled(
    role: str,
    path: str,
    reading: Reading,
    labels: LabelSource,
    report: FitReport,
    progress: Any,
) -> Dataset | ShardSet:
    """Read training data, with their own labels or those of judgments."""
    judgments = labels.judgments
    data = reading.data_set(path, unlabeled=judgments is not None, progress=progress)
    if judgments is not None:
        whole = data.load() if isinstance(data, ShardSet) else data
        try:
            judged = whole.relabel(judgments, unjudged=np.nan)
        except DataError as error:
            raise error.at(f"{path} and {labels.source}") from error
        known = int(np.count_nonzero(~np.isnan(judged.labels)))
        report.matched(role, str(labels.source), known, judged.rows, len(judged), len(whole))
        data = replace(judged, labels=np.nan_to_num(judged.labels, nan=0.0))
    elif isinstance(data, Dataset) and not np.isfinite(data.labels).all():
        raise DataError("a label is not finite", path=path, hint="Fix or remove its row.")
    report.read(role, path, data)
    return data
