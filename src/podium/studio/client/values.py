"""Tasks, documents and errors of `podium.studio.client`."""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import PodiumError


class StudioError(PodiumError):
    """A request that a studio refused, or a studio that cannot be reached.

    Attributes:
        status: The HTTP status; 0 if the studio could not be reached.

    Example:
        >>> StudioError(404, "The project does not exist.").status
        404
    """

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True)
class StudioDocument:
    """A document of a task.

    Attributes:
        reference: The number that identifies it within the task's query.
        title: Its title.
        url: Its URL.
        text: Its text.
    """

    reference: int
    title: str
    url: str
    text: str


@dataclass(frozen=True)
class StudioQuestion:
    """A question beside the verdict.

    Attributes:
        name: Names the reply.
        text: The question.
        options: What can be replied; any text if there are none.
        required: Whether an answer needs a reply.
    """

    name: str
    text: str
    options: tuple[str, ...]
    required: bool


@dataclass(frozen=True)
class StudioTask:
    """A judging task.

    Attributes:
        token: Identifies the answer.
        query: The query as people typed it.
        description: What they meant by it.
        sides: The documents on each side: one each, or those of whole rankings.
        choices: What can be answered.
        questions: What is asked besides.
    """

    token: str
    query: str
    description: str
    sides: tuple[tuple[StudioDocument, ...], ...]
    choices: tuple[str, ...]
    questions: tuple[StudioQuestion, ...] = ()
