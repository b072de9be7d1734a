"""A browser without a screen: it signs in, fills in forms, and repeats what forms must repeat."""

from __future__ import annotations

import re
import time

import httpx2

from podium.studio.accounts.service import new_api_token
from podium.studio.projects.service import project_row
from podium.studio.store.database import in_transaction, reading
from tests.studio.factories import PASSWORD


def bearer(engine, user) -> dict[str, str]:
    secret = in_transaction(engine, lambda c: new_api_token(c, user, "test", 1))
    return {"authorization": f"Bearer {secret}"}


def program(engine, address, user) -> httpx2.Client:
    """A program with someone's API token."""
    return httpx2.Client(base_url=address, headers=bearer(engine, user), timeout=60)


class Browser(httpx2.Client):
    def __init__(self, address: str) -> None:
        super().__init__(base_url=address, headers={"accept": "text/html"}, timeout=60)

    def sign_in(self, email: str, password: str = PASSWORD) -> httpx2.Response:
        page = self.get("/sign-in")
        form = re.search(r'name="form" value="([^"]+)"', page.text).group(1)
        return self.post("/sign-in", data={"email": email, "password": password, "form": form})

    def csrf(self, page: str = "/") -> str:
        return re.search(r'name="csrf" value="([^"]+)"', self.get(page).text).group(1)

    def submit(self, path: str, values=None, files=None) -> httpx2.Response:
        return self.post(path, data={"csrf": self.csrf(), **(values or {})}, files=files)


def ended(client: httpx2.Client, project: int, job: dict, seconds: float = 120) -> dict:
    """A job once it is done or failed."""
    end = time.monotonic() + seconds
    while job["state"] in ("waiting", "running"):
        if time.monotonic() > end:
            raise TimeoutError(job)
        time.sleep(0.05)
        job = client.get(f"/api/v1/projects/{project}/jobs/{job['id']}").json()
    return job


def row_of(engine, project_id: int):
    return reading(engine, lambda c: project_row(c, project_id))
