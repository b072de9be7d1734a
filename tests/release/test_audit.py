"""Audits: advisories fail, and what could not be looked up is reported."""

import json

import pytest

from tests.release.audit import Audit, read_npm_audit, read_pip_audit, summary

ADVISORY = {"id": "PYSEC-1", "fix_versions": ["2.1"], "aliases": [], "description": ""}
CLEAN = {"name": "a", "version": "1.0", "vulns": []}
VULNERABLE = {"name": "b", "version": "2.0", "vulns": [ADVISORY]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("packages", "audit"),
    [
        ([CLEAN], Audit(1, [])),
        ([CLEAN, VULNERABLE], Audit(2, ["b 2.0: PYSEC-1, fixed in 2.1"])),
        ([CLEAN, SKIPPED], Audit(1, [], "1 of 2 packages: Dependency not found")),
        ([SKIPPED], Audit(0, [], "1 of 1 packages: Dependency not found")),
    ],
)
def test_reports_of_pip_audit_are_read(packages: list, audit: Audit) -> None:
    assert read_pip_audit(json.dumps({"dependencies": packages, "fixes": []}), "") == audit


def test_without_a_report_the_last_error_is_told() -> None:
    assert read_pip_audit("", "Traceback\nConnectionError: no route\n\n") == Audit(
        0, [], "ConnectionError: no route"
    )
    errors = "npm error audit endpoint returned an error\nnpm error A complete log of this run is\n"
    refused = json.dumps({"message": "405", "error": {"summary": "", "detail": ""}})
    assert read_npm_audit(refused, errors) == Audit(
        0, [], "npm error audit endpoint returned an error"
    )


def test_reports_of_npm_are_read() -> None:
    report = {
        "vulnerabilities": {
            "left-pad": {"range": "<2", "severity": "high", "via": [{"title": "Pads right"}]},
            "top": {"range": "*", "severity": "high", "via": ["left-pad"]},
        },
        "metadata": {"dependencies": {"total": 40}},
    }
    assert read_npm_audit(json.dumps(report), "") == Audit(
        40, ["left-pad <2: high, Pads right", "top *: high, "]
    )


@pytest.mark.parametrize(
    ("audit", "require", "status"),
    [
        (Audit(3, []), True, 0),
        (Audit(3, ["a 1: X"]), False, 1),
        (Audit(0, [], "no route"), False, 0),
        (Audit(0, [], "no route"), True, 1),
    ],
)
def test_what_was_not_audited_fails_only_where_it_must_be(
    audit: Audit, require: bool, status: int
) -> None:
    lines, ended = summary({"lock": audit}, require=require)
    assert ended == status
    expected = [f"lock: {audit.checked} packages looked up, {len(audit.advisories)} advisories"]
    # Last, so that it is the line that the release check's page shows.
    expected += ["lock: NOT AUDITED: no route"] if audit.unknown else []
    assert lines[-len(expected) :] == expected
