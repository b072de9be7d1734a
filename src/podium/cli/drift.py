"""``podium drift``: whether today's features are distributed as those of training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from podium.cli.outputs import require_other_file
from podium.cli.progress import byte_progress
from podium.cli.reading import Reading, reads_data
from podium.cli.text import shown
from podium.data.files import open_write
from podium.errors import ArgumentError
from podium.monitoring import Sample, compare_samples, read_ranking_log
from podium.monitoring.drift import DriftReport, drift_html

Data = "Data, or a ranking log: its folder or one of its files."


@reads_data
def drift_command(
    train: Annotated[str, typer.Argument(help="The data that the ranker was trained on.")],
    today: Annotated[str, typer.Argument(help=Data)],
    yesterday: Annotated[str | None, typer.Option(help=f"Compare with this, too. {Data}")] = None,
    ranker: Annotated[
        str | None,
        typer.Option(help="Score what is not a log with this ranker, to compare scores, too."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model whose logged rankings are taken.")
    ] = None,
    level: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Report features with a smaller p-value.")
    ] = 0.05,
    report: Annotated[str | None, typer.Option(help="An HTML file to write.")] = None,
    *,
    reading: Reading,
) -> None:
    """Compare each feature of today's rankings with the training data.

    At most the share LEVEL of features that have not changed is reported.
    """
    paths = [path for path in (train, today, yesterday) if path is not None]
    require_other_file(report, *paths, ranker, reading.group)
    logs = [path for path in paths if _is_log(path)]
    if ranker is not None and len(logs) == len(paths):
        raise ArgumentError("--ranker scores data, and there are logs only", hint="Leave it out.")
    if model is not None and not logs:
        raise ArgumentError("--model chooses rankings of a log, and there is none")
    now = _sample(today, model, ranker, reading)
    earlier = {"training": _sample(train, model, ranker, reading)}
    if yesterday is not None:
        earlier["yesterday"] = _sample(yesterday, model, ranker, reading)
    reports = {name: compare_samples(sample, now, level=level) for name, sample in earlier.items()}
    if report is not None:  # first: the reader of standard output may stop early
        with open_write(report) as write:
            write(drift_html(reports).encode())
    for name, result in reports.items():
        _print(name, result)


def _is_log(path: str) -> bool:
    if Path(path).is_dir():
        return any(Path(path).glob("rankings-*.jsonl*"))
    return Path(path).name.startswith("rankings-")


def _sample(path: str, model: str | None, ranker: str | None, reading: Reading) -> Sample:
    if _is_log(path):
        return Sample.of_log(read_ranking_log(path, model=model))
    with byte_progress("Reading") as progress:
        data = reading.whole_data_set(path, progress=progress)
    if ranker is None:
        return Sample.of_dataset(data)
    from podium.export.reading import read_ranker

    return Sample.of_dataset(data, read_ranker(ranker).predict(data))


def _print(name: str, report: DriftReport) -> None:
    console = Console()
    shifted = report.shifted
    console.print(
        shown(f"Against {name}: {len(shifted)} of {len(report.features)} features have shifted.")
    )
    if report.warning:
        console.print(shown(report.warning))
    if not shifted:
        return
    table = Table("feature", "p-value", "PSI", "missing", "median")
    for each in shifted:
        table.add_row(
            shown(each.name), f"{each.p_value:.2g}", f"{each.stability_index:.3f}",
            f"{each.missing_before:.1%} → {each.missing_now:.1%}",
            f"{each.median_before:.4g} → {each.median_now:.4g}",
        )  # fmt: skip
    console.print(table)
