"""A transaction in which someone judges: the queries it locks, and what it writes to them.

A query's log only grows, its row repeats what follows from the log and the leases. So everything is
applied to the query's state first, and the row is written once, at the end.

A lease records who holds which task, and until when. A page renews its lease every few seconds, so
the lease is short and expires soon after the last renewal. A program that does not renew gets the
project's `lease_seconds`. Expired leases are kept until `delete_old_leases`, so that late answers
can be matched. A page may fetch tasks ahead: they are leased like the one that it shows, and never
given back to someone who left the page. Two tabs of one person may show the same task without
knowing of each other. So when a tab releases a shared task, its lease is only shortened: the other
tab's next renewal extends it again.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from sqlalchemy import Connection, Executable, bindparam, delete, insert, or_, select, update

from podium.studio.jobs.outbox import enqueue_delivery
from podium.studio.json_types import JsonObject
from podium.studio.judging.answer_choices import AnswerEntry
from podium.studio.judging.judgment_counts import count_judgment
from podium.studio.judging.modes import JudgingTask, QueryLogEntry
from podium.studio.judging.query_state import Document, QueryState
from podium.studio.judging.state_cache import StateCache
from podium.studio.store.dialects import transaction_number
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.rows import LeaseRow, ProjectQueryRow, ProjectRow, fetch_one
from podium.studio.store.tables import Gold, Lease, LogEntry, ProjectQuery, QueryAssignment, Webhook
from podium.studio.store.tokens import new_token

RENEWED_SECONDS = 45.0
"""How long a page's lease lasts after a renewal: others wait less than a minute for the task."""
RENEW_EVERY = 15.0
"""How often a page renews its lease, in seconds."""
SHARED_SECONDS = RENEW_EVERY + 5.0
"""How long a shared lease lasts after one tab released it: time for the other tabs to renew it."""
KEPT_DAYS = 30.0
"""How many days an expired lease is kept for a late answer."""

MAX_LEASES = 10
"""The maximum number of leases of one person in a project."""

_TAKE_LEASE = delete(Lease).where(Lease.token == bindparam("key")).returning(Lease.__table__)


@dataclass(frozen=True)
class LeaseHolder:
    """Who holds a lease: a browser tab of a person, or a program.

    Attributes:
        user_id: The person.
        tab: The tab; empty for what has nothing to do with one.
        renews: Whether it renews its lease every `RENEW_EVERY` seconds.
    """

    user_id: int
    tab: str = ""
    renews: bool = False

    def until(self, project: ProjectRow, now: float) -> float:
        """When a lease granted now expires."""
        longest = float(project.lease_seconds)
        return now + (min(longest, RENEWED_SECONDS) if self.renews else longest)


def take_lease(connection: Connection, token: UUID) -> LeaseRow | None:
    """Delete an answered lease, and return it; None if a copy of the answer already did."""
    return fetch_one(connection, _TAKE_LEASE, LeaseRow, key=token)


def release_tab(connection: Connection, user_id: int, tab: str, now: float) -> None:
    """End the leases of a tab that undoes an answer, except those shared with another tab."""
    held = [Lease.user_id == user_id, Lease.tab == tab, ~Lease.released, ~Lease.shared]
    queries = connection.scalars(select(Lease.query_id).where(*held)).all()
    if queries:
        connection.execute(update(Lease).where(*held).values(released=True, expires_at=now, tab=""))
        # The next search for open work looks at these queries.
        connection.execute(
            update(ProjectQuery).where(ProjectQuery.id.in_(queries)).values(lease_expiry=0.0)
        )


def delete_old_leases(connection: Connection, now: float) -> int:
    """Delete leases that expired too long ago for a late answer; returns how many."""
    oldest = now - 86400 * KEPT_DAYS
    return int(connection.execute(delete(Lease).where(Lease.expires_at < oldest)).rowcount)


_FORECAST_EVERY = 16
"""The number of judgments left is estimated again after this many entries."""
_REPEAT_AFTER = 5
"""The minimum number of answers between a pair and its repetition."""

_GOLD = select(Gold.left, Gold.right).where(Gold.query_id == bindparam("query"))
_HELD = select(Lease.token, Lease.left, Lease.right, Lease.user_id, Lease.expires_at).where(
    Lease.query_id == bindparam("query"), ~Lease.released
)
_CHANGE = update(Lease).where(Lease.token == bindparam("key"))
# The page may have renewed it since it was read.
_END = _CHANGE.where(Lease.expires_at < bindparam("now")).values(released=True)
_RENEW = _CHANGE.where(Lease.user_id == bindparam("user"), ~Lease.released).values(
    shared=or_(Lease.shared, Lease.tab != bindparam("by"))
)
_SHORTEN = _CHANGE.where(Lease.expires_at > bindparam("until")).values(
    expires_at=bindparam("until")
)
_UPDATE = update(ProjectQuery).where(ProjectQuery.id == bindparam("query"))
_UPDATE_AND_REOPEN = _UPDATE.values(changed=transaction_number())
_WRITTEN = (
    "entries", "judgments", "free", "available", "lease_expiry", "done", "expected_left",
    "withdrawn",
)  # fmt: skip
"""The columns of a query's row that follow from its log and leases."""
_ASSIGNED_DONE = update(QueryAssignment).where(QueryAssignment.query_id == bindparam("query"))


@dataclass(frozen=True)
class HeldPair:
    """A pair that someone has leased, and until when."""

    pair: tuple[int, int]
    user_id: int
    expires_at: float


@dataclass
class QueryLeases:
    """The active leases of a query.

    Attributes:
        since: When they were read.
        held: The leased pairs.
        freed: Whether a lease was found expired and ended.
    """

    since: float
    held: list[HeldPair] = field(default_factory=list)
    freed: bool = False


@dataclass(frozen=True)
class LeasedTask:
    """A task that is leased to someone.

    Attributes:
        token: Identifies the answer.
        query: The query's row.
        task: The task.
        expires_at: When the lease expires.
        sides: The documents on each side, with their positions.
        judged: The number of judgments of the query.
        left: The estimated number of judgments it still needs.
    """

    token: UUID
    query: ProjectQueryRow
    task: JudgingTask
    expires_at: float
    sides: list[list[tuple[int, Document]]]
    judged: int
    left: float


@dataclass(frozen=True)
class NewAnswer:
    """An answer as the log gets it.

    Attributes:
        user_id: Whose answer.
        token: Identifies it.
        parts: Its entries.
        purpose: Why the task was asked.
        late: Whether its lease had expired.
        counts: Whether it counts.
        reason: The comment.
        seconds: How long it took.
        replies: The replies to the project's questions.
    """

    user_id: int
    token: UUID
    parts: Sequence[AnswerEntry]
    purpose: Purpose
    late: bool = False
    counts: bool = True
    reason: str | None = None
    seconds: float = 0.0
    replies: JsonObject | None = None

    @property
    def is_judgment(self) -> bool:
        """Whether it is a judgment that counts."""
        return self.counts and self.parts[0].kind is not Kind.SKIP


class LockedQuery:
    """A query whose row is locked, with its state and leases.

    Args:
        connection: The transaction.
        row: The query's row, as it was read under its lock.
        state: Its state.
        now: The time.
        manager_id: Who changes it, if it is not one of those who judge it.

    Attributes:
        row: The query's row, as it is or will be written.
        state: Its state.
        now: The time.
        opened: Whether tasks may have become available in a way that the state does not show.
        corrected: Whether what is left is to be estimated again.
    """

    def __init__(
        self,
        connection: Connection,
        row: ProjectQueryRow,
        state: QueryState,
        now: float,
        manager_id: int | None = None,
    ) -> None:
        self._connection = connection
        self._manager_id = manager_id
        self._is_written = False
        self._entries_before = row.entries
        self._known_progress: tuple[dict[tuple[int, int], int], float] | None = None
        self.row = row
        self.state = state
        self.now = now
        # Released leases are not active any more: only the row shows that there were some.
        self.opened = row.lease_expiry == 0.0 or manager_id is not None
        self.corrected = manager_id is not None

    @property
    def has_new_entries(self) -> bool:
        """Whether this transaction has added to the log."""
        return self.state.seen > self._entries_before

    @cached_property
    def leases(self) -> QueryLeases:
        """The active leases; those that have expired are ended."""
        query_leases, now = QueryLeases(self.now), self.now
        rows = self._connection.execute(_HELD, {"query": self.row.id})
        for token, left, right, user_id, expires_at in rows:
            if expires_at < now and self._change_lease(_END, token, now=now):
                query_leases.freed = True
            else:
                pair = (min(left, right), max(left, right))
                query_leases.held.append(HeldPair(pair, user_id, max(expires_at, now)))
        return query_leases

    def open_to(self, user_id: int) -> Iterator[JudgingTask]:
        """Tasks open to someone: not leased to them, nor to as many others as the task needs."""
        mine, counts = self._held_by(user_id), Counter(each.pair for each in self.leases.held)
        for task in self.state.open(user_id):
            if task.pair not in mine and self.state.mode.missing(task) > counts[task.pair]:
                yield task

    def pick(self, project: ProjectRow, user_id: int, rng: random.Random) -> JudgingTask | None:
        """An open task for someone, or None; sometimes a check instead of it."""
        task = next(self.open_to(user_id), None)
        if task is None or project.mode != Mode.PAIRS:
            return task
        drawn, checks = rng.random(), []
        if drawn < project.gold_rate:
            checks = self._gold_pairs(user_id)
        elif drawn < project.gold_rate + project.repeat_rate:
            checks = self.state.repeatable(user_id, after=_REPEAT_AFTER)
        if not checks:
            return task
        check = rng.choice(checks)
        if check.purpose is Purpose.GOLD and rng.random() < 0.5:
            check = JudgingTask(check.right, check.left, Purpose.GOLD)
        return task if check.pair in self._held_by(user_id) else check

    def _gold_pairs(self, user_id: int) -> list[JudgingTask]:
        """The gold pairs that someone has not judged."""
        met = self.state.asked_pairs(user_id, Purpose.GOLD)
        rows = self._connection.execute(_GOLD, {"query": self.row.id})
        tasks = [JudgingTask(left, right, Purpose.GOLD) for left, right in rows]
        return [task for task in tasks if task.pair not in met and self.state.shows_all(task)]

    def _held_by(self, user_id: int) -> set[tuple[int, int]]:
        return {each.pair for each in self.leases.held if each.user_id == user_id}

    def is_still_open(self, task: JudgingTask, user_id: int) -> bool:
        """Whether someone may be asked a task once more."""
        open_pairs = {each.pair for each in self.open_to(user_id)}
        if task.purpose is Purpose.MAIN:
            return task.pair in open_pairs
        return bool(open_pairs) and self.state.shows_all(task)

    def still_counts(self, task: JudgingTask, user_id: int) -> bool:
        """Whether a late answer still counts: the task is open and nobody else holds it."""
        if task.purpose is not Purpose.MAIN:
            return True
        held = self.leases.held
        if any(each.pair == task.pair and each.user_id != user_id for each in held):
            return False
        return any(each.pair == task.pair for each in self.state.open(user_id))

    def lease(
        self, project: ProjectRow, who: LeaseHolder, task: JudgingTask, *, ahead: bool = False
    ) -> LeasedTask:
        """Lease a task to someone."""
        lease = LeaseRow(
            new_token(), self.row.id, who.user_id, who.tab, task.left, task.right,
            task.purpose.value, self.now, who.until(project, self.now), released=False,
            renewed=who.renews, shared=False, ahead=ahead,
        )  # fmt: skip
        self._hold(lease)
        self._connection.execute(insert(Lease), lease._asdict())
        return self._leased(lease.token, task, lease.expires_at)

    def lease_again(self, project: ProjectRow, who: LeaseHolder, lease: LeaseRow) -> LeasedTask:
        """Lease the task of an ended lease again to the same person, in the tab that asks."""
        until = who.until(project, self.now)
        lease = lease._replace(
            tab=who.tab, expires_at=until, released=False, renewed=who.renews, shared=False,
            ahead=False,
        )  # fmt: skip
        self._hold(lease)
        columns = lease._asdict()
        self._change_lease(_CHANGE, columns.pop("token"), **columns)
        return self._leased(lease.token, task_of(lease), until)

    def extend(self, project: ProjectRow, who: LeaseHolder, lease: LeaseRow) -> LeasedTask | None:
        """Renew a lease; None if it has ended."""
        until = renew_lease(self._connection, project, who, lease.token, self.now)
        return None if until is None else self._leased(lease.token, task_of(lease), until)

    def release(self, lease: LeaseRow) -> None:
        """End a lease; one that two tabs share expires soon, unless the other tab renews it.

        Closing several tabs in a row does not extend it.
        """
        if lease.shared:
            self._change_lease(_SHORTEN, lease.token, until=self.now + SHARED_SECONDS)
        else:
            self._change_lease(_CHANGE, lease.token, released=True, expires_at=self.now)
            self.opened = True

    def _hold(self, lease: LeaseRow) -> None:
        """Count a lease that is not in the database yet among the active ones."""
        pair = HeldPair(task_of(lease).pair, lease.user_id, lease.expires_at)
        self.leases.held.append(pair)
        self._is_written = False

    def _change_lease(self, statement: Executable, token: UUID, **values: object) -> bool:
        return bool(self._connection.execute(statement, {"key": token, **values}).rowcount)

    def _leased(self, token: UUID, task: JudgingTask, until: float) -> LeasedTask:
        """A task of this query that someone has leased."""
        state = self.state
        return LeasedTask(
            token, self.row, task, until, state.documents_shown(task), state.judgments,
            self._progress[1],
        )  # fmt: skip

    def answer(self, answer: NewAnswer) -> None:
        """Append an answer, and count it in its author's totals."""
        for number, part in enumerate(answer.parts):
            entry = QueryLogEntry(
                self.state.seen, answer.user_id, part.kind, part.left, part.right, part.value,
                None, answer.purpose, answer.counts, answer.token, self.now,
                0.0 if number else answer.seconds, answer.reason,
                replies=None if number else answer.replies,
            )  # fmt: skip
            self._append(entry, number, late=answer.late)
        judged = answer.is_judgment
        count_judgment(
            self._connection, self.row, answer.user_id, judgments=int(judged),
            seconds=answer.seconds if judged else 0.0, last_at=self.now,
        )  # fmt: skip

    def undo(
        self, entries: Sequence[QueryLogEntry], token: UUID, reason: str | None = None
    ) -> None:
        """Undo answers; the log gets an entry for each, in the name of its author.

        Args:
            entries: The answers.
            token: Identifies the undo.
            reason: Why.
        """
        self._append_undos([(entry, entry.position) for entry in entries], token, reason)
        self._count(entries, -1)

    def restore(self, entries: Sequence[QueryLogEntry]) -> None:
        """Bring undone answers back: undo the entries that undid them."""
        undos = [(entry, self.state.undo_of(entry.position)) for entry in entries]
        targets = [(entry, undo) for entry, undo in undos if undo is not None]
        self._append_undos(targets, new_token(), None)
        self._count(entries, 1)

    def withdraw(self, document: int | None, reason: str | None) -> None:
        """Withdraw a document, or the query."""
        self._append_of_manager(Kind.WITHDRAW, document, None, reason)

    def readmit(self, withdrawal: int) -> None:
        """Take back what an entry withdrew."""
        self._append_of_manager(Kind.UNDO, None, withdrawal, None)

    def write_back(self) -> None:
        """Write the query's row, unless it is written and nothing has changed since."""
        if self._is_written:
            return
        row, state, query_leases = self.row, self.state, self.leases
        missing, left = self._progress
        free = _unleased(missing, query_leases)
        self.row = row._replace(
            entries=state.seen, judgments=state.judgments, free=free, available=free > 0,
            lease_expiry=_look_again_at(row, query_leases), done=not missing, expected_left=left,
            withdrawn=state.withdrawn,
        )  # fmt: skip
        # `opened_more` comes first: it remembers what is missing for the next call.
        more = state.opened_more(missing, row.entries) or query_leases.freed or self.opened
        statement = _UPDATE_AND_REOPEN if free and (more or not row.available) else _UPDATE
        written = {name: getattr(self.row, name) for name in _WRITTEN}
        self._connection.execute(statement, {"query": row.id, **written})
        if self.row.done != row.done:
            self._connection.execute(_ASSIGNED_DONE, {"query": row.id, "done": self.row.done})
            if self.row.done:
                _announce_done(self._connection, self.row)
        self._is_written = True

    @property
    def is_finished(self) -> bool:
        """Whether this transaction's entries leave nothing to judge, and there was something."""
        return not self.row.done and not self._progress[0]

    @property
    def _progress(self) -> tuple[dict[tuple[int, int], int], float]:
        """The judgments that each open pair needs, and how many are left by estimate."""
        if self._known_progress is None:
            missing = self.state.missing()
            self._known_progress = missing, self._expected_left() if missing else 0.0
        return self._known_progress

    def _expected_left(self) -> float:
        row, state = self.row, self.state
        if (
            row.done
            or self.corrected
            or state.seen > row.entries + 1
            or state.seen // _FORECAST_EVERY != row.entries // _FORECAST_EVERY
        ):
            return float(state.mode.expected_left())
        # Undone judgments are needed again.
        return float(max(row.expected_left - (state.judgments - row.judgments), 1.0))

    def _append(self, entry: QueryLogEntry, part: int = 0, *, late: bool = False) -> None:
        """Append an entry to the log, and apply it to the state."""
        columns: JsonObject = {
            "query_id": self.row.id,
            "position": entry.position,
            "user_id": entry.user,
            "kind": entry.kind.value,
            "left": entry.left,
            "right": entry.right,
            "value": None if entry.value is None else int(entry.value),
            "undoes": entry.undoes,
            "purpose": entry.purpose.value,
            "counts": entry.counts,
            "late": late,
            "token": entry.token,
            "part": part,
            "reason": entry.reason,
            "at": entry.at,
            "seconds": entry.seconds,
            "manager_id": entry.manager,
        }
        if entry.replies is not None:  # the column is NULL without replies, not JSON's null
            columns["replies"] = entry.replies
        self._connection.execute(insert(LogEntry), columns)
        self.state.apply(entry)
        self._known_progress = None
        self._is_written = False

    def _append_undos(
        self, targets: Sequence[tuple[QueryLogEntry, int]], token: UUID, reason: str | None
    ) -> None:
        """Append undos of the entries at some positions, each in the name of an answer's author."""
        for number, (entry, position) in enumerate(targets):
            undo = QueryLogEntry(
                self.state.seen, entry.user, Kind.UNDO, None, None, None, position, entry.purpose,
                True, token, self.now, 0.0, reason, self._manager_id,
            )  # fmt: skip
            self._append(undo, number)

    def _append_of_manager(
        self, kind: Kind, document: int | None, undoes: int | None, reason: str | None
    ) -> None:
        manager_id = self._manager_id
        assert manager_id is not None
        entry = QueryLogEntry(
            self.state.seen, manager_id, kind, document, None, None, undoes, Purpose.MAIN, True,
            new_token(), self.now, 0.0, reason, manager_id,
        )  # fmt: skip
        self._append(entry)

    def _count(self, entries: Sequence[QueryLogEntry], sign: int) -> None:
        """Add answers that were brought back to their authors' totals, or subtract undone ones."""
        for user in {entry.user for entry in entries}:
            judgments = [entry for entry in entries if entry.user == user and entry.is_judgment]
            count_judgment(
                self._connection, self.row, user,
                judgments=sign * len({entry.token for entry in judgments}),
                seconds=sign * sum(entry.seconds for entry in judgments),
                last_at=self.state.last_at(user),
            )  # fmt: skip


class UnitOfWork:
    """A transaction: it locks queries, and writes them back at its end.

    Args:
        connection: The transaction.
        states: The states of queries used before.
        clock: Returns the time in seconds since 1970.

    Attributes:
        connection: The transaction.
    """

    def __init__(
        self, connection: Connection, states: StateCache, clock: Callable[[], float] = time.time
    ) -> None:
        self.connection = connection
        self._states = states
        self._clock = clock
        self._locked: dict[int, LockedQuery] = {}

    @cached_property
    def now(self) -> float:
        """The time when it was first asked for: what locks a query first knows how long it took."""
        return self._clock()

    def lock(
        self, project: ProjectRow, statement: Executable, /, **values: object
    ) -> LockedQuery | None:
        """Lock the query that a statement selects, if there is one; its row is all it selects."""
        row = self.connection.execute(statement, values).one_or_none()
        return None if row is None else self.locked(project, ProjectQueryRow._make(row))

    def locked(self, project: ProjectRow, row: ProjectQueryRow) -> LockedQuery:
        """The query of a row that this transaction has locked."""
        if row.id not in self._locked:
            state = self._states.take(self.connection, project, row)
            self._locked[row.id] = LockedQuery(self.connection, row, state, self.now)
        return self._locked[row.id]

    def write_back(self) -> None:
        """Write the rows of all queries."""
        for query in self._locked.values():
            query.write_back()

    def keep_states(self) -> None:
        """Keep the states of the queries for others, once they are committed."""
        for query_id, query in self._locked.items():
            self._states.put(query_id, query.state)

    def keep_unchanged(self) -> None:
        """Keep the states to which nothing was added, if the transaction is not committed."""
        for query_id, query in self._locked.items():
            if not query.has_new_entries:
                self._states.put(query_id, query.state)


def renew_lease(
    connection: Connection, project: ProjectRow, who: LeaseHolder, token: UUID, now: float
) -> float | None:
    """Extend a lease as if it were new; returns its expiry, or None if it has ended.

    If another tab holds it, both tabs share it from now on.
    """
    until = who.until(project, now)
    values = {"key": token, "user": who.user_id, "by": who.tab}
    renewed = connection.execute(_RENEW, {**values, "expires_at": until, "renewed": who.renews})
    return until if renewed.rowcount else None


def task_of(lease: LeaseRow) -> JudgingTask:
    """The task of a lease."""
    return JudgingTask(lease.left, lease.right, Purpose(lease.purpose))


def _unleased(missing: dict[tuple[int, int], int], query_leases: QueryLeases) -> int:
    """The number of open tasks that nobody has leased."""
    held = Counter(each.pair for each in query_leases.held)
    return sum(max(count - held[pair], 0) for pair, count in missing.items())


def _look_again_at(query: ProjectQueryRow, query_leases: QueryLeases) -> float | None:
    """When to look for expired leases.

    The stored time is kept if it is early enough: each new value would add an index entry.
    """
    first = min((each.expires_at for each in query_leases.held), default=None)
    if first is None or query.lease_expiry is None:
        return first
    return float(query.lease_expiry) if query_leases.since < query.lease_expiry <= first else first


def _announce_done(connection: Connection, query: ProjectQueryRow) -> None:
    """Queue what is sent to a project's webhooks, in the transaction in which a query gets done."""
    # Two that finish the last two queries at once: the second waits here, and sees the first's.
    webhooks = connection.scalars(
        select(Webhook.id)
        .where(Webhook.project_id == query.project_id)
        .order_by(Webhook.id)
        .with_for_update(key_share=True)
    ).all()
    if not webhooks:
        return
    base: JsonObject = {"project": query.project_id, "at": time.time()}
    events = []
    if not query.withdrawn:
        events.append(base | {"event": "query.done", "query": query.id, "query_id": query.name})
    left = select(ProjectQuery.id).where(
        ProjectQuery.project_id == query.project_id, ProjectQuery.done.is_(False)
    )
    if connection.scalar(left.limit(1)) is None:
        events.append(base | {"event": "project.done"})
    for webhook_id in webhooks:
        for event in events:
            enqueue_delivery(connection, event, webhook_id)
