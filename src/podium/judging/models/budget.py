"""How much a model may be asked: requests, tokens and money."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

from podium.errors import ArgumentError, PodiumError


class BudgetError(PodiumError):
    """The budget for a model is spent."""


@dataclass(frozen=True)
class Budget:
    """Limits on what is asked of an endpoint; None for no limit.

    What an answer costs is known when it is there, so tokens and money may be exceeded by the
    requests under way: at most one per connection.

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


class Spending:
    """What was spent of a budget, by all threads together.

    Attributes:
        budget: The limits.
        requests: Requests sent.
        prompt_tokens: Tokens of prompts.
        answer_tokens: Tokens of answers.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.requests = 0
        self.prompt_tokens = 0
        self.answer_tokens = 0
        self._lock = threading.Lock()

    @property
    def money(self) -> float:
        """What it cost."""
        return self.budget.cost(self.prompt_tokens, self.answer_tokens)

    def take_request(self) -> None:
        """Count a request that is about to be sent; BudgetError if the budget is spent."""
        budget = self.budget
        with self._lock:
            for limit, spent, unit in (
                (budget.requests, self.requests, "requests"),
                (budget.tokens, self.prompt_tokens + self.answer_tokens, "tokens"),
                (budget.money, self.money, "of money"),
            ):
                if limit is not None and spent >= limit:
                    raise BudgetError(
                        f"the budget of {limit:,} {unit} is spent",
                        hint="Answers so far are kept: raise the limit to go on.",
                    )
            self.requests += 1

    def charge(self, prompt_tokens: int, answer_tokens: int, *, requests: int = 0) -> None:
        """Count tokens, and requests of an earlier run."""
        with self._lock:
            self.prompt_tokens += prompt_tokens
            self.answer_tokens += answer_tokens
            self.requests += requests
