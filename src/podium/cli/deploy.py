"""``podium deploy``: versions of a ranker in a running engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from podium.cli.app import App
from podium.cli.options import JsonOutput
from podium.cli.printing import print_table
from podium.cli.text import shown
from podium.cli.verify import report_verification

if TYPE_CHECKING:
    from podium.export.folder import ExportFolder
    from podium.export.live import DeploymentEngine, Reference, StoredModels

app = App(
    help="Versions of a ranker in a running engine: put, list, switch, roll back, delete.",
    no_args_is_help=True, rich_markup_mode="markdown",
)  # fmt: skip

EngineAddress = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="A running engine: http://localhost:9200, or Solr's "
        "http://localhost:8983/solr/COLLECTION.",
    ),
]


@app.callback()
def _deploy() -> None:
    """Versions of a ranker in a running engine: put, list, switch, roll back, delete."""


@app.command("put")
def put_command(
    folder: Annotated[str, typer.Argument(help="A folder written by podium export.")],
    url: EngineAddress,
    no_switch: Annotated[
        bool,
        typer.Option("--no-switch", help="Only upload and check it; searches stay as they are."),
    ] = False,
) -> None:
    """Upload an export as a new version, score its golden rows there, and switch searches to it.

    Whatever fails before the switch, which is one request, searches go on with the version before.
    Ends with status 1 if a golden row scores otherwise than the ranker did.
    """
    from podium.export import connect_engine
    from podium.export.folder import ExportFolder

    export = ExportFolder.open(folder)
    engine = connect_engine(export.manifest.target, url, fuses=export.manifest.is_fusion)
    deploy(export, engine, switch=not no_switch)


def deploy(export: ExportFolder, engine: DeploymentEngine, *, switch: bool = True) -> None:
    """Deploy an export, and print what was done; exit with status 1 if it does not verify."""
    from podium.export import deploy_export

    deployment = deploy_export(export, engine, switch=switch)
    _say(f"Uploaded {deployment.version} to {engine.title}.")
    name, held = export.manifest.model_name, deployment.verification.holds
    if not held or not switch:
        still = deployment.before or "no version"
        _say(f"Searches for {name} refer to {still}, as before.")
    elif deployment.before == deployment.version:
        _say(f"Searches for {name} refer to it already.")
    else:
        before = f" instead of {deployment.before}" if deployment.before else ""
        _say(f"Searches for {name} refer to it now{before}.")
        if not before and export.manifest.is_fusion:
            _say(f"Search by POST INDEX/_search?search_pipeline={name}, as in search.json.")
        elif not before:
            _say(engine.usage(name))
    report_verification(deployment.verification, str(export.path), console=Console(stderr=held))


@app.command("list")
def list_command(url: EngineAddress, as_json: JsonOutput = False) -> None:
    """Print what Podium has put into an engine, and what searches refer to.

    Ends with status 1 if they refer to a version that is not there.
    """
    engine = _engine(url)
    stored = engine.stored()
    references = _references(engine, stored)
    missing = [
        each.live
        for each in references.values()
        if each.live is not None and each.live not in stored.versions
    ]
    if as_json:
        content = {
            "references": [
                {"name": name, "live": each.live, "previous": each.previous}
                for name, each in references.items()
            ],
            "versions": list(stored.versions),
            "missing": missing,
            "feature_sets": stored.feature_sets,
            "leftovers": stored.leftovers,
        }
        typer.echo(json.dumps(content))
    else:
        print_table(("what", "name", "state"), list(_rows(references, stored)), names=3)
        for version in missing:
            typer.echo(shown(f"Searches refer to {version}, which is not there.").plain)
    if missing:
        raise typer.Exit(1)


def _references(engine: DeploymentEngine, stored: StoredModels) -> dict[str, Reference]:
    from podium.export.live.versions import model_name

    return {
        name: engine.reference(name) for name in sorted({model_name(v) for v in stored.versions})
    }


def _rows(references: dict[str, Reference], stored: StoredModels) -> Iterator[tuple[str, ...]]:
    live = {each.live for each in references.values()}
    previous = {each.previous for each in references.values()}
    for version in stored.versions:
        state = "live" if version in live else "previous" if version in previous else ""
        yield "version", version, state
    for name, users in stored.feature_sets.items():
        yield "feature set", name, f"used by {len(users)}" if users else ""
    for name in stored.leftovers:
        yield "check", name, "runs, or was killed"


@app.command("switch")
def switch_command(
    url: EngineAddress,
    version: Annotated[str, typer.Argument(help="A version, as podium deploy list prints it.")],
) -> None:
    """Let searches refer to another version, by one request."""
    from podium.export.deployments import switch_version

    switch_version(version, _engine(url))
    _say(f"Searches refer to {version} now.")


@app.command("rollback")
def rollback_command(
    url: EngineAddress,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The name that searches refer to.")
    ] = "podium",
) -> None:
    """Let searches refer to the version before, by one request."""
    from podium.export import roll_back

    version = roll_back(name, _engine(url))
    _say(f"Searches for {name} refer to {version} again.")


@app.command("delete")
def delete_command(
    url: EngineAddress,
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Versions or other names of podium deploy list."),
    ],
) -> None:
    """Delete versions, feature sets or what is left of checks; never what is in use."""
    from podium.export.deployments import delete_stored

    engine = _engine(url)
    for name in names:
        delete_stored(name, engine)
        _say(f"Deleted {name}.")


def _engine(url: str) -> DeploymentEngine:
    from podium.export import connect_engine
    from podium.export.live.connect import detect_target

    return connect_engine(detect_target(url), url)


def _say(text: str) -> None:
    Console(stderr=True).print(shown(text), soft_wrap=True)
