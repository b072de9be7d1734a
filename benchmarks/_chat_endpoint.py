"""A server with OpenAI's chat completions behind a real socket, which misbehaves on demand.

What it answers is decided by a function of the query and the documents, so every answer can be
checked. It keeps account of what it would have charged: a request whose ``Idempotency-Key`` it has
answered before is answered the same and charged once.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Fault = Literal[
    "",
    "busy",
    "error",
    "cut",
    "slow",
    "malformed",
    "refusal",
    "prose",
    "empty",
    "reset",
    "redirect",
]
Shares = dict[str, float]
Judge = Callable[[str, list[str]], Shares]

_DOCUMENT = re.compile(r'<document key="([0-9a-f]+)">\n(.*?)\n</document key="\1">', re.DOTALL)
_QUERY = re.compile(r"^Query: (.*)$", re.MULTILINE)
_WORD = re.compile(r"\w+")


def overlap(query: str, text: str) -> float:
    """The share of a query's words that are in a text."""
    words = set(_WORD.findall(query.lower()))
    return len(words & set(_WORD.findall(text.lower()))) / max(len(words), 1)


def judge_by_overlap(query: str, documents: list[str]) -> Shares:
    """The probabilities of grades 0 to 3, or of A, B and TIE, by the overlap of words."""
    scores = [overlap(query, document) for document in documents]
    if len(documents) == 1:
        masses = {str(grade): math.exp(-abs(3 * scores[0] - grade) * 3) for grade in range(4)}
    else:
        lead = 8 * (scores[0] - scores[1])
        masses = {"A": math.exp(lead), "B": math.exp(-lead), "TIE": 1.0}
    total = sum(masses.values())
    return {label: mass / total for label, mass in masses.items()}


class ChatServer:
    """What the server does, and what it saw.

    Attributes:
        judge: Decides the answers.
        faults: What happens to the next requests, one each; afterwards nothing does.
        gives_logprobs: Whether it knows the probabilities of tokens; else it refuses to.
        refuses: Parameters that it answers with status 400.
        counts_tokens: Whether it says how many tokens were used.
        retry_after: What it says when it is busy.
        slowness: Seconds that a slow answer takes.
        delay: Seconds that every answer takes.
        requests: The bodies of all requests, with the path and headers.
        charged: How many times each question was charged.
        tokens: The tokens charged.
        replayed: How many replies were sent again, which were charged before.
        most_at_once: The most requests at the same time.
    """

    def __init__(self, judge: Judge = judge_by_overlap) -> None:
        self.judge = judge
        self.faults: list[Fault] = []
        self.gives_logprobs = True
        self.refuses: set[str] = set()
        self.counts_tokens = True
        self.retry_after = ""
        self.slowness = 0.5
        self.delay = 0.0
        self.requests: list[dict[str, Any]] = []
        self.charged: Counter[str] = Counter()
        self.tokens = 0
        self.replayed = 0
        self.most_at_once = 0
        self._at_once = 0
        self._replies: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def next_fault(self, request: dict[str, Any]) -> Fault:
        """Note a request, and return what happens to it."""
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            return self.faults.pop(0) if self.faults else ""

    def leave(self) -> None:
        """A request is over."""
        with self._lock:
            self._at_once -= 1

    def refusal_of(self, body: dict[str, Any]) -> str:
        """The parameter that this server does not know, if there is one."""
        kind = (body.get("response_format") or {}).get("type", "")
        for name in self.refuses:
            if name in body or name == kind:
                return name
        return "logprobs" if body.get("logprobs") and not self.gives_logprobs else ""

    def reply(self, body: dict[str, Any], fault: Fault, key: str) -> bytes:
        """The reply, which is charged unless it was before."""
        with self._lock:
            if key and key in self._replies:
                self.replayed += 1
                return self._replies[key]
        reply = self._completion(body, fault)
        content = json.dumps(reply).encode()
        with self._lock:
            if key:
                self._replies[key] = content
            # By what was asked and with which seed, whatever the client calls it.
            question = json.dumps([body["messages"], body.get("seed")])
            self.charged[question] += 1
            self.tokens += sum(_usage(body).values())
        return content

    def _completion(self, body: dict[str, Any], fault: Fault) -> dict[str, Any]:
        asked = body["messages"][-1]["content"]
        if not _DOCUMENT.search(asked):  # a repair: the question stands before
            asked = next(
                message["content"]
                for message in reversed(body["messages"])
                if _DOCUMENT.search(message["content"])
            )
        query = _QUERY.search(asked)
        documents = [match[2] for match in _DOCUMENT.finditer(asked)]
        shares = self.judge(query[1] if query else "", documents)
        label = max(shares, key=lambda each: shares[each])
        tokens: list[tuple[str, Shares]]
        if "nothing else, such as" in body["messages"][0]["content"]:
            if len(documents) == 1:
                tokens = [('{"grade": ', {}), (label, shares), ("}", {})]
            else:
                tokens = [('{"better": "', {}), (label, shares), ('"}', {})]
        else:
            tokens = [(label, shares)]
        if fault == "prose":
            tokens = [("Both have their merits, I would say.", {})]
        message: dict[str, Any] = {"role": "assistant", "content": "".join(t for t, _ in tokens)}
        if fault == "refusal":
            message |= {"content": None, "refusal": "I cannot help with that."}
            tokens = []
        elif fault == "empty":
            message["content"] = ""
            tokens = []
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
        if body.get("logprobs"):
            choice["logprobs"] = {"content": [_token(*token) for token in tokens]}
        usage = {"usage": _usage(body)} if self.counts_tokens else {}
        return {"model": body["model"], "system_fingerprint": "fp", "choices": [choice], **usage}


def _usage(body: dict[str, Any]) -> dict[str, int]:
    return {"prompt_tokens": len(json.dumps(body["messages"])) // 4, "completion_tokens": 5}


def _token(token: str, shares: Shares) -> dict[str, Any]:
    alternatives: Sequence[tuple[str, float]] = list(shares.items()) or [(token, 1.0)]
    listed = [
        {"token": each, "logprob": math.log(share)} for each, share in alternatives if share > 0
    ]
    return {"token": token, "logprob": -0.01, "top_logprobs": listed}


class _QuietServer(ThreadingHTTPServer):
    """Clients that are killed or give up are not reported."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


@contextmanager
def serve_chat(server: ChatServer) -> Iterator[str]:
    """Run a server in a thread; gives its base address, without a model's name."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen = body | {"path": self.path, "key": self.headers.get("Authorization")}
            fault = server.next_fault(seen)
            try:
                self._answer(body, fault)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                server.leave()

        def _answer(self, body: dict[str, Any], fault: Fault) -> None:
            if server.delay:
                time.sleep(server.delay)
            unknown = server.refusal_of(body)
            if unknown:
                self._send(400, json.dumps({"error": f"unknown parameter: {unknown}"}).encode())
                return
            if fault == "busy":
                self._send(429, b'{"error": "rate limit"}', server.retry_after)
                return
            if fault == "error":
                self._send(500, b"<h1>Internal Server Error</h1>")
                return
            if fault == "redirect":
                self._send(302, b"elsewhere")
                return
            if fault == "reset":
                self.close_connection = True
                return
            content = server.reply(body, fault, self.headers.get("Idempotency-Key", ""))
            if fault == "slow":
                time.sleep(server.slowness)
            if fault == "malformed":
                content = b'{"choices": [{"mess'
            self._send(200, content, cut=fault == "cut")

        def _send(
            self, status: int, content: bytes, retry_after: str = "", *, cut: bool = False
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Location", "/elsewhere")
            if retry_after:
                self.send_header("Retry-After", retry_after)
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)
            if cut:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    running = _QuietServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/v1"
    finally:
        running.shutdown()
        thread.join()
        running.server_close()
