"""``podium studio``: servers in processes of their own, the other verbs in that of the tests."""

from __future__ import annotations

import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, closing

import httpx2
import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError

from podium.cli.studio_database import connected
from podium.data import read_qrels, write_jsonl
from podium.errors import DataError
from podium.studio.accounts.identity import Member, Person
from podium.studio.accounts.service import check_password
from podium.studio.demo import demo_queries, prepare_demo
from podium.studio.judging import corrections
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.projects.changes import change_project
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.migrate import upgrade
from podium.studio.store.tables import AuditRecord
from tests.cli.run_podium import podium
from tests.ports import free_port
from tests.studio.command import answers, running
from tests.studio.databases import BOTH
from tests.studio.factories import PASSWORD
from tests.studio.http_client import Browser, row_of
from tests.studio.judging_helpers import Judges, queries_of
from tests.studio.postgres import wait_until

DATABASES = BOTH
TOO_MANY_HEADERS = {f"X-{number}": "a" for number in range(101)}


def run(*words, folder, fails=False, given=""):
    with chdir(folder):
        done = podium("studio", *words, stdin=given.encode())
    assert bool(done.returncode) == fails, done.stderr
    return (done.stderr if fails else done.stdout.strip()).decode()


def test_the_demonstration_works_at_once(tmp_path):
    with running("--no-browser", "--port", "0", folder=tmp_path) as process:
        lines = [process.stdout.readline() for _ in range(2)]
        link = re.search(r"http://\S+/sign-in/once/\S+", lines[1]).group(0)
        address = link.partition("/sign-in")[0]
        with Browser(address) as browser:
            wait_until(lambda: answers(browser))
            assert browser.get(link).status_code == 303
            page = browser.get("/").text
            assert "Demonstration" in page
            number = re.search(r'href="/projects/(\d+)"', page).group(1)
            assert browser.get(f"/projects/{number}/dashboard").status_code == 200
            task = browser.post(
                f"/api/v1/projects/{number}/next",
                json={"tab": "t"},
                headers={"x-csrf-token": browser.csrf()},
            ).json()
            assert task["state"] == "task"
            assert browser.get(link).status_code == 404  # the link is used up
            assert browser.get("/", headers=TOO_MANY_HEADERS).status_code == 431
    assert (tmp_path / "podium-studio.db").exists()


@pytest.mark.parametrize(
    ("database", "message"),
    [
        ("sqlite:///.", "sqlite:///.: unable to open database file. Give a file in a folder that"),
        ("sqlite:///none/x.db", "unable to open database file. Give a file in a folder that"),
        ("sqlite:///words.txt", "words.txt: file is not a database. Give another file"),
        (
            "postgresql+psycopg://me:secret@127.0.0.1:1/x",
            "TCP/IP connections. Does its server run, and let this user in?",
        ),
        ("nonsense", "cannot use this database URL. Give postgresql+psycopg://user@host/name"),
        ("mysql://me@host/x", "cannot use this database URL. Give postgresql+psycopg://"),
        ("postgresql+psycopg://me@host:port/x", "cannot use this database URL. Give postgresql"),
        ("sqlite:///newer.db", "A newer version of Podium has changed it: install that version"),
    ],
)
def test_a_database_that_cannot_be_opened_is_one_line_with_what_to_do(database, message, tmp_path):
    (tmp_path / "words.txt").write_text("no database, " * 100)
    with closing(sqlite3.connect(tmp_path / "newer.db")) as newer:
        newer.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        newer.execute("INSERT INTO alembic_version VALUES ('9999')")
        newer.commit()
    commands = [["migrate"], ["serve", "--port", 0], ["serve", "--migrate", "--port", 0]]
    if "newer" not in database:  # whose tables may well be there
        commands.append(["user", "list"])
    for words in commands:
        output = run(*words, "--database", database, folder=tmp_path, fails=True)
        assert message in output
        assert output.count("\n") == 1
        assert "secret" not in output


@pytest.mark.parametrize(
    "words",
    [
        ["user", "list"],
        ["user", "add", "ann@example.org", "--name", "Ann", "--no-password"],
        ["project", "create", "Shoes", "--owner", "ann@example.org"],
        ["project", "export", "1", "out.jsonl"],
    ],
)
def test_commands_before_the_tables_are_there_say_how_to_make_them(words, tmp_path):
    output = run(*words, "--database", "sqlite:///new.db", folder=tmp_path, fails=True)
    assert "sqlite:///new.db: no such table: " in output
    assert output.endswith(". Run podium studio migrate first.\n")
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("SELECT * FROM users", r"no such table: users|relation \"users\" does not exist"),
        ("SELECT x FROM (SELECT 1) AS t", r"no such column: x|column \"x\" does not exist"),
    ],
)
def test_tables_and_columns_that_a_database_lacks_are_told(empty_database, statement, problem):
    with (
        pytest.raises(DataError, match=rf"({problem})\. Run podium studio migrate first\."),
        connected(Settings(database=empty_database)) as engine,
        engine.connect() as connection,
    ):
        connection.execute(text(statement))


def test_a_damaged_file_is_told(tmp_path):
    file = tmp_path / "studio.db"
    run("migrate", "--database", f"sqlite:///{file}", folder=tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[:4096] + bytes(len(content) - 4096))
    output = run("user", "list", "--database", f"sqlite:///{file}", folder=tmp_path, fails=True)
    assert "malformed. The file is damaged: restore a backup to a new file." in output


def test_a_file_that_another_program_keeps_locked_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("podium.studio.store.database._LOCK_SECONDS", 0.2)
    file = tmp_path / "studio.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with (
            pytest.raises(
                DataError, match=r"studio\.db: database is locked\. Another program keeps"
            ),
            connected(Settings(database=f"sqlite:///{file}")) as engine,
        ):
            upgrade(engine)


def test_other_errors_of_the_database_stay_what_they_are(tmp_path):
    with (
        pytest.raises(OperationalError, match="near"),
        connected(Settings(database=f"sqlite:///{tmp_path}/empty.db")) as engine,
        engine.connect() as connection,
    ):
        connection.execute(text("select from where"))


def test_the_demonstration_is_made_once(engine):
    first = in_transaction(engine, prepare_demo)
    assert in_transaction(engine, prepare_demo) == first


@pytest.mark.slow
@pytest.mark.parametrize("database_kind", ["postgresql"])
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.long), 2])
def test_a_server_of_several_processes(empty_database, tmp_path, workers):
    port = free_port()
    words = ["serve", "--database", empty_database, "--port", port]
    assert "podium studio migrate" in run(*words, folder=tmp_path, fails=True)
    with running(*words, "--workers", workers, "--migrate", folder=tmp_path) as process:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            wait_until(lambda: answers(client), seconds=180)
            assert client.get("/readyz").json() == {"status": "ready"}
            assert "server" not in client.get("/healthz").headers
            assert client.get("/healthz", headers=TOO_MANY_HEADERS).status_code == 431
            # The first process answers before the others are up.
            all_take_jobs = f"podium_workers {workers}.0"
            wait_until(lambda: all_take_jobs in client.get("/metrics").text)
        with ThreadPoolExecutor(8) as pool:  # a connection each, so that all processes answer
            address = f"http://127.0.0.1:{port}"
            list(pool.map(lambda _: httpx2.get(f"{address}/healthz", timeout=60), range(40)))

        def metrics() -> str:
            return httpx2.get(f"{address}/metrics", timeout=60).text

        def count(output: str) -> float:
            return float(re.search(r'route="/healthz",status="200"} ([\d.]+)', output).group(1))

        # A request is counted once its answer is out: these 40, one of the headers, one of waiting.
        wait_until(lambda: count(metrics()) >= 42)
        scrapes = [metrics() for _ in range(6)]
        # Whichever process answers reports all.
        assert len({count(each) for each in scrapes}) == 1
        assert all_take_jobs in scrapes[0]
        assert "podium_database_up 1.0" in scrapes[0]
        process.terminate()
        lines = process.stderr.read().splitlines()
        migrating = [line for line in lines if not line.startswith("{")]
        assert all("revision" in line for line in migrating), migrating
        logged = [json.loads(line) for line in lines if line not in migrating]
        assert {each["event"] for each in logged} == {"serving", "request", "connections cut"}
        assert logged[0]["address"] == f"http://127.0.0.1:{port}"


def audit_of(database, project):
    engine = connect(Settings(database=database))
    columns = AuditRecord.action, AuditRecord.details
    statement = select(*columns).where(AuditRecord.project_id == project).order_by(AuditRecord.id)
    rows = reading(engine, lambda c: c.execute(statement).all())
    engine.dispose()
    return [tuple(row) for row in rows]


def test_an_archived_project_imports_nothing(tmp_path):
    run("migrate", folder=tmp_path)
    run("user", "add", "ann@example.org", "--no-password", folder=tmp_path)
    number = int(run("project", "create", "Old", "--owner", "ann@example.org", folder=tmp_path))
    write_jsonl(demo_queries(), str(tmp_path / "c.jsonl"))
    database = f"sqlite:///{tmp_path / 'podium-studio.db'}"
    engine = connect(Settings(database=database))
    in_transaction(engine, lambda c: change_project(c, 1, number, {"archived": True}))
    output = run("project", "import", number, "c.jsonl", folder=tmp_path, fails=True)
    assert "The project is archived: restore it first." in output
    assert queries_of(engine, number) == []
    engine.dispose()


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("words", [("backup",), ("project", "export", 1)])
def test_the_database_is_not_written_over(words, ending, tmp_path):
    """Under whatever name it is in use."""
    (tmp_path / "link.db").symlink_to("real.db")
    run("migrate", "--database", "sqlite:///real.db", folder=tmp_path)
    added = "user", "add", "ann@example.org", "--no-password"
    run(*added, "--database", "sqlite:///real.db", folder=tmp_path)
    made = "project", "create", "Shoes", "--owner", "ann@example.org"
    run(*made, "--database", "sqlite:///real.db", folder=tmp_path)
    for name in ("real.db", "link.db", "file:re%61l.db?uri=true", "file:link.db?uri=true"):
        database = f"sqlite:///{name}"
        output = run(
            *words, f"real.db{ending}", "--database", database, folder=tmp_path, fails=True
        )
        assert f"real.db{ending} is one of the files to read. Name another file" in output, name
    engine = connect(Settings(database=f"sqlite:///{tmp_path / 'real.db'}"))
    assert row_of(engine, 1).name == "Shoes"
    engine.dispose()
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"link.db", "real.db", "real.db-wal", "real.db-shm", "exports"}


def test_from_an_empty_database_to_labels_without_a_server(empty_database, tmp_path):
    def podium(*words, **more):
        return run(*words, "--database", empty_database, folder=tmp_path, **more)

    podium("migrate")
    assert "no account" in podium("project", "create", "Shoes", "--owner", "a@b.c", fails=True)
    podium("user", "add", "Ann@example.org", "--name", "Ann", "--admin", given=PASSWORD + "\n")
    assert "An account with this address already exists" in podium(
        "user", "add", "ann@example.org", "--no-password", fails=True
    )
    owner = ["--owner", "ann@example.org"]
    number = int(podium("project", "create", "Shoes", *owner, "--k", "2"))
    assert "algorithm" in podium(
        "project", "create", "Shoes", *owner, "--algorithm", "x", fails=True
    )
    write_jsonl(demo_queries(), str(tmp_path / "c.jsonl"))
    podium("project", "import", number, "c.jsonl")
    assert audit_of(empty_database, number)[-1] == ("imported", {"added": len(demo_queries())})
    for content in (["--to", "qrels-parquet"], ["--content", "log", "--to", "jsonl"]):
        output = podium("project", "export", number, "none", *content, fails=True)
        assert "nothing has been judged yet" in output
    assert not (tmp_path / "none").exists()
    for wrong in ((), ("c.jsonl", "--run", "r.run"), ("c.jsonl", "--documents", "d.jsonl")):
        assert "Pass either a JSONL file" in podium("project", "import", number, *wrong, fails=True)
    engine = connect(Settings(database=empty_database))
    service = Judges(engine)
    given = service.next(row_of(engine, number), 1, "t")
    while isinstance(given, LeasedTask):
        choice = "left" if given.task.left < given.task.right else "right"
        _, given = service.answer(
            row_of(engine, number), 1, given.token, choice, seconds=1, tab="t"
        )
    podium("project", "export", number, "labels.qrels")
    labels = read_qrels(tmp_path / "labels.qrels")
    assert len(labels) == 3
    who = Member(Person(1, "Ann", "ann@example.org", True), Role.OWNER, row_of(engine, number))
    withdrawn = queries_of(engine, number)[0]
    in_transaction(engine, lambda c: corrections.withdraw(c, who, withdrawn.id, None))
    engine.dispose()
    podium("project", "export", number, "log.jsonl", "--content", "log", "--to", "jsonl")
    logged = map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines())
    assert {each["query_id"] for each in logged} == {each.query_id for each in demo_queries()}
    podium("project", "export", number, "fewer.qrels")
    assert len(read_qrels(tmp_path / "fewer.qrels")) == 2
    assert labels.labels.max() == 2
    assert "can be written as" in podium(
        "project", "export", number, "x", "--content", "log", fails=True
    )
    assert "--drop-everything" in podium("migrate", "--down", "base", "--yes", fails=True)
    assert "--yes" in podium("migrate", "--down", "0008", fails=True)
    for relative in ("-1", "-3", "0009-1", "0009@base", "BASE", ""):
        problem = podium("migrate", f"--down={relative}", "--yes", fails=True)
        assert f"There is no revision {relative!r}" in problem
    podium("migrate", "--down", "base", "--yes", "--drop-everything")


def test_accounts_on_the_command_line(empty_database, tmp_path):
    def podium(*words, **more):
        return run(*words, "--database", empty_database, folder=tmp_path, **more)

    podium("migrate")
    podium("user", "add", "ann@example.org", "--name", "Ann", "--admin", "--no-password")
    podium("user", "add", "bob@example.org", "--name", "Bob", given=PASSWORD + "\n")
    assert podium("user", "list").splitlines() == [
        "1\tann@example.org\tAnn\tadministrator", "2\tbob@example.org\tBob",
    ]  # fmt: skip
    assert "needs an administrator" in podium("user", "disable", "1", fails=True)
    podium("user", "admin", "bob@example.org")
    podium("user", "disable", "ann@example.org")
    assert podium("user", "list", "ANN").split("\t")[3] == "administrator, disabled"
    podium("user", "enable", "1")
    podium("user", "admin", "2", "--remove")
    word = podium("user", "reset-password", "2")
    engine = connect(Settings(database=empty_database))
    email = "bob@example.org"
    assert in_transaction(engine, lambda c: check_password(c, email, PASSWORD)) is None
    assert in_transaction(engine, lambda c: check_password(c, email, word)) == 2
    podium("user", "end-access", "2")
    assert "--yes" in podium("user", "anonymise", "2", fails=True)
    podium("user", "anonymise", "2", "--yes")
    assert podium("user", "list", "removed-2").split("\t")[:3] == [
        "2", "removed-2@invalid", "Person 2",
    ]  # fmt: skip
    assert "has no account" in podium("user", "disable", "bob@example.org", fails=True)
    engine.dispose()


def test_runs_side_by_side_without_a_server(tmp_path):
    run("migrate", folder=tmp_path)
    run("user", "add", "ann@example.org", "--no-password", folder=tmp_path)
    words = ["project", "create", "Two", "--owner", "ann@example.org", "--mode", "rankings"]
    number = run(*words, folder=tmp_path)
    (tmp_path / "old.run").write_text("q Q0 a 1 2 old\nq Q0 b 2 1 old\n")
    (tmp_path / "new.run").write_text("q Q0 b 1 2 new\nq Q0 a 2 1 new\n")
    (tmp_path / "texts.tsv").write_text("a\tText of a\nb\tText of b\n")
    run(
        "project", "import", number, "--run", "old.run", "--run", "new.run",
        "--documents", "texts.tsv", folder=tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize("words", [["--help"], ["user", "--help"], ["project", "--help"]])
def test_help(words, tmp_path):
    assert "Usage" in run(*words, folder=tmp_path)
