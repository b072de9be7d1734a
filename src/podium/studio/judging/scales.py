"""A project's own grades, and its own questions beside the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from podium.judging.entries import GRADES, MOST_GRADES
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.store.database import storable

Colour = Literal["", "red", "orange", "yellow", "green", "teal", "blue", "purple", "grey"]
COLOURS: tuple[str, ...] = get_args(Colour)
"""The colours of grades, each readable in light and dark; none is the plain button."""
MOST_QUESTIONS = 10
_MOST_OPTIONS = 20
LONGEST_REPLY = 2000
LONGEST_GRADE = 40
"""How many characters the name of a grade has at most, and so any choice."""
_RESERVED = {"skip", "keep"}
"""What else can be answered."""

STORABLE = AfterValidator(lambda text: storable(text).strip())
"""Text as it is stored, without space around it."""


class ScaleGrade(BaseModel):
    """A grade of a project's own scale.

    Example:
        >>> ScaleGrade(name="Exact", description="What was searched for", colour="green").name
        'Exact'
    """

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=LONGEST_GRADE), STORABLE]
    """What the button says, and how programs answer."""
    description: Annotated[str, Field(max_length=300), STORABLE] = ""
    """When to give it."""
    colour: Colour = ""


class AssessorQuestion(BaseModel):
    """A question beside the verdict.

    Example:
        >>> AssessorQuestion(name="why", text="Why?", options=["price", "brand"]).kind
        'choice'
    """

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    """Names the replies in exports: small letters, digits and underscores."""
    text: Annotated[str, Field(max_length=300), STORABLE]
    """The question, as people read it."""
    options: list[Annotated[str, Field(max_length=100), STORABLE]] = Field(
        default=[], max_length=_MOST_OPTIONS
    )
    """What can be chosen; without any, people write."""
    required: bool = False
    """Whether a verdict needs a reply; skipping a task does not."""

    @property
    def kind(self) -> Literal["choice", "text"]:
        """Whether people choose or write."""
        return "choice" if self.options else "text"

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not self.text:
            raise ValueError("the question has no text")
        if not all(self.options) or len(set(self.options)) < len(self.options):
            raise ValueError("an option is empty or repeated")
        if len(self.options) == 1:
            raise ValueError("one option is no choice: give two or more, or none")
        return self


def check_scale(grades: Sequence[ScaleGrade]) -> None:
    """Refuse a scale that is too short or long, or whose grades are not distinct."""
    if not grades:
        return
    if not 2 <= len(grades) <= MOST_GRADES:
        raise ValueError(f"a scale has 2 to {MOST_GRADES} grades")
    names = {grade.name.casefold() for grade in grades}
    if "" in names or len(names) < len(grades):
        raise ValueError("the name of a grade is missing or repeated")
    if reserved := names & _RESERVED:
        raise ValueError(f"a grade cannot be called {min(reserved)!r}")


def check_questions(questions: Sequence[AssessorQuestion]) -> None:
    """Refuse two questions of one name."""
    if len({question.name for question in questions}) < len(questions):
        raise ValueError("two questions have the same name")


def scale_of(stored: Sequence[JsonObject]) -> list[ScaleGrade]:
    """A project's grades, worst first: its own, or the usual five.

    Example:
        >>> [grade.name for grade in scale_of([])]
        ['bad', 'fair', 'good', 'excellent', 'perfect']
    """
    if not stored:
        return [ScaleGrade(name=name) for name in GRADES]
    return [ScaleGrade(**grade) for grade in stored]


def grade_names(stored: Sequence[JsonObject]) -> tuple[str, ...]:
    """The names of a project's grades, worst first."""
    return tuple(str(grade["name"]) for grade in stored) if stored else GRADES


def checked_replies(
    stored: Sequence[JsonObject], replies: Mapping[str, str], *, skipped: bool
) -> dict[str, str] | None:
    """The replies to a project's questions, if they are complete; None if there are none.

    Replies to questions that the project no longer asks are left out: a page that was open when
    they were removed still sends them.

    Args:
        stored: The project's questions.
        replies: To each question's name its reply.
        skipped: Whether the task was skipped, which needs no replies.
    """
    kept = {}
    for each in stored:
        name, reply = str(each["name"]), replies.get(str(each["name"]), "").strip()
        if reply and each["options"] and reply not in each["options"]:
            raise RefusedError(
                422, "“%(reply)s” is not a valid reply to “%(question)s”.", reply=reply,
                question=str(each["text"]),
            )  # fmt: skip
        if reply:
            kept[name] = reply
        elif each["required"] and not skipped:
            raise RefusedError(
                422, "A reply to “%(question)s” is missing.", question=str(each["text"])
            )
    return kept or None
