"""``podium judge --model``: a language model judges in the place of a person."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from podium.cli.printing import print_facts, print_table
from podium.errors import ArgumentError, PodiumError

if TYPE_CHECKING:
    from podium.judging import SessionFile
    from podium.judging.models.answer_log import ModelAnswer

_PANEL = "A language model instead of a person"

ModelAddress = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="URL#NAME",
        rich_help_panel=_PANEL,
        help="A model behind an endpoint with OpenAI's chat completions, such as "
        "http://localhost:11434/v1#llama3.1; its key is taken from OPENAI_API_KEY.",
    ),
]
RubricFile = Annotated[
    str, typer.Option(rich_help_panel=_PANEL, help="A TOML file, or grades or pairs.")
]
AnswersFile = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="The log of answers, from which nothing is asked twice; by default beside SESSION.",
    ),
]
Connections = Annotated[
    int, typer.Option(min=1, rich_help_panel=_PANEL, help="The most requests at once.")
]
Repeats = Annotated[
    int, typer.Option(min=1, rich_help_panel=_PANEL, help="How often each question is asked.")
]
MaxRequests = Annotated[
    int | None, typer.Option(min=0, rich_help_panel=_PANEL, help="The most requests.")
]
MaxTokens = Annotated[
    int | None, typer.Option(min=0, rich_help_panel=_PANEL, help="The most tokens.")
]
MaxMoney = Annotated[
    float | None, typer.Option(min=0, rich_help_panel=_PANEL, help="The most money, by --prices.")
]
Prices = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_PANEL,
        metavar="PROMPT,ANSWER",
        help="The prices of a million tokens of prompts and of answers.",
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """What the options of a model say."""

    address: str
    rubric: str
    answers: Path
    connections: int
    repeats: int
    max_requests: int | None
    max_tokens: int | None
    max_money: float | None
    prices: str | None


class ModelJudge:
    """A model that judges session after session, until its budget is spent."""

    def __init__(self, options: ModelOptions, assessor: str | None) -> None:
        from podium.judging import AnswerLog, Budget, Endpoint
        from podium.judging.models.rubric import read_rubric

        self.rubric = read_rubric(options.rubric)
        prompt_price, answer_price = _prices(options.prices)
        budget = Budget(
            options.max_requests, options.max_tokens, options.max_money, prompt_price, answer_price
        )
        self._endpoint = Endpoint(options.address, connections=options.connections, budget=budget)
        self.name = assessor or self._endpoint.model
        self._repeats = options.repeats
        try:
            self._log = AnswerLog(options.answers)
        except BaseException:
            self._endpoint.close()
            raise
        self._log.charge(self._endpoint.spending, self._endpoint.model)
        self._before = len(self._log.answers)
        self._stopped: PodiumError | None = None

    def __call__(self, journal: SessionFile) -> bool:
        """Judge what is open; returns whether to go on with the next session."""
        from podium.judging import EndpointAssessor, EndpointError, judge_session
        from podium.judging.assessors.panel import grade_session
        from podium.judging.models.budget import BudgetError

        assessor = EndpointAssessor(
            self._endpoint,
            query=str(journal.about.get("query", "")),
            texts=_texts(journal),
            rubric=self.rubric,
            log=self._log,
            query_id=str(journal.about.get("query_id", "q")),
            description=str(journal.about.get("description", "")),
            repeats=self._repeats,
            name=self.name,
        )
        workers = self._endpoint.connections
        try:
            if self.rubric.task == "grade":
                grade_session(journal, assessor, max_workers=workers)
            else:
                judge_session(journal, [assessor], max_workers=workers)
        except (BudgetError, EndpointError) as error:
            self._stopped = error
        return self._stopped is None

    def finish(self) -> None:
        """Print what was asked, and raise what stopped it."""
        answers = self._log.answers
        new = answers[self._before :]
        if self.rubric.task == "grade":
            self._print_grades(answers)
        spending = self._endpoint.spending
        facts = {
            "model": f"{self._endpoint.model}, rubric {self.rubric.name}/{self.rubric.version} "
            f"({self.rubric.hash})",
            "answers": f"{len(new):,} new, {self._before:,} before, "
            f"{sum(not answer.label for answer in answers):,} unusable",
            "spent": f"{spending.requests:,} requests, "
            f"{spending.prompt_tokens + spending.answer_tokens:,} tokens",
        }
        if spending.money:
            facts["spent"] += f", {spending.money:.4f} in money"
        flagged = sorted({item for answer in answers if answer.flags for item in answer.items})
        if flagged:
            facts["look at"] = "prompt injection may be in " + ", ".join(flagged[:10])
        print_facts(facts, to_stderr=True)
        if self._stopped is not None:
            raise self._stopped

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._log.close()
        self._endpoint.close()

    def _print_grades(self, answers: list[ModelAnswer]) -> None:
        counts = Counter(
            answer.label for answer in answers if answer.rubric_hash == self.rubric.hash
        )
        rows = [
            [label, meaning, f"{counts[label]:,}"] for label, meaning in self.rubric.scale.items()
        ]
        print_table(["grade", "meaning", "answers"], rows, names=2)


def _prices(text: str | None) -> tuple[float, float]:
    if text is None:
        return 0.0, 0.0
    try:
        prompt, answer = map(float, text.split(","))
    except ValueError as error:
        raise ArgumentError(
            f"--prices is {text!r}", hint="Give two numbers: the prices of a million tokens, as 1,4"
        ) from error
    return prompt, answer


def _texts(journal: SessionFile) -> dict[str, str]:
    """The texts of documents; the file is untrusted, so any part may be of any type."""
    texts = journal.about.get("texts")
    documents = {}
    for item in journal.session.items:
        values = texts.get(item) if isinstance(texts, dict) else None
        parts = [values.get(name) for name in ("title", "text")] if isinstance(values, dict) else []
        documents[item] = "\n".join(part for part in parts if isinstance(part, str) and part)
    return documents
