"""How much a model may be asked: requests, tokens and money."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from podium.errors import ArgumentError, PodiumError


class BudgetError(PodiumError):
    """The budget for a model is spent."""


@dataclass(frozen=True)
class Budget:
    """Limits on what is asked of an endpoint; None for no limit.

    A prompt is counted before it is sent, by an estimate; what its answer costs is known when it is
    there. So tokens and money may be exceeded by the answers under way: at most one per connection.

    Attributes:
        requests: The most requests, repeated ones included.
        tokens: The most tokens, of prompts and answers.
        money: The most money, in the unit of the prices.
        prompt_price: The price of a million tokens of prompts.
        answer_price: The price of a million tokens of answers.

    Example:
        >>> Budget(money=5, prompt_price=0.15, answer_price=0.6).cost(1_000_000, 500_000)
        0.45
    """

    requests: int | None = None
    tokens: int | None = None
    money: float | None = None
    prompt_price: float = 0.0
    answer_price: float = 0.0

    def __post_init__(self) -> None:
        for name in ("requests", "tokens", "money", "prompt_price", "answer_price"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ArgumentError(f"{name} is {value}", hint="Give 0 or more.")
        if self.money is not None and not (self.prompt_price or self.answer_price):
            raise ArgumentError(
                "a budget in money needs prices", hint="Give prompt_price= and answer_price=."
            )

    def cost(self, prompt_tokens: int, answer_tokens: int) -> float:
        """The price of some tokens."""
        return (prompt_tokens * self.prompt_price + answer_tokens * self.answer_price) / 1e6

    def check(self, requests: int, prompt_tokens: int, answer_tokens: int) -> None:
        """Raise a BudgetError if what was spent leaves no further request."""
        for limit, spent, unit in (
            (self.requests, requests, "requests"),
            (self.tokens, prompt_tokens + answer_tokens, "tokens"),
            (self.money, self.cost(prompt_tokens, answer_tokens), "in money"),
        ):
            if limit is not None and spent >= limit:
                raise BudgetError(
                    f"the budget of {limit:,} {unit} is spent",
                    hint="Answers so far are kept: raise the limit to go on.",
                )


class Spending:
    """What was spent of a budget, by all threads together.

    Attributes:
        budget: The limits.
        requests: Requests sent.
        prompt_tokens: Tokens of prompts.
        answer_tokens: Tokens of answers.
        keep: Stores it after every change; a request is sent after that.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.requests = 0
        self.prompt_tokens = 0
        self.answer_tokens = 0
        self.keep: Callable[[Spending], object] = lambda _spending: None
        self._lock = threading.Lock()

    @property
    def money(self) -> float:
        """What it cost."""
        return self.budget.cost(self.prompt_tokens, self.answer_tokens)

    def take_request(self, prompt_tokens: int) -> None:
        """Count a request that is about to be sent; BudgetError if the budget is spent."""
        with self._lock:
            self.budget.check(self.requests, self.prompt_tokens, self.answer_tokens)
            self.requests += 1
            self.prompt_tokens += prompt_tokens
            self.keep(self)

    def charge(self, prompt_tokens: int, answer_tokens: int, *, requests: int = 0) -> None:
        """Count tokens that were not counted before, and requests of an earlier run."""
        with self._lock:
            self.prompt_tokens += prompt_tokens
            self.answer_tokens += answer_tokens
            self.requests += requests
            self.keep(self)
