"""What `podium.studio.client` gives and raises."""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import PodiumError


class StudioError(PodiumError):
    """What a studio refused, in its words.

    Attributes:
        status: The HTTP status; 0 if the studio could not be reached.

    Example:
        >>> StudioError(404, "There is no such project.").status
        404
    """

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True)
class StudioDocument:
    """A document of a task.

    Attributes:
        place: Its place in the query's list.
        title: A line that names it.
        url: Where it lives.
        text: Its text.
    """

    place: int
    title: str
    url: str
    text: str


@dataclass(frozen=True)
class StudioTask:
    """Something to judge.

    Attributes:
        token: Names the answer.
        query: The query as people typed it.
        description: What they meant.
        sides: The documents on each side: one each, or those of whole rankings.
        choices: What can be answered.
    """

    token: str
    query: str
    description: str
    sides: tuple[tuple[StudioDocument, ...], ...]
    choices: tuple[str, ...]
