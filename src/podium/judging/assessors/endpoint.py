"""An assessor behind any endpoint that speaks OpenAI's chat completions.

Each pair is asked in both orders, because models favour a side: two answers that contradict each
other make a tie. Answers are kept in a file as they come, so a run that was broken off goes on
where it was, and the same question is never paid for twice.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from podium.data.json_lines import json_line, parse_log
from podium.errors import ArgumentError, DataError, PodiumError
from podium.judging.algorithms.selection import Pair
from podium.judging.entries import Outcome, Verdict
from podium.judging.votes import majority

INSTRUCTIONS = (
    "You compare two search results for a query and say which one a person who typed the query "
    "would rather have. Answer with one word: A, B, or TIE if neither is better."
)
_ANSWERS = {"A": Outcome.LEFT, "B": Outcome.RIGHT, "TIE": Outcome.TIE}
_WORTH_A_RETRY = {408, 409, 429, 500, 502, 503, 504, 529}
_LONGEST_REPLY = 2**20
_WORD = re.compile(r"\b(A|B|TIE|Tie|tie)\b")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to wherever it points."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


class EndpointError(PodiumError):
    """The endpoint did not give an answer that can be used."""


class EndpointAssessor:
    """A language model as an assessor; an object to call as a `Judge`.

    Args:
        url: The endpoint's base, such as ``http://localhost:11434/v1``.
        model: The model's name there.
        query: What people searched for.
        texts: The text of each item.
        key: The key that the endpoint asks for; by default ``OPENAI_API_KEY``, if it is set.
        cache: A file to keep answers in, so that they are asked for once.
        instructions: What the model is told to do; it must answer A, B or TIE.
        name: Who it is in the log; by default the model's name.
        timeout: Seconds to wait for an answer.
        retries: How many times to ask again where the endpoint is busy or out of reach.
        wait: Seconds before the first of these; twice as long before each next one.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        query: str,
        texts: Mapping[str, str],
        key: str | None = None,
        cache: str | os.PathLike[str] | None = None,
        instructions: str = INSTRUCTIONS,
        name: str | None = None,
        timeout: float = 60.0,
        retries: int = 5,
        wait: float = 1.0,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ArgumentError(f"{url!r} is not a web address", hint="Start it with https://.")
        self.url = url.rstrip("/") + "/chat/completions"
        self.model = model
        self.query = query
        self.name = name or model
        self._texts = texts
        self._key = os.environ.get("OPENAI_API_KEY", "") if key is None else key
        self._instructions = instructions
        self._timeout = timeout
        self._retries = retries
        self._wait = wait
        self._lock = threading.Lock()
        self._cache = None if cache is None else Path(cache)
        self._answers = {} if self._cache is None else _read_cache(self._cache)

    def __call__(self, left: str, right: str) -> Outcome:
        """Compare two items, in both orders."""
        return majority([self._ask(left, right), self._ask(right, left).flipped])

    def verdict(self, pair: Pair[str], at: float | None = None) -> Verdict:
        """Judge a pair of a session, with the time it took."""
        begin = time.monotonic()
        outcome = self(*pair)
        seconds = round(time.monotonic() - begin, 3)
        return Verdict(*pair, outcome, self.name, time.time() if at is None else at, seconds)

    def _ask(self, left: str, right: str) -> Outcome:
        for item in (left, right):
            if item not in self._texts:
                raise DataError(f"item {item!r} has no text", hint="Give every item's text.")
        question = (
            f"Query: {self.query}\n\nResult A:\n{self._texts[left]}\n\n"
            f"Result B:\n{self._texts[right]}\n\nWhich is better: A, B or TIE?"
        )
        body = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": self._instructions},
                {"role": "user", "content": question},
            ],
            "temperature": 0,
        }
        question_hash = sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        known = self._answers.get(question_hash)
        if known is None:
            known = self._request(body)
            self._keep(question_hash, known)
        return _ANSWERS[known]

    def _request(self, body: dict[str, Any]) -> str:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        data = json.dumps(body).encode()
        problem = ""
        for attempt in range(self._retries + 1):
            if attempt:
                time.sleep(self._wait * 2 ** (attempt - 1))
            request = urllib.request.Request(self.url, data, headers)  # noqa: S310
            try:
                with _OPENER.open(request, timeout=self._timeout) as reply:
                    return _answer(reply.read(_LONGEST_REPLY))
            except urllib.error.HTTPError as error:
                problem = f"answered {error.code}: {_error_text(error)}"
                if error.code not in _WORTH_A_RETRY:
                    break
            except (OSError, ValueError, http.client.HTTPException) as error:
                problem = str(error)  # out of reach, too slow, cut off, or no answer in it
        raise EndpointError(
            f"{self.url}: {problem}. Check address, model and key; answers so far are kept."
        )

    def _keep(self, question_hash: str, answer: str) -> None:
        with self._lock:
            self._answers[question_hash] = answer
            if self._cache is not None:
                with self._cache.open("ab") as stream:
                    stream.write(json_line({"question": question_hash, "answer": answer}))


def _error_text(error: urllib.error.HTTPError) -> str:
    try:
        with error:
            return error.read(300).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return "nothing that could be read"


def _answer(reply: bytes) -> str:
    """The A, B or TIE in a reply.

    Models may think aloud, so the last line counts where it names one of them alone, else the
    whole answer. "B is better than A" names two: what it means is not for us to guess.
    """
    try:
        text = json.loads(reply)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"the reply is not a chat completion: {reply[:200]!r}") from error
    if isinstance(text, str):
        last_line = text.strip().rpartition("\n")[2]
        for part in (last_line, text):
            named = {word.upper() for word in _WORD.findall(part)}
            if len(named) == 1:
                return str(named.pop())
    raise ValueError(f"the answer is neither A, B nor TIE: {str(text)[:200]!r}")


def _read_cache(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    if not path.is_file():
        raise DataError("is not a file", path=path, hint="Name a file to keep answers in.")
    content = path.read_bytes()
    if content and b"\n" not in content:
        raise DataError("is not an answer cache", path=path, hint="Name another file.")
    answers, whole = parse_log(content, _kept_answer, path)
    if whole < len(content):  # a line that a crash left unfinished
        os.truncate(path, whole)
    return dict(answers)


def _kept_answer(line: dict[str, Any]) -> tuple[str, str]:
    question, answer = line.get("question"), line.get("answer")
    if isinstance(question, str) and isinstance(answer, str) and answer in _ANSWERS:
        return question, answer
    raise DataError("is not a cached answer", hint="Delete the line.")
