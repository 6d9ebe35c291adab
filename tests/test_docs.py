"""The examples in the documentation run: of every op, of every Python module, of the README."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clew
from clew import _C

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
README = Path(__file__).parent.parent / "README.md"
DOCS = README.parent / "docs"
RUN = ("autobatch", "compile", "export", "memory", "performance", "ragged", "recipes", "sparse")
PAGES = [*sorted((DOCS / "tutorials").glob("*.md")), *(DOCS / f"{name}.md" for name in RUN)]


def run_examples(text: str, name: str) -> None:
    clew.manual_seed(0)
    test = doctest.DocTestParser().get_doctest(
        text, {"clew": clew, "nn": clew.nn, "F": clew.nn.functional}, name, None, 0
    )
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    out: list[str] = []
    runner.run(test, out=out.append)
    assert runner.failures == 0, "".join(out)


@pytest.mark.parametrize("name", sorted(n for n in _C.functions if not n.endswith("_")))
def test_op_examples(name: str):
    doc = _C.functions[name].__doc__
    assert ">>>" in doc, f"{name} has no example"
    run_examples(doc, name)


def modules() -> list[str]:
    skip = ("clew.__main__", "clew._C")
    return sorted(
        m.name for m in pkgutil.walk_packages(clew.__path__, "clew.") if m.name not in skip
    )


class OfFile(doctest.DocTestFinder):
    """Finds the examples in a module's file, those of classes that name another place too."""

    def _from_module(self, module: Any, object: Any) -> bool:
        if inspect.isclass(object):
            for f in filter(inspect.isfunction, vars(object).values()):
                written_in_it = f.__qualname__ == f"{object.__qualname__}.{f.__name__}"
                if written_in_it and f.__globals__ is vars(module):
                    return True
        return super()._from_module(module, object)


# Examples of what lives, and of what waits.
AT_ONCE = ("clew._insight.debug.memory", "clew._program.report")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.at_once] * (n in AT_ONCE)) for n in modules()]
)
def test_module_examples(name: str, tmp_path, monkeypatch):
    """They stand by themselves: what they need beside clew, nn and F they import."""
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    finder = OfFile(exclude_empty=True)
    for test in finder.find(
        module, name, globs={"clew": clew, "nn": clew.nn, "F": clew.nn.functional}
    ):
        if not test.examples:
            continue
        clew.manual_seed(0)
        runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
        out: list[str] = []
        runner.run(test, out=out.append)
        assert runner.failures == 0, "".join(out)


def test_readme_example(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    exec(compile(block, "README.md", "exec"), {})
    loss = float(capsys.readouterr().out.split()[1].rstrip(","))
    assert loss < 1e-3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_whose_programs_run(page: Path, tmp_path, monkeypatch):
    """The blocks of a page are one program; its links lead to files."""
    monkeypatch.chdir(tmp_path)
    if page.stem == "autobatch":
        pytest.importorskip("greenlet")
    if page.stem == "export":
        pytest.importorskip("onnx")
    text = page.read_text()
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.S))
    assert blocks
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks:
        above = "\n" * text.count("\n", 0, block.start(1))  # errors name the page's lines
        exec(compile(above + block[1], str(page), "exec"), names)
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    for link in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("name", ["quickstart", "from_pytorch"])
def test_pages_of_examples(name: str):
    text = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / f"{name}.md").read_text(), re.S))
    assert text.count(">>>") >= 4
    run_examples(text, name)


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.glob("*.md")), *sorted(DOCS.parent.glob("*.md"))],
    ids=lambda page: f"{page.parent.name}/{page.stem}",
)
def test_links_lead_to_files(page: Path):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for link in re.findall(r"\]\(([^)#:\s]+)\)", prose):
        assert (page.parent / link).exists(), link


def insane_links(text: str) -> list[str]:
    """Links to other sites that cannot be right: no https, no host with a dot, signs left over."""
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    links = re.findall(r"\]\(\s*((?:\w+:|//)[^)]*)\)", prose) + re.findall(r"<(\w+:/[^>]*)>", prose)
    good = re.compile(r"https://[\w-]+(\.[\w-]+)+(:\d+)?([/?#][^\s<>\"{}|\\^`]*)?(?<![.,;:])")
    return [link for link in links if not good.fullmatch(link)]


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.rglob("*.md")), *sorted(DOCS.parent.glob("*.md"))],
    ids=lambda page: f"{page.parent.name}/{page.stem}",
)
def test_links_to_other_sites_have_a_sane_form(page: Path):
    """Without the network; `make linkcheck` follows them."""
    assert insane_links(page.read_text()) == []


def test_links_that_cannot_be_right_are_found():
    good = ["[a](https://semver.org)", "<https://arxiv.org/abs/2006.09616>", "[b](docs/x.md#c)"]
    bad = ["[a](http://semver.org)", "[a](https:/semver.org)", "[a](https://semver)"]
    bad += ["[a](https://semver.org/x y)", "<https://semver.org.>", "[a](htps://semver.org)"]
    assert [insane_links(text) for text in good] == [[]] * len(good)
    assert [len(insane_links(text)) for text in bad] == [1] * len(bad)


def test_the_architecture_names_files_that_exist():
    """Files that moved were named by their old places."""
    root = Path(__file__).resolve().parents[1]
    sources = [
        p.as_posix() for top in ("src", "csrc", "tools", "tests") for p in (root / top).rglob("*")
    ]
    text = (root / "ARCHITECTURE.md").read_text()
    names = set(re.findall(r"`([\w./]*\w\.(?:py|cpp|h))`", text))
    assert len(names) > 50
    assert [n for n in sorted(names) if not any(s.endswith("/" + n) for s in sources)] == []


def latest(suite: str) -> dict[str, dict[str, float]]:
    results = README.parent / "bench" / "results" / f"{suite}.jsonl"
    return json.loads(results.read_text().splitlines()[-1])["median"]


def test_the_readme_has_the_numbers_of_the_last_run():
    """A table from an earlier run stood there, and was said to be the page's."""
    cases = {
        "`a + b`": ("overhead", "add"),
        "`w + a`, recorded": ("overhead", "add, recorded"),
        "`a @ b`": ("overhead", "matmul"),
        "`a.exp()`": ("overhead", "exp"),
        "`a.softmax(1)`": ("overhead", "softmax"),
        "`a[3]`": ("overhead", "index row"),
        "`x.item()`": ("overhead", "item"),
        "forward and backward of a chain of `*`, a node": ("graph", "mul 8x8, forward + backward"),
    }
    _, _, table = README.read_text().partition("| | clew | PyTorch 2.13 |\n| --- | --- | --- |\n")
    rows = [row.strip("|").split("|") for row in table.partition("\n\n")[0].splitlines()]
    told = {name.strip(): (int(ours), int(theirs)) for name, ours, theirs in rows}
    assert told == {
        name: tuple(round(latest(suite)[library][case]) for library in ("clew", "torch"))
        for name, (suite, case) in cases.items()
    }


def test_the_program_of_the_page_about_many_processes_runs(tmp_path):
    """Alone it is a group of one."""
    text = (DOCS / "distributed.md").read_text()
    program = re.search(r"```python\n(# train.py.*?)```", text, re.S)
    assert program is not None
    (tmp_path / "train.py").write_text(program[1])
    done = subprocess.run(
        [sys.executable, "-m", "clew", "run", "train.py"],
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(clew.__file__))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    ranks, loss = done.stdout.split("ranks, loss")
    assert int(ranks) == 1 and float(loss) < 0.05, done.stdout + done.stderr
