"""Lines of IPython's cells are told as In[n]:line."""

import subprocess
import sys
import textwrap

import pytest

from clew._base.provenance import short_path


def test_cells_are_named_as_in_the_notebook():
    pytest.importorskip("IPython")
    program = """
        from IPython.testing.globalipapp import start_ipython
        shell = start_ipython()
        shell.run_cell("import clew", store_history=True)
        shell.run_cell("x = clew.ones(3, requires_grad=True)\\ny = x.exp()", store_history=True)
        shell.run_cell("print(y.grad_fn.location)", store_history=True)
        shell.run_cell("y.sum().backward()\\ny.sum().backward()", store_history=True)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert "In[2]:2: `y = x.exp()`" in done.stdout
    assert "made at In[2]:2" in done.stdout and "backward at In[4]:1" in done.stdout


def test_a_file_that_is_called_so_is_a_file(tmp_path):
    path = str(tmp_path / "ipykernel_1" / "model.py")
    assert short_path(path) == path
    assert short_path("<ipython-input-1-abc>") == "<ipython-input-1-abc>"


def test_ipython_with_torch_resolved_to_clew():
    pytest.importorskip("IPython")
    command = [sys.executable, "-m", "clew", "run", "--ipython", "--simple-prompt", "-c"]
    program = "import torch; print(torch.ones(2), torch.float32)"
    done = subprocess.run([*command, program], capture_output=True, text=True, check=True)
    assert "tensor([1., 1.]) torch.float32" in done.stdout
