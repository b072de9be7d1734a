"""Replies of chat completions: anything may stand in them, so every part is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite
from typing import Any

from podium.data.json_lines import parse_json
from podium.errors import DataError

_BYTES_PER_TOKEN = 3
"""Where an endpoint does not count tokens, they are counted as more than they are likely to be."""


@dataclass(frozen=True)
class TokenChoice:
    """A token of an answer with the probabilities of what could have stood there."""

    token: str
    probabilities: Mapping[str, float]


@dataclass(frozen=True)
class ChatReply:
    """A chat completion.

    Attributes:
        content: The answer; empty if the model refused.
        refused: Whether the model or a filter refused.
        prompt_tokens: Tokens of the prompt.
        answer_tokens: Tokens of the answer.
        estimated: Whether these were estimated, as the endpoint did not count them.
        tokens: The answer's tokens with their probabilities, if the endpoint gives them.
        served_by: The model and its fingerprint, as the endpoint names them.
    """

    content: str
    refused: bool
    prompt_tokens: int
    answer_tokens: int
    estimated: bool
    tokens: tuple[TokenChoice, ...]
    served_by: str


def parse_reply(body: bytes, prompt_bytes: int) -> ChatReply:
    """Parse a reply; DataError if it is not a chat completion."""
    try:
        reply = parse_json(body)
        choice = reply["choices"][0]
        message = choice["message"]
        content = message.get("content")
    except (DataError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"the reply is not a chat completion: {body[:200]!r}") from error
    if not isinstance(content, str | None):
        raise DataError(f"the answer is not text: {str(content)[:200]!r}")
    text = content or ""
    refused = bool(message.get("refusal")) or choice.get("finish_reason") == "content_filter"
    prompt, answer, estimated = _usage(reply, prompt_bytes, text)
    served = [reply.get("model"), reply.get("system_fingerprint")]
    return ChatReply(
        text,
        refused or not text.strip(),
        prompt,
        answer,
        estimated,
        _tokens(choice.get("logprobs")),
        " ".join(part for part in served if isinstance(part, str))[:200],
    )


def estimated_tokens(size: int) -> int:
    """About how many tokens some bytes of text are, or fewer."""
    return -(-size // _BYTES_PER_TOKEN)


def _usage(reply: Mapping[str, Any], prompt_bytes: int, text: str) -> tuple[int, int, bool]:
    usage = reply.get("usage")
    if isinstance(usage, dict):
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        if all(type(count) is int and 0 <= count < 2**40 for count in counts):
            return counts[0], counts[1], False  # type: ignore[return-value]
    return estimated_tokens(prompt_bytes), estimated_tokens(len(text.encode())), True


def _tokens(logprobs: Any) -> tuple[TokenChoice, ...]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    tokens = []
    for entry in content:
        if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
            return ()
        tokens.append(TokenChoice(entry["token"], _probabilities(entry.get("top_logprobs"))))
    return tuple(tokens)


def _probabilities(alternatives: Any) -> dict[str, float]:
    masses: dict[str, float] = {}
    for entry in alternatives if isinstance(alternatives, list) else []:
        token, value = (
            (entry.get("token"), entry.get("logprob")) if isinstance(entry, dict) else (None, None)
        )
        if isinstance(token, str) and isinstance(value, int | float) and isfinite(value):
            masses[token] = masses.get(token, 0.0) + exp(min(float(value), 0.0))
    return masses


def label_probabilities(reply: ChatReply, labels: Sequence[str], position: int) -> dict[str, float]:
    """The probabilities of the labels at the token where the label stands; empty if unknown.

    Args:
        reply: The reply.
        labels: The labels that an answer may have.
        position: Where the label begins in the content.
    """
    # Tokens may include text that the endpoint stripped from the content: llama.cpp strips the
    # Markdown fence around JSON, others the model's reasoning. Both end alike, from the label on.
    written = "".join(choice.token for choice in reply.tokens)
    label_begins = written.rfind(reply.content[position:])
    begin = 0
    for choice in reply.tokens:
        end = begin + len(choice.token)
        if begin <= label_begins < end:
            masses = dict.fromkeys(labels, 0.0)
            for token, probability in choice.probabilities.items():
                word = token.strip(" \t\n\"':,{}*.").upper()
                matches = [label for label in labels if word and _may_mean(word, label)]
                if len(matches) == 1:
                    masses[matches[0]] += probability
            total = sum(masses.values())
            return {label: mass / total for label, mass in masses.items()} if total > 0.5 else {}
        begin = end
    return {}


def _may_mean(word: str, label: str) -> bool:
    return label.startswith(word) or word == label
