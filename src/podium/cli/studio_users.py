"""``podium studio user``: manage accounts directly in the database."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from podium.cli.app import App
from podium.cli.studio_database import Database, confirm, engine_for, say
from podium.errors import ArgumentError

user_app = App(help="Manage accounts.", no_args_is_help=True)

Who = Annotated[str, typer.Argument(help="E-mail address, or the account's number.")]
Sure = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


@user_app.command("add")
def add_user_command(
    email: Annotated[str, typer.Argument(help="E-mail address.")],
    name: Annotated[str, typer.Option(help="Their name; by default their address.")] = "",
    admin: Annotated[
        bool, typer.Option("--admin", help="Let them create projects on this server.")
    ] = False,
    password: Annotated[
        bool,
        typer.Option("--password/--no-password", help="Ask for one, or read it from a pipe."),
    ] = True,
    database: Database = None,
) -> None:
    """Create an account. Without a password its owner signs in with OpenID."""
    from podium.studio.accounts.identity import record
    from podium.studio.accounts.service import add_user
    from podium.studio.store.database import in_transaction

    word = None
    if password:
        word = (
            typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
            if sys.stdin.isatty()
            else sys.stdin.readline().rstrip("\n")
        )

    def work(connection: Any) -> int:
        number = add_user(connection, email, name or email, word, admin=admin, verified=True)
        record(connection, number, None, "was added on the server", admin=admin)
        return number

    with engine_for(database) as engine:
        number = in_transaction(engine, work)
    say(f"Account {number} for {email}.")


@user_app.command("list")
def list_users(
    search: Annotated[str, typer.Argument(help="A part of a name or address.")] = "",
    database: Database = None,
) -> None:
    """Print accounts, one per line: number, address, name, and notes such as administrator."""
    from podium.studio.accounts.administration import accounts
    from podium.studio.store.database import reading

    with engine_for(database) as engine:
        after = 0
        while rows := reading(engine, partial(accounts, search=search, after=after)):
            for row in rows:
                notes = [
                    note
                    for note, holds in (
                        ("administrator", row.is_admin),
                        ("disabled", row.disabled),
                        ("not verified", not row.email_verified),
                    )
                    if holds
                ]
                typer.echo("\t".join([str(row.id), row.email, row.name, ", ".join(notes)]))
            after = rows[-1].id


@user_app.command()
def disable(who: Who, database: Database = None) -> None:
    """Disable an account and sign it out everywhere."""
    from podium.studio.accounts.administration import set_disabled

    _change(who, database, lambda c, n: set_disabled(c, None, n, disabled=True), "is disabled")


@user_app.command()
def enable(who: Who, database: Database = None) -> None:
    """Enable an account again."""
    from podium.studio.accounts.administration import set_disabled

    _change(who, database, lambda c, n: set_disabled(c, None, n, disabled=False), "is enabled")


@user_app.command()
def admin(
    who: Who,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the administrator role.")
    ] = False,
    database: Database = None,
) -> None:
    """Make someone an administrator of the server."""
    from podium.studio.accounts.administration import set_admin

    words = "is not an administrator" if remove else "is an administrator"
    _change(who, database, lambda c, n: set_admin(c, None, n, admin=not remove), words)


@user_app.command("reset-password")
def reset_password_command(who: Who, database: Database = None) -> None:
    """Print a new password for someone; their sessions and API tokens end."""
    from podium.studio.accounts.administration import reset_password

    typer.echo(
        _change(who, database, lambda c, n: reset_password(c, None, n), "has a new password")
    )


@user_app.command("end-access")
def end_access_command(who: Who, database: Database = None) -> None:
    """Sign someone out everywhere and end their API tokens."""
    from podium.studio.accounts.administration import end_access_of

    _change(who, database, lambda c, n: end_access_of(c, None, n), "is signed out everywhere")


@user_app.command("anonymise")
def anonymise_command(who: Who, yes: Sure = False, database: Database = None) -> None:
    """Permanently remove a person's personal data; the judgments stay under the account number."""
    from podium.studio.accounts.administration import anonymise

    confirm(f"Permanently remove the personal data of {who}?", yes=yes)
    _change(who, database, lambda c, n: anonymise(c, None, n), "is anonymous")


def _change(who: str, database: str | None, work: Callable[[Any, int], Any], words: str) -> Any:
    from sqlalchemy import select

    from podium.studio.store.database import in_transaction
    from podium.studio.store.tables import User

    def change(connection: Any) -> tuple[int, Any]:
        number = int(who) if who.isascii() and who.isdigit() and len(who) < 18 else None
        matches = User.email == who.strip().lower() if number is None else User.id == number
        user = connection.scalar(select(User.id).where(matches))
        if user is None:
            raise ArgumentError(f"{who} has no account", hint="Run podium studio user list.")
        return user, work(connection, user)

    with engine_for(database) as engine:
        number, result = in_transaction(engine, change)
    say(f"Account {number} {words}.")
    return result
