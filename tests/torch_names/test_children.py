"""Programs under `clew run` and the processes that they start without multiprocessing."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clew
from clew._cli.run import ALIAS_FOLDER

SOURCE = str(Path(clew.__file__).parent.parent)


def run(*args):
    path = os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "clew", "run", *args],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_program_given_as_text():
    assert run("-c", "import sys, torch; print(torch.ones(2).sum().item(), sys.argv)", "a") == (
        "2.0 ['-c', 'a']\n"
    )


def test_a_subprocess_knows_torch_and_its_version():
    inner = (
        "import importlib.metadata as m; print(m.version('torch'));"
        "import torch, clew; print(torch.nn is clew.nn, torch.torch is torch, torch.ones(1).item())"
    )
    out = run("-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])")
    assert out == "2.13.0\nTrue True 1.0\n"


def test_names_that_raise_when_they_are_used():
    out = run(
        "-c",
        "import torch\n"
        "from torch.distributed.fsdp import FlatParameter as F, ShardingStrategy\n"
        "from torch.distributed.tensor import DTensor, Shard\n"
        "import torch._dynamo as d, torch._C as c\n"
        "assert not isinstance(torch.ones(1), DTensor) and Shard(0) == Shard(0)\n"
        "assert d.is_compiling() is False and c._functions.AccumulateGrad\n"
        "import clew; assert clew._C is not c and clew._C.Tensor is c.Tensor\n"
        "class Sub(F): pass\n"
        "for f in (F, Sub):\n"
        "    try: f(torch.nn.Linear(1, 1))\n"
        "    except NotImplementedError as e: print(str(e)[:58])\n",
    )
    assert out.count("FlatParameter: ") == 1 and "Sub: " in out, out


def test_an_alias_for_one_environment(tmp_path):
    import venv

    venv.create(tmp_path / "env", system_site_packages=True, symlinks=True)
    python = str(tmp_path / "env" / "bin" / "python")
    # The packages of this interpreter, and what their .pth files install: clew itself, perhaps.
    packages = str(Path(np.__file__).parent.parent)
    (own,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (own / "outer.pth").write_text(f"import site; site.addsitedir({packages!r})\n")

    def command(*args, code=0):
        done = subprocess.run([python, *args], capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    ask = "import torch, importlib.metadata as m; print(torch.ones(1).item(), m.version('torch'))"
    assert "torch is clew" in command("-m", "clew", "alias", "on")
    assert command("-c", ask) == "1.0 2.13.0\n"
    assert "torch is clew" in command("-m", "clew", "alias", "status")
    assert "torch is not there" in command("-m", "clew", "alias", "off")
    assert "torch is not there" in command("-m", "clew", "alias", "status")
    command("-c", "import torch", code=1)


def failing(*args, path=()):
    """What is told of a program's error, without `clew run`."""
    search = os.pathsep.join([*map(str, path), SOURCE, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": search},
        timeout=120,
    )
    return done.stdout + done.stderr


PAGE = "docs/ecosystem.md says which libraries run"
SLIPS = {
    "from torch import flexible": "clew has no 'torch.flexible'; ",
    "from torch.optim.lr_scheduler import Steps": "clew has no 'torch.optim.lr_scheduler.Steps'; ",
    "import torch.optin": "clew has no 'torch.optin'; the nearest name is 'optim'; ",
    "import torch; torch.nn.Linearr": "clew has no 'torch.nn.Linearr'; ",
}


@pytest.mark.parametrize("source", SLIPS)
def test_the_alias_tells_where_to_look(source):
    out = failing("-c", source, path=[ALIAS_FOLDER])
    assert out.count(PAGE) == 1 and SLIPS[source] in out
    # The same under `clew run`, and in what it starts.
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {source!r}])"
    for program in (source, inner):
        out = failing("-m", "clew", "run", "-c", program)
        assert out.count(PAGE) == 1 and SLIPS[source] in out
    assert PAGE not in failing("-c", "import torch; torch.ones(2).view(3)", path=[ALIAS_FOLDER])


def test_a_shell_tells_where_to_look(tmp_path):
    """A stand-in of the class that shows the errors of a notebook's cells, in both orders."""
    shell = tmp_path / "IPython" / "core" / "interactiveshell.py"
    shell.parent.mkdir(parents=True)
    for folder in (shell.parent, shell.parent.parent):
        (folder / "__init__.py").write_text("")
    shell.write_text(
        "import sys\n"
        "class InteractiveShell:\n"
        "    def _get_exc_info(self, exc_tuple=None): return exc_tuple or sys.exc_info()\n"
        "    def run(self, cell):\n"
        "        try: exec(cell)\n"
        "        except Exception: print(self._get_exc_info()[1])\n"
    )
    lines = ["import torch", "from IPython.core.interactiveshell import InteractiveShell as S"]
    for order in (lines, lines[::-1]):
        program = "\n".join([*order, f"for cell in {list(SLIPS)!r}: S().run(cell)"])
        out = failing("-c", program, path=[ALIAS_FOLDER, tmp_path])
        assert out.count(PAGE) == len(SLIPS) and all(text in out for text in SLIPS.values()), out


def test_a_real_shell_tells_where_to_look():
    pytest.importorskip("IPython")
    out = failing(
        *("-m", "IPython", "--colors=NoColor", "-c", "from torch import flexible"),
        path=[ALIAS_FOLDER],
    )
    assert SLIPS["from torch import flexible"] + PAGE in out
