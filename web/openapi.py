"""Print the schemas of the judging routes as an OpenAPI document: `npm run types` reads it."""

from __future__ import annotations

import json

from fastapi.openapi.utils import get_openapi

from podium.studio.web.routes import documents, judging, quality

if __name__ == "__main__":
    routes = [
        *judging.routes.api.routes,
        *documents.routes.api.routes,
        *quality.routes.api.routes,
    ]
    document = get_openapi(title="Podium Studio", version="1", routes=routes)
    # The page uses the types of requests and responses, not those of paths and operations.
    print(json.dumps({**document, "paths": {}}))
