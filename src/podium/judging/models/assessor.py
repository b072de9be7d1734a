"""A language model that judges the documents of a query by a rubric.

Pairs are asked in both orders, because models favor a side. Where the endpoint gives the
probabilities of tokens, those of both orders are averaged; else two answers that contradict each
other make a tie. Answers are in the log before they count, and the same question is never asked
again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256

from podium.errors import ArgumentError, DataError
from podium.judging.algorithms.selection import Pair
from podium.judging.entries import Grade, Outcome, Verdict, majority
from podium.judging.models.answer_log import AnswerLog, ModelAnswer
from podium.judging.models.answer_parsing import ParsedAnswer, parse_answer
from podium.judging.models.chat_reply import ChatReply, label_probabilities
from podium.judging.models.endpoint import Endpoint
from podium.judging.models.injection import injection_flags
from podium.judging.models.rubric import Rubric, read_rubric

OUTCOMES = {"A": Outcome.LEFT, "B": Outcome.RIGHT, "TIE": Outcome.TIE}
"""What the labels of a pair mean; A is the document shown first."""


class EndpointAssessor:
    """A language model as an assessor of one query's documents.

    Args:
        endpoint: The model.
        query: What people searched for.
        texts: The text of each document; one that is empty is left to people.
        rubric: What it is asked: a `Rubric`, a TOML file, or ``grades`` or ``pairs``.
        log: Where answers are kept; by default in memory.
        query_id: The query's id, in the log of answers.
        description: What the searcher needs, in more words.
        repeats: How many times each question is asked, to see whether answers are the same.
        name: Who it is in a session's log; by default the model's name.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        query: str,
        texts: Mapping[str, str],
        rubric: Rubric | str | os.PathLike[str] = "pairs",
        log: AnswerLog | None = None,
        query_id: str = "",
        description: str = "",
        repeats: int = 1,
        name: str | None = None,
    ) -> None:
        if repeats < 1:
            raise ArgumentError(f"repeats is {repeats}", hint="Give 1 or more.")
        self.endpoint = endpoint
        self.rubric = rubric if isinstance(rubric, Rubric) else read_rubric(rubric)
        self.query = query
        self.query_id = query_id
        self.description = description
        self.name = name or endpoint.model
        self.log = AnswerLog() if log is None else log
        self._texts = texts
        self._repeats = repeats

    def verdict(self, pair: Pair[str], at: float | None = None) -> Verdict | None:
        """Judge a pair of a session, in both orders; None if no answer can be used."""
        begin = time.monotonic()
        outcome = self.outcome(*pair)
        if outcome is None:
            return None
        seconds = round(time.monotonic() - begin, 3)
        return Verdict(*pair, outcome, self.name, time.time() if at is None else at, seconds)

    def grade(self, item: str, at: float | None = None) -> Grade | None:
        """Grade a document; None if no answer can be used."""
        if not self._text(item):
            return None
        begin = time.monotonic()
        answers = [self.answer((item,), repeat) for repeat in range(self._repeats)]
        labels = [int(answer.label) for answer in answers if answer.label]
        if not labels:
            return None
        # The grade given most often; of several, the middle one.
        most = max(map(labels.count, labels))
        modes = sorted({label for label in labels if labels.count(label) == most})
        grade = modes[(len(modes) - 1) // 2]
        seconds = round(time.monotonic() - begin, 3)
        return Grade(item, grade, self.name, time.time() if at is None else at, seconds)

    def outcome(self, left: str, right: str) -> Outcome | None:
        """Which of two documents is better, asked in both orders; None if nobody can tell."""
        if self.rubric.task != "pair":
            raise ArgumentError(
                f"rubric {self.rubric.name!r} grades documents", hint="Give one for pairs."
            )
        if not (self._text(left) and self._text(right)):
            return None
        forward = [self.answer((left, right), repeat) for repeat in range(self._repeats)]
        backward = [self.answer((right, left), repeat) for repeat in range(self._repeats)]
        return pair_outcome(forward, backward)

    def answer(self, items: tuple[str, ...], repeat: int = 0) -> ModelAnswer:
        """One answer about documents in this order, from the log or from the model."""
        if len(items) != (1 if self.rubric.task == "grade" else 2):
            raise ArgumentError(
                f"rubric {self.rubric.name!r} is not about {len(items)} documents",
                hint="Give one for grades or pairs.",
            )
        documents = [self._text(item) for item in items]
        question = self._hash(documents, repeat)
        with self.log.claim(question):
            known = self.log.find(question)
            if known is None:
                known = self._ask(question, items, documents, repeat)
                self.log.add(known)
            return self.log.adopt(known, self.query_id, items)

    def _text(self, item: str) -> str:
        if item not in self._texts:
            raise DataError(f"item {item!r} has no text", hint="Give every item's text.")
        return self._texts[item]

    def _hash(self, documents: Sequence[str], repeat: int) -> str:
        content = [
            self.endpoint.model, self.rubric.hash, self.query, self.description, *documents, repeat
        ]  # fmt: skip
        return sha256(json.dumps(content).encode()).hexdigest()

    def _ask(
        self, question: str, items: tuple[str, ...], documents: Sequence[str], repeat: int
    ) -> ModelAnswer:
        rubric = self.rubric
        schema = rubric.schema if rubric.answer_format == "json" else None
        messages = rubric.messages(self.query, documents, self.description)
        begin = time.monotonic()
        exchange = self.endpoint.ask(
            messages, schema=schema, tokens=rubric.tokens, seed=repeat, key=question
        )
        replies, requests = [exchange.reply], exchange.requests
        problem, parsed = "", None
        if exchange.reply.refused:
            problem = "the model refused"
        else:
            try:
                parsed = parse_answer(exchange.reply.content, rubric)
            except DataError as error:
                again = [*messages, *rubric.repair(exchange.reply.content, error.problem)]
                exchange = self.endpoint.ask(
                    again,
                    schema=schema,
                    tokens=rubric.tokens,
                    seed=repeat,
                    key=f"{question}-repair",
                )
                replies.append(exchange.reply)
                requests += exchange.requests
                try:
                    parsed = parse_answer(exchange.reply.content, rubric)
                except DataError as second:
                    problem = second.problem
        last = replies[-1]
        probabilities = self._probabilities(last, parsed)
        return ModelAnswer(
            question,
            self.endpoint.model,
            f"{rubric.name}/{rubric.version}",
            rubric.hash,
            self.query_id,
            items,
            label="" if parsed is None else parsed.label,
            problem=problem,
            repeat=repeat,
            probabilities=probabilities or None,
            confidence=None if parsed is None else parsed.confidence,
            reason="" if parsed is None else parsed.reason,
            raw="\n---\n".join(reply.content for reply in replies),
            flags=tuple(sorted({flag for text in documents for flag in injection_flags(text)})),
            lengths=tuple(map(len, documents)),
            prompt_tokens=sum(reply.prompt_tokens for reply in replies),
            answer_tokens=sum(reply.answer_tokens for reply in replies),
            estimated=any(reply.estimated for reply in replies),
            requests=requests,
            served_by=last.served_by,
            at=round(time.time(), 3),
            seconds=round(time.monotonic() - begin, 3),
        )

    def _probabilities(self, reply: ChatReply, parsed: ParsedAnswer | None) -> dict[str, float]:
        if parsed is None:
            return {}
        shares = label_probabilities(reply, self.rubric.labels, parsed.position)
        return {label: round(share, 6) for label, share in shares.items()}


def pair_outcome(forward: Sequence[ModelAnswer], backward: Sequence[ModelAnswer]) -> Outcome | None:
    """What the answers in both orders come to; None if none of them can be used.

    Example:
        >>> one = ModelAnswer("1", "m", "pairs/1", "h", "q", ("a", "b"), "A")
        >>> other = ModelAnswer("2", "m", "pairs/1", "h", "q", ("b", "a"), "A")
        >>> pair_outcome([one], [other]).name
        'TIE'
    """
    masses = dict.fromkeys((Outcome.LEFT, Outcome.TIE, Outcome.RIGHT), 0.0)
    outcomes = []
    with_probabilities = True
    for answers, flipped in ((forward, False), (backward, True)):
        usable = [answer for answer in answers if answer.label]
        for answer in usable:
            shares = answer.probabilities or {}
            with_probabilities = with_probabilities and bool(shares)
            for label, share in shares.items():
                outcome = OUTCOMES[label]
                # Both orders count the same, however many answers of each can be used.
                masses[outcome.flipped if flipped else outcome] += share / len(usable)
            outcome = OUTCOMES[answer.label]
            outcomes.append(outcome.flipped if flipped else outcome)
    if not outcomes:
        return None
    if not with_probabilities:
        return majority(outcomes)
    if abs(masses[Outcome.LEFT] - masses[Outcome.RIGHT]) < _SAME:
        return Outcome.TIE
    return max(masses, key=lambda outcome: masses[outcome])


_SAME = 1e-4
"""Probabilities that differ by less are the same: endpoints round them."""
