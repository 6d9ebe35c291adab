"""pyproject.toml, the workflows, the pages and the package say the same about packages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clew

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def declared() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        tomllib = pytest.importorskip("tomli")
    return tomllib.loads(text("pyproject.toml"))


@pytest.fixture(scope="module")
def pythons(declared) -> list[str]:
    """The Pythons of the classifiers."""
    found = [re.fullmatch(r".* Python :: (3\.\d+)", c) for c in declared["project"]["classifiers"]]
    return [m[1] for m in found if m]


def test_pythons_are_the_same_everywhere(declared, pythons):
    numbers = [int(p.split(".")[1]) for p in pythons]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) >= 5
    assert declared["project"]["requires-python"] == f">={pythons[0]}"
    built = declared["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{p.replace('.', '')}-*" for p in pythons]
    assert f"{pythons[0]} to {pythons[-1]};" in text("SUPPORT.md")
    assert declared["tool"]["ruff"]["target-version"] == "py" + pythons[0].replace(".", "")
    assert declared["tool"]["mypy"]["python_version"] == pythons[0]
    assert f"sys.version_info < (3, {numbers[0]})" in text("tools/check_host.py")
    assert f"find_package(Python {pythons[0]} " in text("CMakeLists.txt")


def test_ci_runs_every_python(pythons):
    said = text(".github/workflows/ci.yml")
    listed = re.search(r"python: \[(.*)\]", said)
    assert listed
    checked = re.findall(r'python-version: "(3\.\d+)"', said)
    assert sorted(re.findall(r"3\.\d+", listed[1]) + checked) == sorted(pythons)


def test_wheels_are_built_for_the_machines_that_are_promised(declared):
    said = text(".github/workflows/release.yml")
    machines = re.findall(r"machine: (\w+)", said)
    assert machines == ["x86_64", "aarch64"]
    options = declared["tool"]["cibuildwheel"]["linux"]
    images = {options[f"manylinux-{m}-image"] for m in machines}
    assert len(images) == 1
    glibc = re.fullmatch(r"manylinux_(\d+)_(\d+)", images.pop())
    assert glibc and f"glibc {glibc[1]}.{glibc[2]} or newer" in text("SUPPORT.md")
    assert "aarch64" in text("SUPPORT.md")


def test_a_release_names_the_repository_it_comes_from(declared):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from project_urls import with_urls
    finally:
        sys.path.pop(0)
    pyproject = text("pyproject.toml")
    once = with_urls(pyproject, "https://host.example/owner/clew/", "v1.2.3")
    assert with_urls(once, "https://host.example/owner/clew", "v1.2.3") == once
    parser = sys.modules["tomllib" if sys.version_info >= (3, 11) else "tomli"]
    tables = parser.loads(once)
    urls = tables["project"].pop("urls")
    assert tables == declared
    assert urls["Homepage"] == urls["Source"] == "https://host.example/owner/clew"
    assert urls["Changelog"] == "https://host.example/owner/clew/blob/v1.2.3/CHANGELOG.md"
    for bad in ("", "owner/clew", "https://host.example", 'https://host.example/a"b'):
        with pytest.raises(ValueError, match="is no address"):
            with_urls(pyproject, bad)
    before_building = re.findall(
        r"project_urls.py .*\n +- run: python -m pip install (build|cibuildwheel)",
        text(".github/workflows/release.yml"),
    )
    assert before_building == ["build", "cibuildwheel"]


def test_a_release_tests_what_it_publishes(declared):
    assert "tools/test_wheel.py" in declared["tool"]["cibuildwheel"]["test-command"]
    said = text(".github/workflows/release.yml")
    _, publish = said.split("\n  publish:\n")
    assert "needs: [sdist, wheels]" in publish
    assert "id-token: write" in publish and "id-token" not in said[: said.index("publish:")]
    assert "startsWith(github.ref, 'refs/tags/v')" in publish
    assert "password" not in publish


def test_what_the_wheel_is_tested_with_is_there():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from test_wheel import SELECTION
    finally:
        sys.path.pop(0)
    assert [t for t in SELECTION if not (ROOT / t).exists()] == []


def test_the_version_is_stated_once(declared):
    assert declared["project"]["dynamic"] == ["version"]
    source = declared["tool"]["scikit-build"]["metadata"]["version"]["input"]
    assert source == "src/clew/__init__.py"
    assert re.findall(r'^__version__ = "(.*)"$', text(source), re.M) == [clew.__version__]
    assert f"\nversion: {clew.__version__}\n" in text("CITATION.cff")
    assert f"\n## {clew.__version__}" in text("CHANGELOG.md")


def test_extras_that_the_package_names_exist(declared):
    extras = declared["project"]["optional-dependencies"]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/clew/**/*.py")]
    named = {}
    for page in pages:
        for names in re.findall(r"(?:clew|install '?\.)\[([a-z, ]+)\]", page.read_text("utf-8")):
            named.update(dict.fromkeys(names.split(","), page))
    assert {"onnx", "scipy", "autobatch", "viz"} <= set(named)
    assert {n: p for n, p in named.items() if n not in extras} == {}
    for wanted in extras.values():
        for names in re.findall(r"clew\[(.*?)\]", " ".join(wanted)):
            assert set(names.split(",")) <= set(extras)


def test_make_says_what_it_can_do():
    done = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"wheel", "test-wheel", "sdist"} <= set(re.findall(r"make (\S+)", done.stdout))
    recipe = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "--always-make", "wheel"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    # Without the editable build before it.
    assert "pip wheel" in recipe.stdout and " -e " not in recipe.stdout
