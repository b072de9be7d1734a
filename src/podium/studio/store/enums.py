"""The words that tables, handlers and pages share: ways of judging, roles, kinds of entries."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """The three judging screens."""

    PAIRS = "pairs"
    GRADES = "grades"
    RANKINGS = "rankings"


class Role(StrEnum):
    """What a member may do: judge; run the project; or give it to others and end it."""

    ASSESSOR = "assessor"
    MANAGER = "manager"
    OWNER = "owner"


class Purpose(StrEnum):
    """Why something was asked: to move on, to learn how careful someone is, or for other ends.

    What a language model says (`MODEL`) is kept apart from what people say: it decides neither what
    is asked next nor what a query comes to. Where people disagree, an adjudicator's answer
    (`ADJUDICATE`) replaces theirs.
    """

    MAIN = "main"
    REPEAT = "repeat"
    GOLD = "gold"
    MODEL = "model"
    ADJUDICATE = "adjudicate"


class Kind(StrEnum):
    """What an entry of the log says; as `podium.judging` names them, and what only the studio has.

    Managers withdraw a query or one of its documents: `WITHDRAW` names the document, or none.
    """

    VERDICT = "verdict"
    BAD = "bad"
    GRADE = "grade"
    SIDE_BY_SIDE = "side-by-side"
    UNDO = "undo"
    SKIP = "skip"
    WITHDRAW = "withdraw"
