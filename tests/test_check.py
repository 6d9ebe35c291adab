"""`clew doctor` and `clew run --check`: names that a program needs, found without running it."""

import ast
import os
import subprocess
import sys
import textwrap

import pytest

import clew
from clew._cli._read_names import CALLED, NEEDED, OPTIONAL, _Reader

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.path.dirname(os.path.dirname(clew.__file__)),
}


def command(*args, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "clew", *map(str, args)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
        cwd=cwd,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def doctor(tmp_path):
    def run(source, *, code, first=("doctor",), **others):
        for name, text in {"train": source, **others}.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text))
        got, out, err = command(*first, "train.py", cwd=tmp_path)
        assert got == code, out + err
        return out

    return run


def lines(out):
    return [line for line in out.splitlines() if "clew has no" in line]


def test_what_is_missing(doctor):
    out = doctor(
        """\
        import torch, os
        import torch.nn as nn
        from torch import absent_name
        from torch.nn import functional as F, Linearr
        import torch.nowhere.at_all
        import torch.nn.functional

        def f(x):
            return F.reluu(torch.nn.functional.softmacks(x))
        class A(nn.Modul):
            step = torch.cuda.no_such_thing
        print(torch.Tensor.no_such_method, torch.float32.anything, torch.ops.mine.op)
        raise SystemExit(3)
        """,
        code=1,
    )
    want = [
        "train.py:3: clew has no torch.absent_name; ",
        "train.py:4: clew has no torch.nn.Linearr; nearest: torch.nn.Linear",
        "train.py:5: clew has no torch.nowhere",
        "train.py:9: clew has no torch.nn.functional.reluu; nearest: torch.nn.functional.relu",
        "train.py:9: clew has no torch.nn.functional.softmacks; nearest: torch.nn.functional.s",
        "train.py:10: clew has no torch.nn.Modul; nearest: torch.nn.Module",
        "train.py:11: clew has no torch.cuda.no_such_thing; needs a GPU",
        "train.py:12: clew has no torch.Tensor.no_such_method",
    ]
    found = lines(out)
    assert len(found) == len(want)
    for line, start in zip(sorted(found, key=lambda t: int(t.split(":")[1])), want, strict=True):
        assert line.startswith(start)
    assert "docs/ecosystem.md" in out


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    from torch import absent_name\nexcept ImportError:\n    pass",
        "try:\n    torch.absent_name()\nexcept (KeyError, AttributeError):\n    pass",
        "try:\n    import torch.absent_name\nexcept:\n    pass",
        "if hasattr(torch, 'absent_name'):\n    torch.absent_name()",
        "f = torch.absent_name if hasattr(torch, 'absent_name') else None",
        "f = hasattr(torch, 'absent_name') and torch.absent_name",
        "if torch.cuda.is_available():\n    torch.cuda.absent_name()",
        "if torch.__version__ < '1.8':\n    torch.absent_name()",
    ],
)
def test_guarded(source):
    reader = _Reader("", True, True)
    reader.visit(ast.parse("import torch\n" + source))
    kinds = {kind for name, _, kind in reader.uses if name.endswith("absent_name")}
    assert kinds == {OPTIONAL}


def test_guards_end_where_they_end(doctor):
    out = doctor(
        """\
        import torch
        try:
            from torch import one
        except ImportError:
            one = None
        try:
            from torch import two
        except ValueError:
            pass
        torch.three
        """,
        code=1,
    )
    assert [line.split(";")[0] for line in lines(out)] == [
        "train.py:7: clew has no torch.two",
        "train.py:10: clew has no torch.three",
        "train.py:3: optional: clew has no torch.one",
    ]


def test_nothing_missing(doctor):
    out = doctor(
        """\
        import numpy, torch
        from torch.utils.data import DataLoader
        import torch.nn.functional as F

        def f(F, torch):
            return F.anything, torch.anything
        nn = object()
        def g():
            torch = 3
            return torch.real
        try:
            from torch import absent_name
        except ImportError:
            pass
        """,
        code=0,
        first=("run", "--check"),
    )
    assert len(lines(out)) == 1 and "optional" in out


def test_modules_that_are_imported(doctor):
    out = doctor(
        """\
        import helpers.models
        try:
            import fallback
        except ImportError:
            pass
        """,
        code=1,
        **{
            "helpers/__init__": "",
            "helpers/models": "from . import parts\nfrom .parts import x\nopen('ran', 'w')",
            "helpers/parts": "from torch import absent_one\nx = 1",
            "fallback": "from torch import absent_two",
            "never": "from torch import absent_three",
        },
    )
    assert [line.split(";")[0] for line in lines(out)] == [
        os.path.join("helpers", "parts.py") + ":1: clew has no torch.absent_one",
        "fallback.py:1: optional: clew has no torch.absent_two",
    ]
    assert out.splitlines()[-2].startswith("5 files: ")


def test_one_file_is_no_files(doctor):
    assert doctor("import torch\n", code=0).startswith("1 file: ")


def test_nothing_runs(doctor, tmp_path):
    doctor("open('ran', 'w')\nimport helper", helper="open('ran', 'w')", code=0)
    assert not (tmp_path / "ran").exists()


def test_functions_of_installed_packages(tmp_path):
    source = "import torch\nx = torch.a\ndef f(y=torch.b):\n    return torch.c"
    reader = _Reader("", False, True)
    reader.visit(ast.parse(source))
    assert [(n, k) for n, _, k in reader.uses] == [
        ("torch", NEEDED),
        ("torch.a", NEEDED),
        ("torch.b", NEEDED),
        ("torch.c", CALLED),
    ]


@pytest.mark.parametrize("source", ["def", "x = 1\0", "(" * 5000 + ")" * 5000, "a" + ".a" * 20000])
def test_programs_that_cannot_be_read(doctor, source):
    """The program itself gives status 2; a module of it leaves the rest to be checked."""
    if not source.startswith("a"):
        doctor(source, code=2)
    out = doctor("import helper, torch\ntorch.absent_name", helper=source, code=1)
    assert "torch.absent_name" in out


def test_bad_arguments(tmp_path):
    assert command("doctor", cwd=tmp_path)[0] == 2
    code, _, err = command("doctor", "nothing.py", cwd=tmp_path)
    assert code == 2 and "nothing.py" in err
    assert command("doctor", "-m", "no_such_module", cwd=tmp_path)[0] == 2
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "__main__.py").write_text("from .one import f")
    (tmp_path / "pack" / "one.py").write_text("import torch\ntorch.absent_name")
    code, out, _ = command("doctor", "-m", "pack", cwd=tmp_path)
    assert code == 1 and os.path.join("pack", "one.py") + ":2" in out


def test_names_for_modules_and_classes(doctor):
    """`F = torch.nn.functional` is followed where the name means one thing only."""
    out = doctor(
        """\
        import torch as th, torch.nn as nn, torch.optim as optim
        F = th.nn.functional
        F.relu, F.absent_one
        T = th.Tensor
        T.zero_, T.absent_two
        o = optim.lr_scheduler
        s = o.StepLR, o.absent_three
        either = th.cuda if s else th
        either.absent
        twice = th.cuda
        twice = th
        twice.absent
        nn = either.nn
        nn.absent
        def f():
            F = th
            return F.absent
        class C:
            th = 3
        try:
            import torch
        except ImportError:
            torch = None
        torch.absent_four, th.absent_five
        """,
        code=1,
    )
    found = [line.split(": clew has no ")[1].split(";")[0] for line in lines(out)]
    assert found == [
        "torch.nn.functional.absent_one",
        "torch.Tensor.absent_two",
        "torch.optim.lr_scheduler.absent_three",
        "torch.absent_four",
        "torch.absent_five",
    ]


def test_calls_that_would_raise(doctor):
    source = """\
        from torch.distributed.fsdp import FlatParameter as FSDP
        import torch
        def wrap(model, sharded):
            isinstance(model, FSDP)
            return FSDP(model) if sharded else model
        def other(model):
            if torch.cuda.is_available():
                FSDP(model)
        """
    out = doctor(source, code=0)
    found = [line for line in out.splitlines() if "raises when it is called" in line]
    assert len(found) == 1
    assert found[0].startswith(
        "train.py:5: raises when it is called: torch.distributed.fsdp.FlatParameter; "
        "use distributed.fsdp.fully_shard"
    )
    assert "1 calls would raise" in out


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("torch.optim.Adamw", "nearest: torch.optim.AdamW"),
        ("torch.utils.data.Dataloader", "nearest: torch.utils.data.DataLoader"),
        ("torch.rfft", "PyTorch has removed it: use torch.fft.rfft"),
        ("torch._six.string_classes", "PyTorch has removed it: use str"),
        ("torch.quantized_lstm", "there are no quantized tensors"),
        ("torch._inductor.nothing", "there is no such compiler"),
        ("torch.distributed._nothing.at_all", "docs/distributed.md"),
        ("torch.cuda.jiterator.create_jit_fn", "needs a GPU"),
        ("torch.wholly_unlike", "clew has nothing like it"),
    ],
)
def test_remedies(doctor, name, advice):
    assert f"clew has no {name}; {advice}" in doctor(f"import torch\nx = {name}\n", code=1)


def test_annotations_that_nobody_evaluates(doctor):
    source = """\
        import torch
        def f(x: torch.absent_one) -> torch.absent_two:
            y: torch.never = 1
            return x
        class C:
            z: torch.absent_three = torch.zeros(1)
        """
    names = ["torch.absent_one", "torch.absent_three", "torch.absent_two"]
    late = sys.version_info >= (3, 14)
    out = doctor(source, code=0 if late else 1)
    found = {line.split(": clew has no ")[1].split(";")[0] for line in lines(out)}
    assert sorted(found) == ([] if late else names)
    out = doctor("from __future__ import annotations\n" + textwrap.dedent(source), code=0)
    assert not lines(out)


@pytest.mark.parametrize("first", [("doctor",), ("run", "--check")])
def test_words_behind_the_program_are_not_left_unread(first, tmp_path):
    (tmp_path / "a.py").write_text("import torch\n")
    (tmp_path / "b.py").write_text("import torch\ntorch.absent_name\n")
    for words in (["a.py", "b.py"], ["a.py", "--all"], ["-m", "a", "b"]):
        code, out, err = command(*first, *words, cwd=tmp_path)
        assert code == 2 and not out
        assert err == f"clew doctor: one program at a time, options first; got {words[-1]!r}, too\n"
