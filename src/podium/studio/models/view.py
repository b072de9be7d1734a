"""A query as one model judged it: its own log and state, apart from people's."""

from __future__ import annotations

from dataclasses import replace

from podium.studio.judging.judged import JudgedQuery
from podium.studio.judging.modes import QueryLogEntry, new_mode
from podium.studio.judging.query_state import QueryState
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.rows import ProjectRow


def model_view(judged: JudgedQuery, project: ProjectRow, user_id: int) -> JudgedQuery:
    """A query as if a model alone had judged it.

    What was withdrawn is withdrawn for the model too. There is no overlap: a model judges once.

    Args:
        judged: The query with its whole log.
        project: The project's row.
        user_id: The account of the model.
    """
    log: list[QueryLogEntry] = []
    position_of: dict[int, int] = {}
    for entry in judged.log:
        is_of_model = entry.user == user_id and entry.purpose is Purpose.MODEL
        is_withdrawal = entry.kind is Kind.WITHDRAW or (
            entry.undoes is not None and judged.log[entry.undoes].kind is Kind.WITHDRAW
        )
        if is_of_model or is_withdrawal:
            undoes = None if entry.undoes is None else position_of[entry.undoes]
            position_of[entry.position] = len(log)
            log.append(replace(entry, position=len(log), undoes=undoes, purpose=Purpose.MAIN))
    alone = project._replace(overlap_share=0.0)
    mode = new_mode(alone, judged.query.ordered, judged.items, [])
    state = QueryState(mode, judged.state.documents, (), log)
    return JudgedQuery(judged.query, judged.items, log, state)
