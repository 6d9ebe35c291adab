"""`clew kernel install`: a Jupyter kernel in which torch is clew."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import clew

SOURCE = str(Path(clew.__file__).parent.parent)
CELL = "import torch; print(torch.__file__, torch.ones(2))"
WANTED = f"{clew.__file__} tensor([1., 1.])\n"


def command(*args, code=0, path=(), **environment):
    """The outputs of `clew kernel ...`; path is searched before all else."""
    search = os.pathsep.join([*map(str, path), SOURCE, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "clew", "kernel", *map(str, args)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": search, **environment},
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def jupyter(tmp_path):
    """A folder with stand-ins of Jupyter's packages: the launcher runs one cell and tells of it."""
    folder = tmp_path / "packages"
    for name in ("ipykernel", "jupyter_client", "jupyter_core"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("")
    (folder / "ipykernel_launcher.py").write_text(f"import sys; print(sys.argv[1:])\n{CELL}\n")
    (folder / "jupyter_core" / "paths.py").write_text(
        f"jupyter_data_dir = lambda: {str(tmp_path / 'user')!r}\n"
    )
    return folder


def test_what_is_installed_starts_a_kernel(tmp_path, jupyter):
    out, _ = command("install", "--prefix", tmp_path, path=[jupyter])
    folder = tmp_path / "share" / "jupyter" / "kernels" / "clew"
    assert str(folder) in out
    assert sorted(p.name for p in folder.iterdir()) == ["kernel.json"]
    spec = json.loads((folder / "kernel.json").read_text())
    start = ["-m", "clew", "run", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    assert spec["argv"] == [sys.executable, *start]
    assert (spec["display_name"], spec["language"]) == ("Python 3 (torch is clew)", "python")
    # The environment that it names is enough to start it, with the launcher's arguments.
    argv = [word.format(connection_file="c.json") for word in spec["argv"]]
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=120, env={**clean, **spec["env"]}
    )
    assert done.stdout == f"['-f', 'c.json']\n{WANTED}", done.stderr


def test_names_places_and_removal(tmp_path, jupyter):
    mine = tmp_path / "user" / "kernels" / "my-torch.1"
    command("install", "--name", "my-torch.1", "--display-name", "Mine é", path=[jupyter])
    spec = json.loads((mine / "kernel.json").read_text(encoding="utf-8"))
    assert spec["display_name"] == "Mine é"
    # Installing again replaces what was there; removing finds it by the same name and place.
    command("install", "--user", "--name", "my-torch.1", path=[jupyter])
    spec = json.loads((mine / "kernel.json").read_text())
    assert spec["display_name"] == "Python 3 (torch is clew)"
    _, err = command("uninstall", "--prefix", tmp_path, "--name", "my-torch.1", code=1)
    assert "no kernel 'my-torch.1'" in err and mine.exists()
    out, _ = command("uninstall", "--name", "my-torch.1", path=[jupyter])
    assert str(mine) in out and not mine.exists()


def test_a_kernel_of_somebody_else_stays(tmp_path, jupyter):
    folder = tmp_path / "share" / "jupyter" / "kernels" / "clew"
    folder.mkdir(parents=True)
    for text in (json.dumps({"argv": ["python", "-m", "other"]}), "not JSON", '["clew"]'):
        (folder / "kernel.json").write_text(text)
        for action in ("install", "uninstall"):
            _, err = command(action, "--prefix", tmp_path, path=[jupyter], code=1)
            assert f"{folder} is not a kernel of clew's" in err
            assert (folder / "kernel.json").read_text() == text


@pytest.mark.parametrize("name", ["", "a/b", "..", ".", "a b", "é", "../x"])
def test_names_that_jupyter_does_not_take(tmp_path, jupyter, name):
    _, err = command("install", "--prefix", tmp_path, "--name", name, path=[jupyter], code=2)
    assert "letters, digits" in err
    assert not (tmp_path / "share").exists()


def test_without_jupyter(tmp_path):
    """Also where this interpreter has Jupyter: site packages are left out."""
    numpy = Path(importlib.util.find_spec("numpy").origin).parent
    for folder in (numpy, *numpy.parent.glob("numpy.libs")):
        (tmp_path / folder.name).symlink_to(folder)
    package = tmp_path / "clew"  # of an editable install the native module lies elsewhere
    package.mkdir()
    for folder in {Path(clew.__file__).parent, Path(clew._C.__file__).parent}:
        for part in folder.iterdir():
            if not (package / part.name).exists():
                (package / part.name).symlink_to(part)
    done = subprocess.run(
        [sys.executable, "-S", "-m", "clew", "kernel", "install", "--prefix", tmp_path / "env"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        timeout=120,
    )
    assert done.returncode == 2 and not done.stdout
    assert done.stderr == (
        "clew kernel: needs Jupyter's kernel; install it with "
        f"{sys.executable} -m pip install ipykernel jupyter_client\n"
    )
    assert not (tmp_path / "env").exists()


def test_a_real_kernel(tmp_path, monkeypatch):
    pytest.importorskip("ipykernel")
    manager = pytest.importorskip("jupyter_client.manager")
    command("install", "--prefix", tmp_path)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    kernel, client = manager.start_new_kernel(kernel_name="clew", startup_timeout=120)
    try:
        said = []
        reply = client.execute_interactive(
            CELL, timeout=120, output_hook=lambda m: said.append(m["content"].get("text", ""))
        )
        assert reply["content"]["status"] == "ok" and "".join(said) == WANTED
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
