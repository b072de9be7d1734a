"""``podium train --clicks``: a ranker learns from a log of clicks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from podium.cli.fit_report import FitReport
from podium.data import Dataset, Judgments, ShardSet
from podium.data.pool import tabbed_lines
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.clicks.training import ClickTraining
    from podium.rankers import Ranker

_PANEL = "Clicks"

ClicksFolder = Annotated[
    str | None,
    typer.Option(
        "--clicks",
        rich_help_panel=_PANEL,
        help="Learn from the clicks of this log (podium clicks import) on the documents of DATA; "
        "--validation then has people's judgments, by which --position-bias auto chooses, and "
        "--topics the texts of queries, where the log does not have their ids.",
    ),
]
PositionBiasName = Annotated[
    Literal["auto", "naive", "position", "pbm", "sdbn", "people"] | None,
    typer.Option(
        "--position-bias",
        rich_help_panel=_PANEL,
        help="With --clicks: clicks as they are (naive), an offset for each rank (position), "
        "labels of a click model (pbm, sdbn), people's labels, or what is shown to be better "
        "than naive (auto, the default).",
    ),
]


def train_on_log(
    ranker: Ranker,
    data: Dataset | ShardSet,
    log: str,
    position_bias: Any,
    people: Judgments | None,
    topics: str | None,
    report: FitReport,
    progress: Any,
    *,
    measure: str,
    seed: int,
) -> None:
    """Fit a ranker to a log, and note in the report how and why."""
    from podium.clicks import train_on_clicks

    features = data.load() if isinstance(data, ShardSet) else data
    if features.document_ids is None:
        raise DataError("DATA has no document ids", hint="Clicks are matched by them.")
    names = None
    if topics is not None:
        names = {text: identity for _, identity, text in tabbed_lines(topics)}
    result = train_on_clicks(
        ranker, features, log, position_bias=position_bias or "auto", people=people, names=names,
        measure=measure, random_state=seed, progress=progress,
    )  # fmt: skip
    _note(result, log, report)


def _note(result: ClickTraining, log: str, report: FitReport) -> None:
    counts = result.counts
    report.facts["clicks"] = {"source": log, "check": result.check.verdict, **counts}
    others = ", ".join(
        f"{count:,} {name}" for name, count in counts.items() if name not in ("searches", "taken")
    )
    report.text["clicks"] = (
        f"{log}: {counts['taken']:,} of {counts['searches']:,} searches taken ({others})"
    )
    report.text["position bias"] = result.check.sentence
    ways = []
    for way, mean, difference, p_value, what in result.table():
        ways.append(
            {"way": way, "mean": mean, "difference": difference, "p": p_value, "what": what}
        )
        p = f" (p {p_value})" if p_value else ""
        report.text[f"way {way}"] = "  ".join(filter(None, (mean, difference + p, what)))
    report.facts["position_bias"] = {
        "chosen": result.chosen, "ways": ways, "notes": list(result.notes),
    }  # fmt: skip
    notes = "".join(f"; {note}" for note in result.notes)
    report.text["trained by"] = f"{result.chosen}{notes}"
    bias = getattr(result.ranker, "position_bias_", {})
    if bias:
        report.facts["offsets"] = bias
        values = ", ".join(f"{name} {np.round(each, 2):+g}" for name, each in bias.items())
        report.text["offsets of ranks"] = values
