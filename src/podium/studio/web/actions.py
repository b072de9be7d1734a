"""What can be done: each action is one function, for the forms of pages and for programs.

`Routes.action` makes a function a route of the JSON API and the target of a form, whose fields fill
the same body: both pass the same checks. A form that is refused is answered by its page with the
problem; so is one whose result is shown once, such as a secret.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection
from starlette.datastructures import FormData

from podium.errors import PodiumError
from podium.studio.errors import RefusedError, first_problem
from podium.studio.json_types import JsonObject
from podium.studio.store.database import in_transaction, reading
from podium.studio.web.access import UploadRoute

Result = TypeVar("Result")
_Function = TypeVar("_Function", bound=Callable[..., object])

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def read_csrf(request: Request) -> AsyncIterator[None]:
    """Store a form's CSRF token, for `podium.studio.web.access` to check; close its files."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and kind in _FORMS:
        request.state.csrf = str((await request.form()).get("csrf", ""))
    try:
        yield
    finally:
        await request.close()


async def _read_form(request: Request) -> FormData:
    return await request.form()


Form = Annotated[FormData, Depends(_read_form)]


def read(request: Request, work: Callable[[Connection], Result]) -> Result:
    """Read from the server's database."""
    return reading(request.app.state.engine, work)


def write(request: Request, work: Callable[[Connection], Result]) -> Result:
    """Change the server's database, in a transaction."""
    return in_transaction(request.app.state.engine, work)


@dataclass(frozen=True)
class FormOutcome:
    """What became of a form that its page answers.

    Attributes:
        problem: Why it was refused; empty if it was not.
        typed: What it had in its fields.
        result: What the action returned.
    """

    problem: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    result: object = None


def outcome_of(request: Request) -> FormOutcome:
    """What became of the form that a request sent."""
    outcome: FormOutcome = getattr(request.state, "outcome", FormOutcome())
    return outcome


class Routes:
    """The pages and actions about one thing.

    Args:
        tag: The group of its routes in the API's description.
        api: The prefix of its routes for programs, after ``/api/v1``.
        pages: The prefix of its pages.
    """

    def __init__(self, tag: str = "", *, api: str = "", pages: str = "") -> None:
        self.api = APIRouter(prefix=f"/api/v1{api}", tags=[tag])
        self.pages = APIRouter(
            prefix=pages, dependencies=[Depends(read_csrf)], include_in_schema=False
        )

    def page(self, path: str) -> Callable[[_Function], _Function]:
        """Declare a page."""
        return self.pages.get(path)

    def action(
        self,
        method: str,
        path: str | None,
        *,
        form: str | None = None,
        page: Callable[..., Response] | None = None,
        to: str | Callable[..., str] | None = None,
        back: bool = False,
        values: Callable[[FormData], JsonObject] | None = None,
        uploads: bool = False,
        **options: Any,  # noqa: ANN401 - those of FastAPI
    ) -> Callable[[_Function], _Function]:
        """Declare an action.

        Args:
            method: The HTTP method for programs.
            path: The path for programs; None if only a form can do it.
            form: The path to which a form is sent, if there is one.
            page: The page with the form, which shows why the form was refused.
            to: The address that follows, with the action's arguments and its ``result`` in
                braces, or what returns it from these and what was ``typed``; None if `page` shows
                the result.
            back: Whether the page that the form was on follows instead, if it is of the project.
            values: Turns a form's fields into those of the body.
            uploads: Whether files may come with it: see `UploadRoute`.
            options: Others of the route for programs.
        """
        route = UploadRoute if uploads else APIRoute

        def declare(action: _Function) -> _Function:
            if path is not None:
                self.api.add_api_route(
                    path, action, methods=[method], route_class_override=route, **options
                )
            if form is not None:
                answer = _form_handler(action, page, to, values, back=back)
                self.pages.add_api_route(
                    form, answer, methods=["POST"], response_model=None, route_class_override=route
                )
            return action

        return declare


def _form_handler(
    action: Callable[..., object],
    page: Callable[..., Response] | None,
    to: str | Callable[..., str] | None,
    values: Callable[[FormData], JsonObject] | None,
    *,
    back: bool,
) -> Callable[..., Response]:
    """A handler with the action's parameters, in which a form replaces the JSON body."""
    hints = get_type_hints(action, include_extras=True)
    declared = {
        name: parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(action).parameters.items()
    }
    body = next(
        (name for name in declared if isinstance(hints[name], type) and _is_model(hints[name])), ""
    )

    def submit(*, request: Request, submitted: FormData, **arguments: object) -> Response:
        typed = {name: value for name, value in submitted.items() if isinstance(value, str)}
        try:
            if body:
                fields = values(submitted) if values else form_values(hints[body], submitted)
                arguments[body] = hints[body].model_validate(fields)
            result = action(request=request, **arguments)
        except (ValidationError, PodiumError) as error:
            refused = _refused(error)
            if page is None:
                raise refused from error
            return _shown(request, page, arguments, FormOutcome(refused.problem, typed), refused)
        if to is None:
            assert page is not None
            return _shown(request, page, arguments, FormOutcome("", typed, result))
        address = to if isinstance(to, str) else to(result=result, typed=typed, **arguments)
        target = address.format(**{**request.path_params, **arguments}, result=result)
        return RedirectResponse(_origin(request, target) if back else target, 303)

    parameters = [declared[name] for name in declared if name not in ("request", body)]
    more = {"request": Request, "submitted": Form}
    submit.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *parameters,
            *(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
                for name, kind in more.items()
            ),
        ]
    )
    submit.__name__ = action.__name__
    return submit


def form_values(model: type[BaseModel], submitted: FormData) -> JsonObject:
    """The fields of a form as a model takes them.

    A field that was left empty is None where the model allows that.
    """
    values: JsonObject = {}
    for name in model.model_fields.keys() & submitted.keys():
        kind = model.model_fields[name].annotation
        sent = [value for value in submitted.getlist(name) if isinstance(value, str)]
        is_none = type(None) in get_args(kind) and not sent[-1].strip()
        values[name] = sent if get_origin(kind) is list else None if is_none else sent[-1]
    return values


def _is_model(kind: type) -> bool:
    return issubclass(kind, BaseModel)


def _refused(error: ValidationError | PodiumError) -> RefusedError:
    if isinstance(error, RefusedError):
        return error
    problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
    return RefusedError(422, problem)


def _shown(
    request: Request,
    page: Callable[..., Response],
    arguments: Mapping[str, object],
    outcome: FormOutcome,
    refused: RefusedError | None = None,
) -> Response:
    """The page with the form, which shows what became of it."""
    request.state.outcome = outcome
    taken = inspect.signature(page).parameters
    response = page(request, **{name: value for name, value in arguments.items() if name in taken})
    if refused is not None:
        response.status_code = refused.status
    return response


def _origin(request: Request, otherwise: str) -> str:
    """The page that a form was on, if it is of the same project."""
    base = f"/projects/{request.path_params['project']}/"
    origin = urlsplit(request.headers.get("referer", "")).path
    return origin if origin.startswith(base) else otherwise
