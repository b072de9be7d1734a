"""A stored search template of OpenSearch or Elasticsearch that names the model of its searches.

Neither has another name for a model. A template is replaced by one request, and a search is
rendered from the old one or the new one. Its first line has the version before, for a rollback; all
else may be edited, as long as it names one version.
"""

from __future__ import annotations

import json
import re
from typing import Any

from podium.errors import DataError
from podium.export.live import Reference
from podium.export.live.http_client import EngineClient, expected_form
from podium.export.live.versions import VERSION, model_name

_FIRST_LINE = re.compile(r"\{\{! podium(?: previous=(?P<previous>\S+))? \}\}\n")
_TEMPLATE = """\
{
  "query": {{#toJson}}query{{/toJson}},
  "from": {{#toJson}}from{{/toJson}}{{^from}}0{{/from}},
  "size": {{#toJson}}size{{/toJson}}{{^size}}10{{/size}},
  "rescore": {
    "window_size": {{#toJson}}window_size{{/toJson}}{{^window_size}}100{{/window_size}},
    RESCORE
  }
}
"""
PARAMETERS = "{{#toJson}}params{{/toJson}}{{^params}}{ }{{/params}}"
"""The parameters of features, where the rescoring of an engine names them."""


def read_reference(client: EngineClient, name: str) -> Reference:
    """Return what a template refers to.

    Raises:
        DataError: If a template of that name is not one that Podium can switch.
    """
    status, answer = client.request("GET", f"_scripts/{name}", allowed=(404,))
    if status == 404:
        return Reference()
    with expected_form(client.title):
        source, language = answer["script"]["source"], answer["script"]["lang"]
    first = _FIRST_LINE.match(source) if isinstance(source, str) else None
    if language != "mustache" or first is None:
        raise DataError(
            f"{client.title} has a stored script {name!r} that is not a search template of Podium",
            hint="Export with another --name.",
        )
    versions = {match[0] for match in VERSION.finditer(source, first.end())}
    if len(versions) != 1 or model_name(min(versions)) != name:
        raise DataError(
            f"the search template {name!r} names {len(versions)} versions of models",
            hint=f"Let it name one, such as podium-{name}-1a2b3c4d5e6f.",
        )
    return Reference(min(versions), first["previous"], source)


def write_reference(
    client: EngineClient, name: str, seen: Reference, version: str, rescore: dict[str, Any]
) -> Reference:
    """Switch a template to another version, or write it.

    Args:
        client: The engine.
        name: The name of the template.
        seen: What it refers to.
        version: The version to refer to.
        rescore: How the engine rescores by that version, if there is no template yet.
    """
    if seen.live is None:
        text = json.dumps(rescore)[1:-1].replace(json.dumps(PARAMETERS), PARAMETERS)
        first, body = "{{! podium }}\n", _TEMPLATE.replace("RESCORE", text)
    else:
        first = f"{{{{! podium previous={seen.live} }}}}\n"
        body = _FIRST_LINE.sub("", seen.state, count=1).replace(seen.live, version)
    script = {"lang": "mustache", "source": first + body}
    client.request("PUT", f"_scripts/{name}", {"script": script})
    return Reference(version, seen.live, first + body)


def usage(name: str) -> str:
    """Return how searches refer to a template, in words."""
    return (
        f'Search by POST INDEX/_search/template with {{"id": "{name}", "params": '
        '{"query": {...}, "size": 10, "params": {...}}}, the last one being those of the features. '
        "Each shard reranks window_size documents (100) of its own."
    )
