"""The assessor behind a chat completions endpoint, against a real server."""

import json
import re
import threading
from collections import Counter
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from podium.errors import ArgumentError, DataError
from podium.judging import (
    EndpointAssessor,
    EndpointError,
    Outcome,
    Pair,
    Session,
    SessionFile,
    judge_session,
)

TEXTS = {"d1": "worth 1", "d2": "worth 2", "d3": "worth 3", "d4": "worth 4"}


class Model:
    """A model that prefers the larger number in a text, with faults to order."""

    def __init__(self):
        self.requests = []
        self.failures = []  # status codes to answer with first
        self.cut_off = False
        self.says = lambda worth_a, worth_b: "A" if worth_a > worth_b else "B"

    def reply(self, body):
        self.requests.append(body)
        if self.failures:
            return self.failures.pop(0), {"error": "not now"}
        question = body["messages"][-1]["content"]
        worths = [int(worth) for worth in re.findall(r"worth (\d)", question)]
        content = self.says(*worths)
        return 200, {"choices": [{"message": {"role": "assistant", "content": content}}]}


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def url(model):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body["path"], body["key"] = self.path, self.headers.get("Authorization")
            status, reply = model.reply(body)
            content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if model.cut_off else content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def assessor(url, **settings):
    options = {"query": "which is worth more", "texts": TEXTS, "wait": 0.01, "key": ""} | settings
    return EndpointAssessor(url, "tiny", **options)


def test_it_asks_both_orders(url, model):
    assert assessor(url, key="secret")("d1", "d2") is Outcome.RIGHT
    one, other = model.requests
    assert one["path"] == "/v1/chat/completions"
    assert one["key"] == "Bearer secret"
    assert (one["model"], one["temperature"]) == ("tiny", 0)
    assert "Query: which is worth more" in one["messages"][-1]["content"]
    assert re.findall(r"worth \d", one["messages"][-1]["content"]) == ["worth 1", "worth 2"]
    assert re.findall(r"worth \d", other["messages"][-1]["content"]) == ["worth 2", "worth 1"]


def test_a_liking_for_one_side_cancels_out(url, model):
    model.says = lambda _worth_a, _worth_b: "A"
    assert assessor(url)("d1", "d4") is Outcome.TIE
    model.says = lambda worth_a, worth_b: "TIE" if worth_a < worth_b else "A"
    assert assessor(url)("d1", "d4") is Outcome.RIGHT
    model.says = lambda _worth_a, _worth_b: "Both would do: TIE."
    assert assessor(url)("d1", "d4") is Outcome.TIE


def test_it_may_think_aloud(url, model):
    model.says = lambda _worth_a, _worth_b: "A is short, B is long. So:\n\n**B**"
    assert assessor(url)._ask("d1", "d2") is Outcome.RIGHT
    model.says = lambda _worth_a, _worth_b: "B.\n\nIt is more detailed than the other."
    assert assessor(url)._ask("d1", "d2") is Outcome.RIGHT
    model.says = lambda _worth_a, _worth_b: "Tie"
    assert assessor(url)._ask("d1", "d2") is Outcome.TIE
    model.says = lambda _worth_a, _worth_b: "B is better than A."
    with pytest.raises(EndpointError, match="neither A, B nor TIE"):
        assessor(url, retries=0)._ask("d1", "d2")


def test_answers_are_kept_and_never_asked_for_again(url, model, tmp_path):
    cache = tmp_path / "answers.jsonl"
    first = assessor(url, cache=cache)
    first("d1", "d2")
    first("d2", "d1")
    assert len(model.requests) == 2
    with cache.open("a") as stream:
        stream.write('{"question": "cut of')  # a crash
    again = assessor(url, cache=cache)
    assert again("d1", "d2") is Outcome.RIGHT
    assert len(model.requests) == 2
    again("d1", "d3")
    assert len(model.requests) == 4
    assert len(cache.read_text().splitlines()) == 4
    assessor(url, cache=cache, texts=TEXTS | {"d1": "worth 9"})("d1", "d2")
    assert len(model.requests) == 6  # another text is another question


def test_a_broken_cache_is_named(url, tmp_path):
    (tmp_path / "answers.jsonl").write_text('{"question": "x", "answer": "A"}\n{"answer": "C"}\n')
    with pytest.raises(DataError, match=r"answers\.jsonl, line 2"):
        assessor(url, cache=tmp_path / "answers.jsonl")


def test_a_busy_endpoint_is_asked_again(url, model):
    model.failures = [429, 503]
    assert assessor(url)("d1", "d2") is Outcome.RIGHT
    assert len(model.requests) == 4


def test_a_refusal_is_not(url, model):
    model.failures = [401]
    with pytest.raises(
        EndpointError, match=r"answered 401: .*not now.*Check address, model and key"
    ):
        assessor(url)("d1", "d2")
    assert len(model.requests) == 1


def test_patience_has_an_end(url, model):
    model.failures = [500] * 9
    with pytest.raises(EndpointError, match="answered 500"):
        assessor(url, retries=2)("d1", "d2")
    assert len(model.requests) == 3


def test_what_is_no_answer(url, model):
    model.says = lambda _worth_a, _worth_b: "I cannot say"
    with pytest.raises(EndpointError, match="neither A, B nor TIE: 'I cannot say'"):
        assessor(url, retries=0)("d1", "d2")
    for reply in [{"choices": []}, [], {"choices": [{"message": None}]}, {"big": "x" * 2**21}]:
        model.reply = lambda _body, reply=reply: (200, reply)
        with pytest.raises(EndpointError, match="not a chat completion"):
            assessor(url, retries=0)("d1", "d2")
    model.says = lambda _worth_a, _worth_b: ["A"]
    model.reply = partial(Model.reply, model)
    with pytest.raises(EndpointError, match="neither A, B nor TIE"):
        assessor(url, retries=0)("d1", "d2")


def test_the_key_goes_nowhere_else(url, model):
    """A redirect is an error: to follow it would hand the key to another host."""
    model.failures = [302]
    with pytest.raises(EndpointError, match="answered 302"):
        assessor(url, key="secret")("d1", "d2")
    assert len(model.requests) == 1


def test_an_answer_that_is_cut_off(url, model):
    model.cut_off = True
    with pytest.raises(EndpointError, match="not a chat completion"):
        assessor(url, retries=1)("d1", "d2")
    assert len(model.requests) == 2


def test_nobody_there(url):
    with pytest.raises(EndpointError, match="refused"):
        assessor("http://127.0.0.1:1", retries=0)("d1", "d2")
    with pytest.raises(ArgumentError, match="not a web address"):
        assessor("file:///etc/passwd")
    with pytest.raises(DataError, match="'x' has no text"):
        assessor(url)("d1", "x")


def test_it_judges_a_whole_session_and_resumes(url, model, tmp_path):
    path, cache = tmp_path / "session.jsonl", tmp_path / "answers.jsonl"
    with SessionFile.create(path, Session(list(TEXTS), 2)) as journal:
        judge_session(journal, [assessor(url, cache=cache)], max_judgments=1)
    with SessionFile.open(path) as journal:
        judge_session(journal, [assessor(url, cache=cache)], max_workers=3)
        assert journal.session.done
        assert journal.session.result().top == ("d4", "d3")
    asked = Counter(request["messages"][-1]["content"] for request in model.requests)
    assert set(asked.values()) == {1}
    assert len(asked) == 2 * len(SessionFile.read(path).log)


def test_verdicts_carry_the_models_name(url):
    verdict = assessor(url, name="tiny model").verdict(Pair("d1", "d2"))
    assert (verdict.assessor, verdict.outcome) == ("tiny model", Outcome.RIGHT)
    assert verdict.at > 1e9
    assert verdict.seconds > 0
