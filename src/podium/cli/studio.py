"""``podium studio``: the judging web application, as a demo, for a team, and from scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.app import App
from podium.cli.studio_database import (
    Database,
    confirm,
    engine_for,
    need_studio,
    require_not_database,
    say,
    settings_for,
)
from podium.cli.studio_users import user_app
from podium.errors import ArgumentError

app = App(
    help="Judge with a team in the browser; without a command, a demonstration in this folder.",
    rich_markup_mode="markdown",
    invoke_without_command=True,
)
project_app = App(help="Manage projects directly in the database.", no_args_is_help=True)
app.add_typer(user_app, name="user")
app.add_typer(project_app, name="project")

ProjectNumber = Annotated[int, typer.Argument(help="The project's number.")]
Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")]


@app.callback()
def studio_command(
    context: typer.Context,
    port: Port = 8000,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the browser.")
    ] = True,
) -> None:
    """Judge with a team in the browser; without a command, a demonstration in this folder."""
    if context.invoked_subcommand is None:
        need_studio()
        from podium.cli.studio_server import run_demo

        run_demo(settings_for(None), port, browser)


@app.command()
def serve(
    database: Database = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Server processes.")] = 1,
    migrate_first: Annotated[
        bool, typer.Option("--migrate", help="Upgrade the tables first.")
    ] = False,
) -> None:
    """Serve a team: settings come from PODIUM_STUDIO_ variables, logs are JSON on stderr."""
    need_studio()
    from podium.cli.studio_server import run_server

    run_server(settings_for(database), host, port, workers, migrate_first=migrate_first)


@app.command()
def migrate(
    database: Database = None,
    down: Annotated[
        str | None, typer.Option(help="Downgrade to this revision; newer data are lost.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Downgrade without asking.")] = False,
    drop_everything: Annotated[
        bool, typer.Option("--drop-everything", help="Allow --down base, which removes all tables.")
    ] = False,
) -> None:
    """Upgrade the database's tables, or downgrade them."""
    from podium.studio.store.migrate import downgrade, known_revisions, revisions, upgrade

    # No relative revision such as -2 or 0002-1: it does not show which data are lost.
    if down is not None and down not in {"base", *known_revisions()}:
        known = ", ".join(sorted(known_revisions()))
        raise ArgumentError(f"There is no revision {down!r}", hint=f"Give one of: {known}.")
    with engine_for(database) as engine:
        if down is None:
            upgrade(engine)
        else:
            if down == "base" and not drop_everything:
                raise ArgumentError(
                    "Downgrading to base removes all tables with all judgments",
                    hint="Make a backup, then add --drop-everything.",
                )
            confirm(f"Downgrade to {down} and lose the data of newer tables?", yes=yes)
            downgrade(engine, down)
        present, newest = revisions(engine)
    say(f"The tables are at revision {present or 'none'}; the newest is {newest}.")


@app.command()
def backup(
    output: Annotated[Path, typer.Argument(help="The file to write.")],
    database: Database = None,
) -> None:
    """Back up everything to one file; servers may keep running."""
    from podium.studio.store.backup import back_up

    with engine_for(database) as engine:
        require_not_database(output, engine)
        archive = back_up(engine, settings_for(database), output)
    say(f"Wrote {output}: {archive.log_entries} log entries, digest {archive.log_digest[:16]}.")


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="A file written by backup.")],
    database: Database = None,
) -> None:
    """Restore a backup into an empty database, and check that all judgments are there."""
    from podium.studio.store import backup as backups

    with engine_for(database) as engine:
        archive = backups.restore(engine, settings_for(database), source)
    say(f"Restored {archive.log_entries} log entries; digest {archive.log_digest[:16]} matches.")


@project_app.command("create")
def create_project_command(
    name: Annotated[str, typer.Argument(help="The name of the project.")],
    owner: Annotated[str, typer.Option(help="The owner's e-mail address.")],
    mode: Annotated[str, typer.Option(help="pairs, grades or rankings.")] = "pairs",
    k: Annotated[int, typer.Option(min=1, help="How many top documents to order.")] = 10,
    algorithm: Annotated[str, typer.Option(help="How pairs are chosen.")] = "adaptive",
    database: Database = None,
) -> None:
    """Create a project, and print its number."""
    from pydantic import ValidationError
    from sqlalchemy import select

    from podium.studio.errors import first_problem
    from podium.studio.projects.service import ProjectSettings, create_project
    from podium.studio.store.database import in_transaction
    from podium.studio.store.tables import User

    try:
        settings = ProjectSettings(name=name, mode=mode, k=k, algorithm=algorithm)  # type: ignore[arg-type]
    except ValidationError as error:
        raise ArgumentError(first_problem(error)) from error

    def work(connection: Any) -> int:
        user = connection.scalar(select(User.id).where(User.email == owner.strip().lower()))
        if user is None:
            raise ArgumentError(f"{owner} has no account", hint="Run podium studio user add.")
        return create_project(connection, user, settings)

    with engine_for(database) as engine:
        typer.echo(in_transaction(engine, work))


@project_app.command("import")
def import_command(
    project: ProjectNumber,
    candidates: Annotated[
        Path | None, typer.Argument(help="JSONL with queries and candidates.")
    ] = None,
    run: Annotated[
        list[Path] | None, typer.Option(help="A TREC run instead; repeat it for several.")
    ] = None,
    documents: Annotated[
        Path | None, typer.Option(help="The texts of the runs' documents.")
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="The text of the runs' queries.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="Documents of each ranking.")] = 50,
    database: Database = None,
) -> None:
    """Import queries into a project: all of them, or none if one is invalid."""
    from podium.studio.accounts.identity import check_not_archived, record
    from podium.studio.projects.service import add_queries, check_unchanged, project_row
    from podium.studio.store.database import in_transaction
    from podium.studio.store.enums import Mode
    from podium.studio.transfer.readers import Upload, read_candidates, read_runs

    def upload(path: Path) -> Upload:
        return Upload(path, str(path))

    if (candidates is None) == (not run) or (not run and (documents or queries)):
        raise ArgumentError("Pass either a JSONL file, or --run and --documents.")

    def work(connection: Any) -> int:
        row = project_row(connection, project)
        check_not_archived(row)
        if run and documents:
            read = list(
                read_runs(
                    [upload(each) for each in run],
                    upload(documents),
                    upload(queries) if queries else None,
                    depth,
                )
            )
        elif candidates:
            read = list(read_candidates(upload(candidates)))
        else:
            raise ArgumentError("Pass a JSONL file, or --run and --documents.")
        rankings = {each.entry.query_id: each.rankings for each in read}
        count = add_queries(
            connection,
            row,
            [each.entry for each in read],
            rankings if row.mode == Mode.RANKINGS else None,
        )
        check_unchanged(connection, row)
        record(connection, None, project, "imported", added=count)
        return count

    with engine_for(database) as engine:
        count = in_transaction(engine, work)
    say(f"Added {count} queries.")


@project_app.command("export")
def export_command(
    project: ProjectNumber,
    output: Annotated[Path, typer.Argument(help="The file to write.")],
    content: Annotated[
        str, typer.Option(help="labels, grades, preferences, totals, log or answers.")
    ] = "labels",
    target_format: Annotated[
        str, typer.Option("--to", help="qrels, prefs, pairs, jsonl, csv, or one with -parquet.")
    ] = "qrels",
    only_done: Annotated[
        bool, typer.Option("--only-done", help="Export finished queries only.")
    ] = False,
    ties: Annotated[
        bool, typer.Option("--ties", help="Give documents judged equal the same label.")
    ] = False,
    underscores: Annotated[
        bool, typer.Option("--underscores", help="Write spaces in IDs as _, for TREC's formats.")
    ] = False,
    database: Database = None,
) -> None:
    """Export a project's results to a file."""
    from podium.data.atomic import atomic_write
    from podium.data.files import writing
    from podium.studio.projects.service import project_row
    from podium.studio.store.database import reading
    from podium.studio.store.enums import Mode
    from podium.studio.transfer.exports import ExportOptions

    with engine_for(database) as engine:
        require_not_database(output, engine)
        row = reading(engine, lambda c: project_row(c, project))
        options = ExportOptions.model_construct(
            content=content,
            format=target_format,
            only_done=only_done,
            ties=ties,
            underscores=underscores,
        )
        options.check(Mode(row.mode))
        with writing(output), atomic_write(output) as stream:
            rows = options.write(stream, engine, options.queries(engine, row))
    say(f"Wrote {rows} rows to {output}.")
