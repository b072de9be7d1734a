"""Requests to a search engine: answers are bounded in size and time, and errors say what to do."""

from __future__ import annotations

import json
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Self
from urllib.parse import urlsplit

from podium.data.json_lines import parse_json
from podium.errors import ArgumentError, DataError, MissingPackageError

_SECONDS = 120.0
_BUSY = (429, 502, 503, 504)
"""Statuses of a server that may answer a little later."""
_MAX_BYTES = 64 << 20
_SHOWN = 300


@dataclass(frozen=True)
class Retry:
    """How often a request is sent again if the engine is busy or out of reach.

    Attributes:
        attempts: How many times a request is sent again.
        wait: Seconds before the first of these; twice as long before each next one. Longer if the
            engine asks for that (``Retry-After``).
        longest: The longest wait.
    """

    attempts: int = 5
    wait: float = 0.5
    longest: float = 60.0

    def seconds(self, attempt: int, asked: str | None) -> float:
        """Return how long to wait before an attempt, counted from 1.

        Example:
            >>> Retry().seconds(3, None), Retry().seconds(1, "7"), Retry().seconds(1, "9999")
            (2.0, 7.0, 60.0)
        """
        seconds = self.wait * 2.0 ** (attempt - 1)
        if asked is not None and asked.strip().isdecimal() and len(asked) < 10:
            seconds = max(seconds, float(asked))
        elif asked is not None:
            with suppress(ValueError, TypeError):
                at = parsedate_to_datetime(asked)
                seconds = max(seconds, at.timestamp() - time.time())
        return min(seconds, self.longest)


def check_address(url: str) -> None:
    """Raise an ArgumentError unless requests can be sent below an address.

    Example:
        >>> check_address("localhost:9200")
        Traceback (most recent call last):
        podium.errors.ArgumentError: 'localhost:9200' is not the address of a search engine. ...
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ArgumentError(
            f"{url!r} is not the address of a search engine",
            hint="Give one such as http://localhost:9200 or http://localhost:9200/shop.",
        )


class EngineClient:
    """The address of an engine, and what it answers.

    Redirects are not followed, and neither proxies nor logins are taken from the environment: the
    address is called, and nothing else. A name and a password may be part of it.
    """

    def __init__(self, url: str, title: str, retry: Retry | None = None) -> None:
        self.url = url.rstrip("/")
        self.title = title
        self._retry = retry or Retry(attempts=0)
        check_address(url)
        self._httpx2 = _httpx2()
        self._client = self._httpx2.Client(
            base_url=f"{self.url}/", follow_redirects=False, trust_env=False,
            timeout=_SECONDS,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        allowed: Container[int] = (),
        kind: str = "application/json",
    ) -> tuple[int, Any]:
        """Send a request; return the status and the parsed answer.

        Args:
            method: The method of HTTP.
            path: The path below the engine's address, without a slash before it.
            content: Bytes to send, or what becomes JSON.
            allowed: Statuses beside 200 and 201 that are not errors.
            kind: The type of the content.
        """
        body = content if isinstance(content, bytes | None) else _json(content)
        headers = {"accept": "application/json"} | ({"content-type": kind} if body else {})
        attempt = 0
        while True:
            attempt += 1
            last = attempt > self._retry.attempts
            asked = None
            try:
                response, answer = self._send(method, path, body, headers)
                if last or response.status_code not in _BUSY or response.status_code in allowed:
                    break
                asked = response.headers.get("retry-after")
            except self._httpx2.HTTPError as error:
                if last:
                    raise DataError(
                        f"{self.title} cannot be reached ({type(error).__name__})",
                        hint="Check the address, and that the server runs.",
                    ) from error
            time.sleep(self._retry.seconds(attempt, asked))
        status = response.status_code
        if status not in (200, 201) and status not in allowed:
            reason = _reason(answer)
            raise DataError(
                f"{self.title} answers {method} {path} with status {status}: {reason}",
                hint="Check the address, and what the server's log says.",
            )
        if not answer.lstrip().startswith((b"{", b"[")):
            return status, None
        try:
            return status, parse_json(answer)
        except DataError:
            if status in allowed:  # what an engine says beside an error need not be valid JSON
                return status, None
            raise

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[Any, bytes]:
        end = time.monotonic() + _SECONDS
        answer = bytearray()
        with self._client.stream(method, path, content=body, headers=headers) as response:
            for chunk in response.iter_bytes():
                answer += chunk
                if len(answer) > _MAX_BYTES or time.monotonic() > end:
                    raise DataError(f"{self.title} answers too much or too slowly")
        return response, bytes(answer)


def _httpx2() -> Any:
    # Imported here: models are read without it, too.
    try:
        import httpx2
    except ImportError as error:
        raise MissingPackageError("httpx2", extra="export") from error
    return httpx2


@contextmanager
def expected_form(title: str) -> Iterator[None]:
    """Raise a DataError where an answer that is read inside has not the form of an engine's."""
    try:
        yield
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(
            f"{title} answers in another form ({str(error)[:100]!r})",
            hint="Check the address and the target, and what was uploaded.",
        ) from error


def _json(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False).encode()


def _reason(answer: bytes) -> str:
    """What an answer says, or its beginning, on one line, without control characters."""
    text = answer[:2000].decode(errors="replace")
    with suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(answer)["error"]["msg"])  # Solr's
    line = " ".join(text.split())
    return "".join(each for each in line if each.isprintable())[:_SHOWN]
