"""Requests to an endpoint that speaks OpenAI's chat completions.

There are at most as many requests at once as connections. An endpoint that is busy is
asked again after the time it names, by all threads together; one that fails, after a time that
doubles. An endpoint that refuses an optional parameter is asked without it from then on.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Self
from urllib.parse import urlsplit

from podium.errors import ArgumentError, DataError, MissingPackageError, PodiumError
from podium.judging.models.budget import Budget, Spending
from podium.judging.models.chat_reply import ChatReply, estimated_tokens, parse_reply

_WORTH_A_RETRY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_REFUSED_PARAMETER = frozenset({400, 404, 422})
_LONGEST_REPLY = 2**20
_LONGEST_WAIT = 600.0
_TOP_TOKENS = 20
_SHOWN = 300

_OPTIONAL = {
    "logprobs": ("logprob",),
    "json_schema": ("json_schema", "schema", "response_format"),
    "json_object": ("json_object", "response_format"),
    "max_tokens": ("max_tokens",),
    "seed": ("seed",),
    "temperature": ("temperature",),
}
"""Parameters that an endpoint may not have, with words of the message that says so."""


class EndpointError(PodiumError):
    """The endpoint did not give an answer that can be used."""


@dataclass(frozen=True)
class Exchange:
    """A reply, and how many requests it took."""

    reply: ChatReply
    requests: int


class Endpoint:
    """A model behind an endpoint. It holds no connection between requests.

    Args:
        address: The endpoint's base and, after ``#``, the model's name there, such as
            ``http://localhost:11434/v1#llama3.1``.
        key: The key that the endpoint asks for; by default ``OPENAI_API_KEY``, if it is set.
        connections: The most requests at once.
        budget: Limits on requests, tokens and money.
        timeout: Seconds to wait for a whole answer.
        retries: How many times to ask again where the endpoint is busy or out of reach.
        wait: Seconds before the first of these; twice as long before each next one.
        sleep: What waits.
    """

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        connections: int = 4,
        budget: Budget | None = None,
        timeout: float = 60.0,
        retries: int = 6,
        wait: float = 1.0,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        try:
            import anyio
            import httpx2

            from podium.http_answers import run_in_thread
        except ImportError as error:
            raise MissingPackageError("httpx2", extra="models") from error
        url, _, model = address.partition("#")
        if not _is_web_address(url):
            raise ArgumentError(f"{url!r} is not a web address", hint="Start it with https://.")
        if not model:
            raise ArgumentError(
                f"{address!r} names no model", hint="Write it after a #: http://host/v1#model."
            )
        if connections < 1 or retries < 0:
            raise ArgumentError(
                f"{connections} connections, {retries} retries", hint="Give 1 or more, 0 or more."
            )
        self.url = url.rstrip("/") + "/chat/completions"
        self.model = model
        self.connections = connections
        self.spending = Spending(budget or Budget())
        self._timeout = timeout
        self._retries = retries
        self._wait = wait
        self._sleep = sleep
        self._slots = threading.BoundedSemaphore(connections)
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._refused: set[str] = set()
        self._reached = False
        token = os.environ.get("OPENAI_API_KEY", "") if key is None else key
        self._errors: tuple[type[Exception], ...] = (httpx2.HTTPError, httpx2.InvalidURL)
        self._unreachable = httpx2.ConnectError
        # A reply may go on for ever by a byte now and then: these reads can be canceled.
        self._run, self._fail_after = run_in_thread, anyio.fail_after
        # Redirects are not followed: one would carry the key to wherever it points.
        self._client = partial(
            httpx2.AsyncClient,
            follow_redirects=False,
            timeout=timeout,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            verify=httpx2.create_ssl_context(),
        )

    def close(self) -> None:
        """Nothing stays open between requests: this is here for ``with`` blocks."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        tokens: int = 1024,
        seed: int = 0,
        key: str = "",
    ) -> Exchange:
        """Ask until there is a reply.

        Args:
            messages: The chat.
            schema: The JSON schema of the answer, for endpoints that can be held to one.
            tokens: The most tokens of the answer.
            seed: Asked for with each request, for endpoints that have one.
            key: Sent as ``Idempotency-Key``: an endpoint that knows it charges a repeated request
                once.

        Raises:
            EndpointError: There is no reply, however often it was asked.
            BudgetError: The budget is spent.
        """
        problems: Counter[str] = Counter()
        requests = failures = 0
        while failures <= self._retries:
            self._rest(failures)
            parameters = self._body(messages, schema, tokens, seed)
            body = json.dumps(parameters).encode()
            prompt = estimated_tokens(len(body))
            with self._slots:
                self.spending.take_request(prompt)
                requests += 1
                status, headers, content, problem = self._send(body, key)
            if status == 200:
                try:
                    reply = parse_reply(content, len(body))
                except DataError as error:
                    # It may have been charged for, so its prompt stays counted.
                    problems[error.problem] += 1
                    failures += 1
                    continue
                self.spending.charge(reply.prompt_tokens - prompt, reply.answer_tokens)
                return Exchange(reply, requests)
            if status:
                self.spending.charge(-prompt, 0)
                problem = f"answered {status}: {_printable(content)}"
                if status in _REFUSED_PARAMETER and self._leave_out(content, parameters):
                    continue
                if status in _WORTH_A_RETRY:
                    self._rest_all(headers.get("retry-after", ""))
                else:
                    failures = self._retries
            problems[problem] += 1
            failures += 1
        raise self._failed(
            "; ".join(
                each if times == 1 else f"{each} ({times} times)"
                for each, times in problems.most_common()
            )
        )

    def _failed(self, problem: str) -> EndpointError:
        return EndpointError(
            f"{self.url}: {problem}", hint="Check address, model and key; answers so far are kept."
        )

    def _body(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any] | None,
        tokens: int,
        seed: int,
    ) -> dict[str, Any]:
        refused = self._refused
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if "temperature" not in refused:
            body["temperature"] = 0
        if "seed" not in refused:
            body["seed"] = seed
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        body[limit] = tokens
        if "logprobs" not in refused:
            body |= {"logprobs": True, "top_logprobs": _TOP_TOKENS}
        if schema is not None and "json_schema" not in refused:
            named = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif schema is not None and "json_object" not in refused:
            body["response_format"] = {"type": "json_object"}
        return body

    def _send(self, body: bytes, key: str) -> tuple[int, Mapping[str, str], bytes, str]:
        """Return status, headers and content; status 0 and the problem if there is no reply."""
        headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
        try:
            reply = self._run(self._whole_reply, body, headers)
        except TimeoutError:
            return 0, {}, b"", f"no whole reply within {self._timeout:g} s"
        except self._errors as error:
            if isinstance(error, self._unreachable) and not self._reached:
                # Nobody ever answered at this address, so it is likely to be wrong.
                raise self._failed(str(error)) from error
            return 0, {}, b"", str(error) or type(error).__name__
        self._reached = True
        return reply

    async def _whole_reply(
        self, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes, str]:
        content = bytearray()
        with self._fail_after(self._timeout):
            async with (
                self._client() as client,
                client.stream("POST", self.url, content=body, headers=headers) as response,
            ):
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > _LONGEST_REPLY:
                        return 0, {}, b"", "the reply is not a chat completion: it is too long"
        return response.status_code, response.headers, bytes(content), ""

    def _leave_out(self, content: bytes, sent: Mapping[str, Any]) -> bool:
        """Give up an optional parameter that the endpoint names in its refusal, if there is one.

        Only what this request had counts: another thread may have given it up in the meantime.
        """
        message = content[:5000].decode(errors="replace").lower()
        had = {*sent, sent.get("response_format", {}).get("type")}
        for name, words in _OPTIONAL.items():
            if name in had and any(word in message for word in words):
                with self._lock:
                    self._refused.add(name)
                return True
        return False

    def _rest(self, failures: int) -> None:
        backoff = 0.0
        if failures:
            # Not all threads again at the same moment.
            backoff = self._wait * 2 ** (failures - 1) * random.uniform(0.75, 1.25)  # noqa: S311
        delay = max(backoff, self._not_before - time.monotonic())
        if delay > 0:
            self._sleep(min(delay, _LONGEST_WAIT))

    def _rest_all(self, retry_after: str) -> None:
        """Let every thread wait as long as the endpoint asks for, in seconds or as a date."""
        try:
            seconds = float(retry_after)
        except ValueError:
            try:
                seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
            except (ValueError, TypeError, OverflowError):
                return
        if seconds > 0:  # not-a-number is not
            with self._lock:
                until = time.monotonic() + min(seconds, _LONGEST_WAIT)
                self._not_before = max(self._not_before, until)


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets of IPv6 that do not match
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _printable(content: bytes) -> str:
    line = " ".join(content[:2000].decode(errors="replace").split())
    return "".join(each for each in line if each.isprintable())[:_SHOWN]
