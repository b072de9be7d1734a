"""Training and qualification: examples with explanations before the first real task.

Each assessor answers the examples once, and sees at once what is right and why. Who gets too few
right cannot judge until a manager allows it. Managers need no training.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    select,
)
from sqlalchemy.orm import aliased

from podium.errors import DataError
from podium.judging.entries import GRADES
from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.judging.answer_choices import SKIP, answer_entries, invalid_choice
from podium.studio.judging.corrections import judgment_at
from podium.studio.judging.modes import NO_ITEM, JudgingTask
from podium.studio.judging.record_files import read_records
from podium.studio.judging.scales import grade_names
from podium.studio.store.database import storable
from podium.studio.store.enums import Kind, Mode, Purpose, Role
from podium.studio.store.rows import ProjectRow, fetch_all, fetch_one
from podium.studio.store.tables import (
    LogEntry,
    Membership,
    Project,
    ProjectQuery,
    Qualification,
    QueryCandidate,
    Training,
    TrainingAnswer,
    TrainingExample,
    User,
)

MOST = 500
PASS_MARK = 0.8
"""The share of right answers that qualifies, unless somebody sets another."""
"""How many examples a project has at most."""
PASSED, FAILED, ALLOWED = "passed", "failed", "allowed"
_OUTCOMES = {"left": 1, "tie": 0, "right": -1}
_LONGEST = 5000


@dataclass(frozen=True)
class Example:
    """An example as a file has it: documents by id, and the answer's value."""

    query_id: str
    documents: tuple[str, ...]
    value: int
    explanation: str


class ExampleRow(NamedTuple):
    """A row of `podium.studio.store.tables.TrainingExample`."""

    id: int
    project_id: int
    query_id: int
    left: int
    right: int
    value: int
    explanation: str


class Trainee(NamedTuple):
    """An assessor and what came of their training; `state` is None before its end."""

    id: int
    name: str
    state: str | None
    correct: int
    answered: int


@dataclass(frozen=True)
class TrainingState:
    """How far someone is.

    Attributes:
        total: How many examples can be asked; 0 if nobody is trained.
        answered: How many of them they answered.
        correct: How many of those they got right.
        state: What came of it; None before the end.
        pass_mark: The share that qualifies.
    """

    total: int
    answered: int
    correct: int
    state: str | None
    pass_mark: float

    @property
    def may_judge(self) -> bool:
        """Whether they may judge, as far as training goes."""
        return not self.total or self.state in (PASSED, ALLOWED)


def read_examples(stream: IO[bytes], mode: Mode, grades: Sequence[str] = GRADES) -> list[Example]:
    r"""Read examples, one per line: JSONL, or a table of the same keys.

    Example:
        >>> import io
        >>> line = b'{"query_id": "q", "document": "a", "grade": "good", "explanation": "It is."}'
        >>> read_examples(io.BytesIO(line + b"\n"), Mode.GRADES)[0].value
        2
    """
    records = read_records(stream, lambda content: _example(content, mode, grades))
    examples = list(islice(records, MOST + 1))
    if not 0 < len(examples) <= MOST:
        count = f"more than {MOST}" if examples else "0"
        raise DataError(f"there are {count} examples", hint=f"Give 1 to {MOST}.")
    return examples


def set_training(
    connection: Connection, who: Member, examples: Sequence[Example], pass_mark: float
) -> int:
    """Replace a project's examples, and return how many there are.

    Who has qualified stays qualified; all others begin anew.
    """
    check_not_archived(who.project)
    if who.project.mode == Mode.RANKINGS:
        raise RefusedError(409, "Training is for projects that judge pairs or grades.")
    # Two files at the same time: the second takes away what the first one brought.
    connection.execute(
        select(Project.id).where(Project.id == who.project.id).with_for_update(key_share=True)
    )
    _clear(connection, who.project.id)
    connection.execute(insert(Training).values(project_id=who.project.id, pass_mark=pass_mark))
    for example in examples:
        query_id = connection.scalar(
            select(ProjectQuery.id).where(
                ProjectQuery.project_id == who.project.id, ProjectQuery.name == example.query_id
            )
        )
        if query_id is None:
            raise DataError(
                f"there is no query {example.query_id!r}", hint="Import the queries first."
            )
        rows = connection.execute(
            select(QueryCandidate.item, QueryCandidate.position).where(
                QueryCandidate.query_id == query_id, QueryCandidate.item.in_(example.documents)
            )
        )
        positions = {row.item: row.position for row in rows}
        for item in example.documents:
            if item not in positions:
                raise DataError(
                    f"query {example.query_id!r} has no document {item!r}",
                    hint="See its candidates.",
                )
        sides = [positions[item] for item in example.documents]
        connection.execute(
            insert(TrainingExample).values(
                project_id=who.project.id,
                query_id=query_id,
                left=sides[0],
                right=sides[1] if len(sides) > 1 else NO_ITEM,
                value=example.value,
                explanation=example.explanation,
            )
        )
    record(
        connection, who.person.id, who.project.id, "set up training",
        examples=len(examples), pass_mark=pass_mark,
    )  # fmt: skip
    return len(examples)


def add_judged_example(
    connection: Connection, who: Member, query_id: int, position: int, explanation: str
) -> None:
    """Make an example of the judgment at a position of a query's log, the last to be asked.

    Who has qualified stays qualified. The first example of a project begins its training.
    """
    _, entry = judgment_at(connection, who, query_id, position)
    project_id, left = who.project.id, entry.left or 0
    right = NO_ITEM if entry.right is None else entry.right
    examples = TrainingExample.project_id == project_id
    same = and_(TrainingExample.query_id == query_id, examples)
    sides = [TrainingExample.left.in_([left, right]), TrainingExample.right.in_([left, right])]
    if connection.scalar(select(exists().where(same, *sides))):
        raise RefusedError(409, "This is a training example already.")
    count = connection.scalar(select(func.count()).select_from(TrainingExample).where(examples))
    if (count or 0) >= MOST:
        raise RefusedError(409, "There are %(count)s examples, the most a project has.", count=MOST)
    if not connection.scalar(select(exists().where(Training.project_id == project_id))):
        connection.execute(insert(Training).values(project_id=project_id, pass_mark=PASS_MARK))
    connection.execute(
        insert(TrainingExample).values(
            project_id=project_id, query_id=query_id, left=left, right=right,
            value=entry.value or 0, explanation=explanation,
        )
    )  # fmt: skip
    record(connection, who.person.id, project_id, "added a training example", query=query_id)


def end_training(connection: Connection, who: Member) -> None:
    """Let everyone judge without training."""
    check_not_archived(who.project)
    _clear(connection, who.project.id)
    record(connection, who.person.id, who.project.id, "removed training")


def training_state(connection: Connection, project_id: int, user_id: int) -> TrainingState:
    """How far someone is with a project's training."""
    return _training_states(connection, project_id, user_id)[user_id]


def _training_states(
    connection: Connection, project_id: int, *users: int
) -> dict[int, TrainingState]:
    """How far people are, by a fixed number of statements."""
    total = _total(connection, project_id)
    right = func.sum(cast(TrainingAnswer.correct, Integer))
    answers = {
        row.user_id: (row.answered, int(row.correct))
        for row in connection.execute(
            select(
                TrainingAnswer.user_id,
                func.count().label("answered"),
                right.label("correct"),
            )
            .join(TrainingExample, TrainingExample.id == TrainingAnswer.example_id)
            .where(*_asked(project_id), TrainingAnswer.user_id.in_(users))
            .group_by(TrainingAnswer.user_id)
        )
    }
    states = {
        row.user_id: row.state
        for row in connection.execute(
            select(Qualification.user_id, Qualification.state).where(
                Qualification.project_id == project_id, Qualification.user_id.in_(users)
            )
        )
    }
    mark = connection.scalar(select(Training.pass_mark).where(Training.project_id == project_id))
    mark = float(mark or 0.0)
    result = {}
    for user_id in users:
        answered, correct = answers.get(user_id, (0, 0))
        state = states.get(user_id)
        if state is None and 0 < total <= answered:
            # Also if no answer came last, but a document of the examples left was withdrawn.
            state = PASSED if correct >= mark * total else FAILED
        result[user_id] = TrainingState(total, answered, correct, state, mark)
    return result


def next_example(connection: Connection, project_id: int, user_id: int) -> ExampleRow | None:
    """The first example that someone has not answered, or None."""
    answered = select(TrainingAnswer.example_id).where(TrainingAnswer.user_id == user_id)
    statement = (
        select(TrainingExample.__table__)
        .where(*_asked(project_id), TrainingExample.id.not_in(answered))
        .order_by(TrainingExample.id)
        .limit(1)
    )
    return fetch_one(connection, statement, ExampleRow)


def example_row(connection: Connection, project_id: int, example_id: int) -> ExampleRow:
    """An example of a project."""
    statement = select(TrainingExample.__table__).where(
        TrainingExample.id == example_id, TrainingExample.project_id == project_id
    )
    row = fetch_one(connection, statement, ExampleRow)
    if row is None:
        raise RefusedError(404, "The example does not exist.")
    return row


def answer_example(
    connection: Connection, project: ProjectRow, user_id: int, example_id: int, choice: str
) -> bool:
    """Record an answer to an example; returns whether it is right. The first one counts."""
    check_not_archived(project)
    row = example_row(connection, project.id, example_id)
    task = JudgingTask(row.left, row.right, Purpose.GOLD)
    grades = grade_names(project.scale)
    if choice == SKIP:
        raise invalid_choice(choice)
    parts = answer_entries(Mode(project.mode), task, choice, grades)
    _wait_for_others(connection, user_id)
    known = connection.scalar(
        select(TrainingAnswer.correct).where(
            TrainingAnswer.example_id == row.id, TrainingAnswer.user_id == user_id
        )
    )
    if known is not None:
        return bool(known)
    value = int(parts[0].value or 0)
    correct, now = value == row.value, time.time()
    connection.execute(
        insert(TrainingAnswer).values(
            example_id=row.id, user_id=user_id, value=value, correct=correct, at=now
        )
    )
    _qualify(connection, project.id, user_id, now)
    return correct


def allow(connection: Connection, who: Member, user_id: int) -> None:
    """Let someone judge, whatever came of their training."""
    check_not_archived(who.project)
    _check_member(connection, who, user_id)
    _wait_for_others(connection, user_id)
    state = training_state(connection, who.project.id, user_id)
    _set_state(connection, who.project.id, user_id, ALLOWED, state.correct, time.time())
    record(connection, who.person.id, who.project.id, "allowed someone to judge", user=user_id)


def begin_again(connection: Connection, who: Member, user_id: int) -> None:
    """Let someone take the training again."""
    check_not_archived(who.project)
    _check_member(connection, who, user_id)
    _wait_for_others(connection, user_id)
    examples = select(TrainingExample.id).where(TrainingExample.project_id == who.project.id)
    connection.execute(
        delete(TrainingAnswer).where(
            TrainingAnswer.user_id == user_id, TrainingAnswer.example_id.in_(examples)
        )
    )
    connection.execute(
        delete(Qualification).where(
            Qualification.project_id == who.project.id, Qualification.user_id == user_id
        )
    )
    record(connection, who.person.id, who.project.id, "let someone train again", user=user_id)


def trainees(connection: Connection, project_id: int) -> list[Trainee]:
    """The assessors of a project, and how far each is."""
    people = fetch_all(
        connection,
        select(User.id, User.name)
        .join(Membership, Membership.user_id == User.id)
        .where(Membership.project_id == project_id, Membership.role == Role.ASSESSOR.value)
        .order_by(User.name, User.id),
        _Person,
    )
    states = _training_states(connection, project_id, *(each.id for each in people))
    return [
        Trainee(
            each.id, each.name, states[each.id].state, states[each.id].correct,
            states[each.id].answered,
        )
        for each in people
    ]  # fmt: skip


def count_failed(connection: Connection, project_id: int) -> int:
    """How many assessors failed the training and wait for a manager."""
    failed = (
        select(func.count())
        .select_from(Qualification)
        .join(
            Membership,
            and_(
                Membership.user_id == Qualification.user_id,
                Membership.project_id == Qualification.project_id,
            ),
        )
        .where(
            Qualification.project_id == project_id,
            Qualification.state == FAILED,
            Membership.role == Role.ASSESSOR.value,
            exists().where(TrainingExample.project_id == project_id),
        )
    )
    return connection.scalar(failed) or 0


def must_train(connection: Connection, project_id: int, user_id: int) -> bool:
    """Whether someone may not judge yet in a project that trains people."""
    role = connection.scalar(
        select(Membership.role).where(
            Membership.project_id == project_id, Membership.user_id == user_id
        )
    )
    if role != Role.ASSESSOR.value:
        return False
    state = connection.scalar(
        select(Qualification.state).where(
            Qualification.project_id == project_id, Qualification.user_id == user_id
        )
    )
    if state in (PASSED, ALLOWED):
        return False
    return not training_state(connection, project_id, user_id).may_judge


class _Person(NamedTuple):
    id: int
    name: str


def _clear(connection: Connection, project_id: int) -> None:
    connection.execute(delete(TrainingExample).where(TrainingExample.project_id == project_id))
    connection.execute(delete(Training).where(Training.project_id == project_id))
    connection.execute(
        delete(Qualification).where(
            Qualification.project_id == project_id, Qualification.state == FAILED
        )
    )


def _asked(project_id: int) -> tuple[ColumnElement[bool], ...]:
    """Which examples are asked: those of a project without withdrawn documents."""
    undo = aliased(LogEntry)
    is_undone = exists().where(undo.query_id == LogEntry.query_id, undo.undoes == LogEntry.position)
    withdrawn = exists().where(
        LogEntry.query_id == TrainingExample.query_id,
        LogEntry.kind == Kind.WITHDRAW.value,
        LogEntry.left.in_([TrainingExample.left, TrainingExample.right]),
        ~is_undone,
    )
    return TrainingExample.project_id == project_id, ~withdrawn


def _total(connection: Connection, project_id: int) -> int:
    asked = select(func.count()).select_from(TrainingExample).where(*_asked(project_id))
    return int(connection.scalar(asked) or 0)


def _qualify(connection: Connection, project_id: int, user_id: int, now: float) -> None:
    """Note what came of someone's training, once they have answered everything."""
    state = training_state(connection, project_id, user_id)
    if state.state in (PASSED, FAILED):
        _set_state(connection, project_id, user_id, state.state, state.correct, now)


def _set_state(
    connection: Connection, project_id: int, user_id: int, state: str, correct: int, now: float
) -> None:
    connection.execute(
        delete(Qualification).where(
            Qualification.project_id == project_id, Qualification.user_id == user_id
        )
    )
    connection.execute(
        insert(Qualification).values(
            project_id=project_id, user_id=user_id, state=state, correct=correct,
            total=_total(connection, project_id), at=now,
        )
    )  # fmt: skip


def _wait_for_others(connection: Connection, user_id: int) -> None:
    """Wait until nobody else changes what came of someone's training, and keep others waiting.

    So the second copy of an answer finds the first, and nothing is left of a last answer that
    comes while a manager lets them train again.
    """
    connection.execute(select(User.id).where(User.id == user_id).with_for_update(key_share=True))


def _check_member(connection: Connection, who: Member, user_id: int) -> None:
    member = connection.scalar(
        select(Membership.user_id).where(
            Membership.project_id == who.project.id, Membership.user_id == user_id
        )
    )
    if member is None:
        raise RefusedError(404, "The member does not exist.")


def _example(content: JsonObject, mode: Mode, grades: Sequence[str]) -> Example:
    documents = ("document",) if mode is Mode.GRADES else ("left", "right")
    answer = "grade" if mode is Mode.GRADES else "outcome"
    names = ("query_id", *documents, answer, "explanation")
    if set(content) != set(names) or not all(isinstance(content[name], str) for name in names):
        raise DataError("is not a valid example", hint=f"Give {', '.join(names)}, as strings.")
    ranks = {name: grade for grade, name in enumerate(grades)}
    values = ranks if mode is Mode.GRADES else _OUTCOMES
    if content[answer] not in values:
        raise DataError(f"the {answer} is {content[answer]!r}", hint=f"Give {', '.join(values)}.")
    explanation = storable(content["explanation"]).strip()
    if not 0 < len(explanation) <= _LONGEST:
        raise DataError(
            "an explanation is empty or too long", hint=f"Give 1 to {_LONGEST} characters."
        )
    chosen = tuple(content[name] for name in documents)
    if len(set(chosen)) < len(chosen):
        raise DataError("a document is compared with itself", hint="Name two different documents.")
    if any("\0" in text for text in (content["query_id"], *chosen)):
        raise DataError("an id contains a NUL character", hint="Remove it.")
    return Example(content["query_id"], chosen, values[content[answer]], explanation)
