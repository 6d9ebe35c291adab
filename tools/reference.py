"""Pages of the site that list what is public: for Sphinx, which reads the docstrings itself."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

# Modules by chapter; of `clew` itself functions and classes.
CHAPTERS: dict[str, tuple[str, ...]] = {
    "Tensors and their functions": ("clew", "clew.linalg", "clew.fft", "clew.special",
                                    "clew.signal.windows", "clew.masked", "clew.random",
                                    "clew.quasirandom"),
    "Layers": ("clew.nn", "clew.nn.functional", "clew.nn.init", "clew.nn.utils",
               "clew.nn.utils.parametrizations", "clew.nn.utils.parametrize", "clew.nn.utils.prune",
               "clew.nn.utils.rnn", "clew.nn.attention", "clew.nn.parallel"),
    "Gradients": ("clew.autograd", "clew.autograd.functional", "clew.autograd.graph",
                  "clew.autograd.forward_ad", "clew.func"),
    "Optimizers": ("clew.optim", "clew.optim.lr_scheduler", "clew.optim.swa_utils"),
    "Data": ("clew.utils.data", "clew.distributions", "clew.nested", "clew.sparse"),
    "Memory and precision": ("clew.amp", "clew.utils.checkpoint"),
    "Seeing what happens": ("clew.debug", "clew.profiler", "clew.utils.tensorboard"),
    "Leaving Python": ("clew.export", "clew.onnx", "clew.jit"),
    "Many processes": ("clew.distributed", "clew.distributed.tensor",
                       "clew.distributed.tensor.parallel", "clew.distributed.tensor.debug",
                       "clew.distributed.tensor.experimental", "clew.distributed.fsdp",
                       "clew.distributed.checkpoint", "clew.distributed.checkpoint.state_dict",
                       "clew.distributed.optim", "clew.distributed.algorithms.join",
                       "clew.multiprocessing"),
    "Around": ("clew.utils.benchmark", "clew.testing", "clew.overrides", "clew.library",
               "clew.serialization", "clew.futures"),
}  # fmt: skip
# Classes whose methods are listed.
WHOLE = {"Tensor", "Module", "Optimizer", "LRScheduler", "Distribution", "DataLoader", "Function",
         "profile", "DTensor", "ProcessGroup", "DeviceMesh", "Generator",
         "GradScaler", "FSDPModule", "SummaryWriter"}  # fmt: skip
# Whose bases are parts of them, so that their methods are listed too.
OF_PARTS = {"Module"}


def public(module: Any) -> list[str]:
    """The names that a module offers."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return sorted(set(names), key=str.lower)


def page(name: str, told: dict[int, str]) -> str:
    """One module's page; `told` has the objects that earlier pages have."""
    module = importlib.import_module(name)
    functions, classes, again = [], [], []
    for own in public(module):
        try:
            value = getattr(module, own)
        except (AttributeError, ImportError, NotImplementedError, RuntimeError):
            continue  # a name that says why clew lacks it
        if not getattr(value, "__doc__", None) or inspect.ismodule(value) or not callable(value):
            continue
        if id(value) in told:
            again.append(f"- `{own}`, which is `{told[id(value)]}`")
            continue
        told[id(value)] = f"{name}.{own}"
        options = ["   :members:"] if own in WHOLE and inspect.isclass(value) else []
        options += ["   :inherited-members: object"] if own in OF_PARTS else []
        kind = "class" if inspect.isclass(value) else "function"
        entry = "\n".join([f".. auto{kind}:: {name}.{own}", *options, ""])
        (classes if kind == "class" else functions).append(entry)
    first = (inspect.getdoc(module) or "").strip().split("\n\n")[0]
    lines = [f"# {name}", "", first.replace("\n", " "), ""]
    for title, entries in (("Functions", functions), ("Classes", classes)):
        if entries:
            lines += [f"## {title}", "", "```{eval-rst}", *entries, "```", ""]
    if again:
        lines += ["## Also here", "", *again, ""]
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Writes all pages, and their index."""
    folder.mkdir(exist_ok=True)
    index = ["# Reference", ""]
    told: dict[int, str] = {}
    for chapter, modules in CHAPTERS.items():
        index += [f"## {chapter}", "", "```{toctree}", ":maxdepth: 1", ""]
        for name in modules:
            (folder / f"{name}.md").write_text(page(name, told))
            index.append(name)
        index += ["```", ""]
    (folder / "index.md").write_text("\n".join(index))


# Pages at the root of the repository, by the names that they have in the site.
ROOT_PAGES = {
    "ARCHITECTURE": "architecture",
    "CONTRIBUTING": "contributing",
    "CHANGELOG": "changes",
    "SUPPORT": "support",
    "SECURITY": "security",
}


def write_root_pages(root: Path, folder: Path) -> None:
    """Writes the root's pages with links as they are from a folder of docs."""
    folder.mkdir(exist_ok=True)

    def moved(link: re.Match[str]) -> str:
        name, _, anchor = link[1].partition("#")
        if name.removesuffix(".md") in ROOT_PAGES:
            name = f"{ROOT_PAGES[name.removesuffix('.md')]}.md"
        elif name.startswith("docs/"):
            name = f"../{name.removeprefix('docs/')}"
        elif name:
            name = f"../../{name}"
        return f"]({name}{'#' if anchor else ''}{anchor})"

    for page, own in ROOT_PAGES.items():
        text = (root / f"{page}.md").read_text()
        text = re.sub(r"\]\(((?!\w+:)[^)\s]+)\)", moved, text)
        (folder / f"{own}.md").write_text(text)


def as_restructured_text(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings are plain text with `names` in backticks; other signs are no markup in them."""
    made = []
    for line in lines:
        if not line.lstrip().startswith((">>>", "... ")):
            parts = re.split(r"(``[^`]*``|`[^`]*`)", line)
            for i, part in enumerate(parts):
                if i % 2:
                    parts[i] = "``" + part.strip("`") + "``"
                else:
                    parts[i] = re.sub(r"(?<!\\)([*|]|(?<=\w)_(?!\w))", r"\\\1", part)
            line = "".join(parts)
        made.append(line)
    lines[:] = made
