"""A small project that looks like a real one, for pictures and for checks of every screen."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine

from podium.data import Candidate, CandidateList
from podium.studio.projects.service import (
    ProjectSettings,
    add_queries,
    create_project,
    project_row,
)
from podium.studio.store.database import in_transaction

QUERY = "How do honey bees find their way home?"
DESCRIPTION = (
    "Someone saw bees leave a hive and come back from far away, and wonders by what they steer. "
    "A good answer names the cues and says how we know."
)
GUIDELINES = """# Which answer would help more?

Imagine that you asked the question yourself. Prefer the document that **answers it better**:

- it is about *finding the way*, not about bees in general;
- what it says is right, and it says how we know;
- it is clear and no longer than needed.

If both help equally, they are a tie. A document that does not help at all is **bad**.

| mark | when |
| --- | --- |
| better | you would rather be given this one |
| tie | you could not choose |
| bad | it does not answer the query |
"""
_DOCUMENTS = {
    "The sun as a compass": (
        "Honey bees steer by the sun. A forager keeps the angle between her course and the "
        "sun, and corrects it as the sun moves through the day: bees that are kept in the "
        "dark for some hours still fly in the right direction when they are let out.\n\n"
        "Under clouds they use the pattern of polarised light in whatever patch of blue sky "
        "is left. On the way home they turn the angle around and keep count of the distance "
        "by how quickly the ground moves past their eyes."
    ),
    "Learning the landmarks": (
        "Before a young bee collects anything she flies loops around the hive, a little wider "
        "every time. On these flights she learns what the way home looks like: trees, hedges, "
        "the line of the roofs.\n\n"
        "With small radar transponders on their backs, bees that were carried to an unknown "
        "place flew straight at first, then searched, and found home once they met a landmark "
        "they knew."
    ),
    "The waggle dance": (
        "A bee that found food dances on the comb. The angle of her run to the vertical is "
        "the angle of the food to the sun, and the length of the run is the distance. The "
        "dance sends others out; it says nothing about the way home."
    ),
    "Scent at the entrance": (
        "For the last few metres bees rely on smell. Workers at the entrance fan their wings "
        "and spread a scent from a gland at the tip of the abdomen, which guides the others "
        "in."
    ),
    "Keeping bees in the city": (
        "City honey is popular. A hive needs a sunny, quiet place, a source of water, and "
        "neighbours who agree. Ask your local association about courses."
    ),
    "Do bees feel the earth's field?": (
        "Bees have tiny grains of magnetite in the abdomen, and their dances shift a little "
        "when the field around the hive is changed. Whether this helps them on the way home "
        "is not settled."
    ),
}


def bees(*, html: bool = False, query_id: str = "bees", count: int = 6) -> CandidateList:
    """The query with its documents, as text or as web pages."""
    candidates = tuple(
        Candidate(
            f"d{n}",
            title=title,
            text="" if html else text,
            html=_page(title, text) if html else "",
            url=f"https://bees.example.org/{n}",
        )
        for n, (title, text) in enumerate(list(_DOCUMENTS.items())[:count])
    )
    return CandidateList(query_id, QUERY, candidates, DESCRIPTION)


def bees_project(
    engine: Engine, owner: int, *, html: bool = False, count: int = 6, **settings: Any
) -> int:
    """A new project with this one query."""

    def work(connection):
        found = ProjectSettings(
            **{"name": "Questions about bees", "k": 3, "guidelines": GUIDELINES, **settings}
        )
        project_id = create_project(connection, owner, found)
        entry = bees(html=html, count=count)
        items = [candidate.document_id for candidate in entry.candidates]
        rankings = {entry.query_id: {"old": items[::-1], "new": items}}
        add_queries(
            connection,
            project_row(connection, project_id),
            [entry],
            rankings if found.mode == "rankings" else None,
        )
        return project_id

    return in_transaction(engine, work)


def _page(title: str, text: str) -> str:
    paragraphs = "".join(f"<p>{part}</p>" for part in text.split("\n\n"))
    return f"<h1>{title}</h1>{paragraphs}<ul><li>See also: how bees see</li></ul>"
