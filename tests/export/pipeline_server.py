"""A stand-in for OpenSearch with search pipelines, in a thread."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import numpy as np

from podium.export.targets.fusions import FUSION_TARGETS


class PipelineServer:
    """Keeps pipelines and rows, and fuses rows as the pipeline of a search says.

    Attributes:
        pipelines: The search pipelines by name.
        shift: What is added to the scores of a search.
    """

    def __init__(self) -> None:
        self.pipelines: dict[str, Any] = {}
        self.indices: dict[str, list[dict[str, float]]] = {}
        self.shift = 0.0

    def __enter__(self) -> Self:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, content = server.answer(self.command, self.path.lstrip("/"), body)
                reply = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            do_PUT = do_POST = do_DELETE = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """Answer a request."""
        if path == "":
            return 200, {"version": {"number": "3.8.0", "distribution": "opensearch"}}
        if path.startswith("_search/pipeline"):
            return self._pipeline(method, path.removeprefix("_search/pipeline").strip("/"), body)
        if path.startswith("_cat"):
            return 200, []
        if path.startswith(("_scripts", "_ltr")):
            return (404 if method == "GET" else 400), {}
        index, _, action = path.partition("/")
        if method == "PUT":
            self.indices[index] = []
        elif method == "DELETE":
            del self.indices[index]
        elif action.startswith("_bulk"):
            self.indices[index] += [json.loads(line) for line in body.splitlines()[1::2]]
            return 200, {"errors": False}
        else:
            return 200, {"hits": {"hits": self._hits(self.indices[index], json.loads(body))}}
        return 200, {}

    def _pipeline(self, method: str, name: str, body: bytes) -> tuple[int, Any]:
        if method == "PUT":
            self.pipelines[name] = json.loads(body)
        elif method == "DELETE":
            del self.pipelines[name]
        elif name and name not in self.pipelines:
            return 404, {}
        return 200, {name: self.pipelines[name]} if name in self.pipelines else self.pipelines

    def _hits(self, rows: list[dict[str, float]], search: Any) -> list[Any]:
        queries = search["query"]["hybrid"]["queries"]
        bounds = queries[0]["bool"]["filter"][0]["range"]["podium_golden_row"]
        rows = rows[bounds["gte"] : bounds["lt"]]
        names = [each["bool"]["must"][0]["function_score"]["query"]["exists"]["field"]
                 for each in queries]  # fmt: skip
        target = FUSION_TARGETS["opensearch"]
        pipeline = self.pipelines[search["search_pipeline"]]
        files = {"pipeline.json": json.dumps(pipeline), "search.json": json.dumps(search)}
        fusion = target.read({name: text.encode() for name, text in files.items()}, tuple(names))
        votes = np.array([[row.get(name, np.nan) for name in names] for row in rows])
        scores = target.scores(fusion, votes, np.array([0, len(rows)])) + self.shift
        return [
            {"_source": row, "_score": score}
            for row, score in zip(rows, scores.tolist(), strict=True)
        ]
