"""An endpoint that fails in every way, and a client that is killed: what is lost and paid."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks._chat_endpoint import ChatServer, Fault, serve_chat
from benchmarks._report import Report
from podium.judging import AnswerLog, Budget, Endpoint, EndpointAssessor, Session
from podium.judging.assessors.panel import grade_session
from podium.judging.models.answer_log import read_answers
from podium.judging.models.budget import BudgetError

_FAULTS: tuple[Fault, ...] = (
    "busy", "error", "cut", "slow", "malformed", "refusal", "prose", "empty", "reset"
)  # fmt: skip
_CONNECTIONS = 4
_TEXTS = {f"d{number}": f"red shoes {number} " + "word " * (number % 7) for number in range(300)}
_CHILD = """
import sys
from benchmarks._assessor_faults import judge_all
judge_all(sys.argv[1], sys.argv[2])
"""


def judge_all(address: str, path: str, budget: Budget | None = None) -> None:
    """Grade every document, with answers kept in a file."""
    with (
        AnswerLog(path) as log,
        Endpoint(
            f"{address}#tiny", key="", connections=_CONNECTIONS, timeout=0.5, retries=40,
            wait=0.001, budget=budget,
        ) as endpoint,
    ):  # fmt: skip
        log.charge(endpoint.spending, "tiny")
        assessor = EndpointAssessor(
            endpoint, query="red shoes", texts=_TEXTS, rubric="grades", log=log, query_id="q"
        )
        grade_session(Session(list(_TEXTS)), assessor, max_workers=2 * _CONNECTIONS)


def report_faults(report: Report, quick: bool) -> None:
    """Draw 500 faults, kill the client in between, and hold the books against the answers."""
    count = 500
    draw = random.Random(0)
    server = ChatServer()
    # Slow answers, which take real time, are the rarest.
    server.faults = draw.choices(_FAULTS, [1, 1, 1, 0.1 if quick else 0.3, 1, 1, 1, 1, 1], k=count)
    kinds = Counter(server.faults)
    server.slowness = 0.8
    with tempfile.TemporaryDirectory() as folder, serve_chat(server) as address:
        path = Path(folder) / "answers.jsonl"
        kills = 2 if quick else 6
        for _ in range(kills):
            _run_and_kill(address, path)
        judge_all(address, str(path))
        asked = len(server.requests)
        answers = read_answers(path)
        judge_all(address, str(path))
        again = len(server.requests) - asked
    listed = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    report.note(
        f"endpoint: {count - len(server.faults)} faults ({listed}), {kills} kills, {asked:,} "
        f"requests for {len(_TEXTS)} documents; {server.replayed} replies were sent again under "
        "the same Idempotency-Key, which an endpoint that does not know it would charge again"
    )
    report.check("faults of the endpoint", count - len(server.faults), count, unit="")
    judged = {answer.items[0] for answer in answers}
    report.check("documents without an answer", len(_TEXTS) - len(judged), 0, False, "")
    report.check("documents with two answers", len(answers) - len(judged), 0, False, "")
    twice = sum(times > 1 for times in server.charged.values())
    report.check("questions paid for twice", twice, 0, False, "")
    report.check("requests of a run that has all answers", again, 0, False, "")
    _budget(report)


def _run_and_kill(address: str, path: Path) -> None:
    """Start a client, and kill it once it has some more answers."""
    before = path.stat().st_size if path.exists() else 0
    child = subprocess.Popen([sys.executable, "-c", _CHILD, address, str(path)])
    while child.poll() is None and (not path.exists() or path.stat().st_size < before + 8000):
        time.sleep(0.02)
    child.kill()
    child.wait()


def _budget(report: Report) -> None:
    """Spend a budget in tokens, and one in requests."""
    server = ChatServer()
    server.delay = 0.002
    limit = 30_000
    with tempfile.TemporaryDirectory() as folder, serve_chat(server) as address:
        for name, budget in (("t", Budget(tokens=limit)), ("r", Budget(requests=50))):
            server.tokens = 0
            server.requests.clear()
            with suppress(BudgetError):
                judge_all(address, f"{folder}/{name}.jsonl", budget)
            if name == "t":
                largest = max(
                    answer.prompt_tokens + answer.answer_tokens
                    for answer in read_answers(f"{folder}/t.jsonl")
                )
                over = (server.tokens - limit) / largest
                report.check("requests beyond a budget in tokens", over, _CONNECTIONS, False, "")
    report.check("requests beyond a budget of 50", len(server.requests) - 50, 0, False, "")
