"""What models say of a query, apart from what people say; hidden until people are done."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Connection

from podium.studio.judging.judged import JudgedQuery, load_judged_query
from podium.studio.judging.modes import GradesMode, PairsMode
from podium.studio.models.answers import model_view
from podium.studio.models.assessors import ModelRow, models_of
from podium.studio.reporting.query_figures import oriented
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow


@dataclass(frozen=True)
class ModelResult:
    """What a model says of a query.

    Attributes:
        model: The model's row.
        judgments: How many of its judgments stand.
        hidden: Whether the rest is withheld, because people have not finished the query.
        top: The positions of its best documents, in order.
        shared: How many things both it and people judged, a vote of each person counted.
        same: How many of those votes are the same as the model's.
    """

    model: ModelRow
    judgments: int
    hidden: bool
    top: list[int] = field(default_factory=list)
    shared: int = 0
    same: int = 0


def model_results(
    connection: Connection, project: ProjectRow, query: ProjectQueryRow
) -> list[ModelResult]:
    """What each model that judged a query says of it."""
    models = models_of(connection, project.id)
    if not models:
        return []
    judged = load_judged_query(connection, project, query)
    results = []
    for row in models:
        view = model_view(judged, row.user_id)
        count = len([entry for entry in view.standing if entry.kind is not Kind.WITHDRAW])
        if not count:
            continue
        # People who have yet to answer must not know: managers judge too.
        if not judged.state.done:
            results.append(ModelResult(row, count, hidden=True))
            continue
        shared, same = _agreement(judged, view)
        results.append(ModelResult(row, count, False, _top(view, project.k), shared, same))
    return results


def _top(view: JudgedQuery, k: int) -> list[int]:
    mode = view.state.mode
    at = {item: position for position, item in enumerate(view.items)}
    if isinstance(mode, PairsMode):
        return [at[item] for item in mode.session.result().top] if mode.session.done else []
    if isinstance(mode, GradesMode):
        labels = view.labels(ties=False)
        return [at[item] for item in sorted(labels, key=lambda item: -labels[item])[:k]]
    return []


def _agreement(judged: JudgedQuery, view: JudgedQuery) -> tuple[int, int]:
    model_values = dict(oriented(entry) for entry in view.standing if entry.left is not None)
    votes = [
        oriented(entry)
        for entry in judged.standing
        if entry.purpose is Purpose.MAIN
        and entry.counts
        and entry.kind in (Kind.VERDICT, Kind.GRADE)
    ]
    both = [(model_values[unit], value) for unit, value in votes if unit in model_values]
    return len(both), sum(one == other for one, other in both)
