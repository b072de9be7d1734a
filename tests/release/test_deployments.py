"""Deployments: what they set and call exists, and nothing runs with more rights than it needs."""

import ipaddress
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import podium
from podium.studio.settings import Settings
from tests.cli.run_podium import succeed

DEPLOY = Path(__file__).parents[2] / "deploy"
FILES = [
    DEPLOY / "Containerfile",
    DEPLOY / "compose.yaml",
    *sorted(DEPLOY.glob("systemd/*.service")),
    *sorted(DEPLOY.glob("helm/**/*.yaml")),
    *sorted(DEPLOY.glob("helm/**/*.tpl")),
]
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
CONTAINERFILE = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_settings_are_settings_of_the_studio(file: Path) -> None:
    names = set(re.findall(r"\bPODIUM_STUDIO_([A-Z_]+)\b", file.read_text()))
    assert {name.lower() for name in names} <= set(Settings.model_fields)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_options_are_options_of_the_commands(file: Path) -> None:
    text = re.sub(r"^ *#.*$", "", file.read_text(), flags=re.MULTILINE)
    served = [line for line in text.splitlines() if re.search(r"\bserve\b.*--", line)]
    for line in served:
        command = ("serve",) if '"podium", "serve"' in line or "podium serve" in line else None
        known = succeed(*(command or ("studio", "serve")), "--help")
        for option in re.findall(r"--[a-z-]+", line):
            assert option in known


@pytest.mark.parametrize("name", ["studio", "serving", "search"])
def test_services_of_compose_have_no_rights(name: str) -> None:
    service = COMPOSE["services"][name]
    target = "serving" if name == "search" else name
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["image"] == f"podium-{target}:{podium.__version__}"
    assert service["build"]["target"] == target
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


@pytest.mark.parametrize(
    "file",
    ["compose.yaml", "systemd/podium-serving.service.d/search.conf",
     "helm/podium-serving/templates/deployment.yaml"],
)  # fmt: skip
def test_services_that_search_have_tokens_and_a_log_that_ends(file: str) -> None:
    text = re.sub(r"^ *#.*$", "", (DEPLOY / file).read_text(), flags=re.MULTILINE)
    options = set(re.findall(r"(?<=\s)--[a-z-]+", text))
    needed = {"--search", "--token-file", "--ranking-log", "--log-days", "--log-gigabytes"}
    assert needed <= options
    known = succeed("serve", "--help")
    assert all(option in known for option in needed)


@pytest.mark.parametrize("name", ["podium-studio", "podium-serving"])
def test_charts_limit_the_network_and_can_name_an_image_by_its_digest(name: str) -> None:
    chart = DEPLOY / "helm" / name
    values = yaml.safe_load((chart / "values.yaml").read_text())
    schema = json.loads((chart / "values.schema.json").read_text())
    assert values["networkPolicy"]["enabled"] is True
    assert "policyTypes: [Ingress, Egress]" in (chart / "templates/network.yaml").read_text()
    assert "@{{ .Values.image.digest }}" in (chart / "templates/_helpers.tpl").read_text()
    assert_known(values, schema)


def assert_known(values: dict[str, Any], schema: dict[str, Any]) -> None:
    """The schema refuses values that it does not know, so it has to know the defaults."""
    if schema.get("additionalProperties") is False:
        assert set(values) <= set(schema["properties"])
    for key, value in values.items():
        if isinstance(value, dict) and key in schema.get("properties", {}):
            assert_known(value, schema["properties"][key])


def test_images_install_what_is_locked_and_run_without_rights() -> None:
    stages = dict(
        re.findall(
            r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", CONTAINERFILE, re.DOTALL | re.MULTILINE
        )
    )
    for name in ("studio", "serving"):
        assert f"--require-hashes -r /locks/{name}.txt" in stages[f"{name}-environment"]
        assert "HEALTHCHECK" in stages[name]
        assert "USER" not in stages[name]  # it stays that of the stage before
        assert re.search(rf"^FROM runtime AS {name}$", CONTAINERFILE, re.MULTILINE)
    assert "USER 10001:10001" in stages["runtime"]
    installs = re.findall(r"pip install ([^&\n]+)", CONTAINERFILE)
    assert len(installs) == 5
    assert all(
        "--require-hashes" in each or "--no-deps" in each or "==" in each for each in installs
    )


@pytest.mark.parametrize(
    "file", sorted(DEPLOY.glob("systemd/*.service")), ids=lambda file: file.name
)
def test_units_are_hardened(file: Path) -> None:
    lines = file.read_text().splitlines()
    for line in (
        "User=podium",
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "SystemCallFilter=@system-service",
    ):
        assert line in lines


def test_the_chart_trusts_the_ingress_on_who_asks() -> None:
    chart = DEPLOY / "helm/podium-studio"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    trusted = [ipaddress.ip_network(each) for each in values["trustedProxies"].split(",")]
    assert ipaddress.ip_network("10.0.0.0/8") in trusted
    assert not any(network.is_global for network in trusted)
    assert "PODIUM_STUDIO_TRUSTED_PROXIES" in (chart / "templates/_helpers.tpl").read_text()
