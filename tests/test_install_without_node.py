"""Podium is installed from source where there is no Node.js: the library works, the studio says."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILT = "src/podium/studio/web/static/built"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone: the files that Git knows, as they are now."""
    target = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    assert not (target / BUILT).exists()
    return target


@pytest.fixture(scope="module")
def path_without_node(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH with Python and Git alone."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("git", "sh", "env"):
        program = shutil.which(name)
        if program is not None:
            (folder / name).symlink_to(program)
    path = f"{Path(sys.executable).parent}:{folder}"
    assert shutil.which("npm", path=path) is None
    assert shutil.which("node", path=path) is None
    return path


def build(source: Path, path: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--wheel-dir", "dist"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [*command, "--verbose"],
        cwd=source,
        env=environment | {"PATH": path} | settings,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.slow
def test_the_library_works_and_the_studio_names_a_command(
    source: Path, path_without_node: str, tmp_path: Path
) -> None:
    done = build(source, path_without_node)
    if "No matching distribution found for hatchling" in done.stderr + done.stdout:
        pytest.skip("hatchling, which builds the package, cannot be fetched")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Podium Studio's pages have no scripts" in done.stdout + done.stderr
    (wheel,) = (source / "dist").glob("podium_rank-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site"), "PATH": path_without_node}
    program = (
        "import podium; print(podium.__file__); "
        "print(podium.evaluate('RR', {'q': {'a': 1}}, {'q': {'b': 2.0, 'a': 1.0}}).means['RR'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert ran.stdout.split() == [str(tmp_path / "site/podium/__init__.py"), "0.5"], ran.stderr
    studio = subprocess.run(
        [sys.executable, "-m", "podium", "studio", "--no-browser", "--port", "0"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert studio.returncode == 2
    assert "python -m pip install --force-reinstall --no-deps ." in studio.stderr


@pytest.mark.long
def test_a_wheel_to_publish_needs_the_pages(source: Path, path_without_node: str) -> None:
    done = build(source, path_without_node, PODIUM_REQUIRE_PAGES="1")
    if "No matching distribution found for hatchling" in done.stderr + done.stdout:
        pytest.skip("hatchling, which builds the package, cannot be fetched")
    assert done.returncode == 1
    assert "Node.js and npm are missing" in done.stdout + done.stderr


@pytest.mark.long
def test_pages_that_were_built_are_in_the_wheel(source: Path, path_without_node: str) -> None:
    (source / BUILT).mkdir(parents=True)
    (source / BUILT / "judge.js").write_text("export {};\n")
    done = build(source, path_without_node)
    if "No matching distribution found for hatchling" in done.stderr + done.stdout:
        pytest.skip("hatchling, which builds the package, cannot be fetched")
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (source / "dist").glob("podium_rank-*.whl")
    assert "podium/studio/web/static/built/judge.js" in zipfile.ZipFile(wheel).namelist()
