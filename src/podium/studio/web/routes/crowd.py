"""API routes for links for crowd workers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from podium.studio.accounts import crowd
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.text import storable
from podium.studio.web.access import AManager, public_url
from podium.studio.web.routes.judging import Number

router = APIRouter(prefix="/api/v1/projects/{project}/crowd-links", tags=["crowd workers"])


class CrowdLinkIn(BaseModel):
    """A link to make."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    parameter: str = Field(default="PROLIFIC_PID", pattern=r"^[A-Za-z0-9_-]{1,50}$")
    """The parameter of the URL that has the platform's id of a worker."""
    code: Annotated[str, AfterValidator(storable)] = Field(min_length=1, max_length=100)
    """What workers give the platform when they are done."""
    judgments: int = Field(default=50, ge=1, le=100_000)
    """How many judgments each worker is to make."""
    workers: int = Field(default=10, ge=1, le=100_000)
    """How many workers may take part."""
    days: float = Field(default=14, gt=0, le=365)


class NewCrowdLinkOut(BaseModel):
    """A new link; it is told once."""

    link: str


class CrowdLinkOut(BaseModel):
    """A link, and how far its workers are."""

    id: int
    parameter: str
    code: str
    judgments: int
    workers_left: int
    expires_at: float
    workers: int
    completed: int


@router.get("", operation_id="list_crowd_links")
def list_links(request: Request, who: AManager) -> list[CrowdLinkOut]:
    """The links for crowd workers, with the number of those who came and who are done."""
    rows = reading(request.app.state.engine, lambda c: crowd.links_of(c, who.project.id))
    return [CrowdLinkOut(**row._asdict()) for row in rows]


@router.post("", status_code=201, operation_id="make_crowd_link")
def make_link(request: Request, who: AManager, body: CrowdLinkIn) -> NewCrowdLinkOut:
    """Make a link: the platform adds the parameter with each worker's id to it."""
    secret = in_transaction(
        request.app.state.engine, lambda c: crowd.make_link(c, who, **body.model_dump())
    )
    return NewCrowdLinkOut(link=f"{public_url(request)}/crowd/{secret}")


@router.delete("/{link}", status_code=204, operation_id="remove_crowd_link")
def remove_link(request: Request, who: AManager, link: Number) -> None:
    """Remove a link; its workers stay members of the project."""
    in_transaction(request.app.state.engine, lambda c: crowd.remove_link(c, who, link))
