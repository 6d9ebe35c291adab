"""Ordinary tools work inside forward, hooks and custom Functions: print, pdb, tracebacks,
exceptions, tracing, warnings.
"""

from __future__ import annotations

import faulthandler
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import traceback
import warnings
from pathlib import Path

import pytest

import clew
from clew import nn

SRC = str(Path(clew.__file__).resolve().parent.parent)


def line(mark: str) -> int:
    """The only line of this file that ends in the mark."""
    with open(__file__, encoding="utf-8") as f:
        found = [i for i, text in enumerate(f, 1) if text.rstrip().endswith("# " + mark)]
    assert len(found) == 1, (mark, found)
    return found[0]


def run(
    code: str, tmp_path: Path, *options: str, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code), encoding="utf-8")
    return subprocess.run(
        [sys.executable, *options, str(script)],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SRC, **env},
        timeout=120,
    )


class Double(clew.autograd.Function):
    """Calls what a test puts there from its two halves."""

    inside = staticmethod(lambda *_: None)

    @staticmethod
    def forward(ctx, x):
        Double.inside("forward", x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        Double.inside("backward", grad)  # inside backward
        return grad * 2


class Calls(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(clew.ones(2))

    def forward(self, x):
        return self.function(x * self.weight)  # calls


# ---- the debugger ----

DEBUGGED = """
import clew
from clew import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        h = self.fc(x)
        breakpoint()
        return h

class Twice(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        doubled = grad * 2
        breakpoint()
        return doubled

def hook(grad):
    named = grad + 1
    breakpoint()
    return grad

def train():
    y = nn.Sequential(Net())(clew.ones(4, 3))
    y.register_hook(hook)
    Twice.apply(y).sum().backward()
    print("trained", y.shape)

train()
"""


def test_pdb_stops_in_forward_hook_and_custom_backward(tmp_path):
    look = "p 'at', list({}.shape)\nw\nup\np sorted(locals())\nc\n"
    done = run(
        DEBUGGED,
        tmp_path,
        stdin=look.format("h") + look.format("doubled") + look.format("named"),
        PYTHONBREAKPOINT="pdb.set_trace",
    )
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert "trained clew.Size([4, 2])" in out or "trained torch.Size([4, 2])" in out
    assert out.count("('at', [4, 2])") == 3
    stops = out.split("('at', [4, 2])")
    for stop, inner in zip(stops[1:], ["forward", "backward", "hook"]):
        assert "train()" in stop and f"{inner}(" in stop  # `w` shows the whole stack
    assert "'grad'" not in stops[1] or "'self'" in stops[1]


def test_stepping_from_forward_into_a_module(tmp_path):
    done = run(
        """
        import clew
        from clew import nn

        class Inner(nn.Module):
            def forward(self, x):
                y = x + 1
                return y

        net = nn.Sequential(Inner())
        breakpoint()
        z = net(clew.ones(2))
        print("done", z.tolist())
        """,
        tmp_path,
        stdin="b Inner.forward\nc\nn\nn\np y.tolist()\nc\n",
    )
    assert done.returncode == 0, done.stderr
    assert "[2.0, 2.0]" in done.stdout and "done [2.0, 2.0]" in done.stdout


def test_post_mortem_of_an_error_in_backward(tmp_path):
    done = run(
        """
        import pdb, sys
        import clew

        def hook(grad):
            scale = 41
            raise ValueError("in the hook")

        y = clew.ones(2, requires_grad=True) * 2
        y.register_hook(hook)
        try:
            y.sum().backward()
        except ValueError:
            pdb.post_mortem()
        """,
        tmp_path,
        stdin="p scale + 1\nq\n",
    )
    assert "42" in done.stdout, done.stdout + done.stderr


# ---- tracebacks ----


def frames(error: BaseException) -> list[str]:
    """The functions of this file that the traceback passes through."""
    return [f.name for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]


def fails(_):
    raise LookupError("mine")  # fails


def test_traceback_of_forward():
    net = nn.Sequential(nn.Linear(2, 2), Calls(fails))
    with pytest.raises(LookupError) as e:
        net(clew.ones(1, 2))
    assert frames(e.value) == ["test_traceback_of_forward", "forward", "fails"]
    last = traceback.extract_tb(e.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (__file__, line("fails"))


def test_traceback_of_hooks_and_custom_functions(monkeypatch):
    x = clew.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(fails)
    with pytest.raises(LookupError) as e:
        y.sum().backward()
    name = "test_traceback_of_hooks_and_custom_functions"
    assert frames(e.value) == [name, "fails"]

    monkeypatch.setattr(Double, "inside", lambda half, t: half == "backward" and fails(t))
    z = Double.apply(x)
    with pytest.raises(LookupError) as e:
        z.sum().backward()
    assert frames(e.value) == [name, "backward", "<lambda>", "fails"]
    lines = [f.lineno for f in traceback.extract_tb(e.value.__traceback__) if f.name == "backward"]
    assert line("inside backward") in lines

    monkeypatch.setattr(Double, "inside", lambda half, t: fails(t))
    with pytest.raises(LookupError) as e:
        Double.apply(x)
    assert frames(e.value) == [name, "forward", "<lambda>", "fails"]


def test_causes_and_contexts_are_kept(monkeypatch):
    def chained(half, t):
        if half == "backward":
            try:
                fails(t)
            except LookupError as e:
                raise ValueError("outer") from e

    monkeypatch.setattr(Double, "inside", chained)
    y = Double.apply(clew.ones(2, requires_grad=True))
    with pytest.raises(ValueError, match="outer") as e:
        y.sum().backward()
    assert isinstance(e.value.__cause__, LookupError)
    assert frames(e.value.__cause__) == ["chained", "fails"]
    with pytest.raises(ValueError) as e:
        try:
            {}["absent"]
        except KeyError:
            Calls(lambda x: chained("backward", x))(clew.ones(2))
    assert isinstance(e.value.__cause__.__context__, KeyError)


def test_an_error_of_the_library_keeps_its_context():
    try:
        try:
            raise KeyError("before")
        except KeyError:
            nn.Linear(2, 3)(clew.ones(4))
    except RuntimeError as e:
        assert isinstance(e.__context__, KeyError)
    else:
        pytest.fail("nothing was raised")


class Stop(BaseException):
    pass


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, Stop, GeneratorExit])
def test_exits_pass_through_unharmed(kind, monkeypatch):
    error = kind("mine")

    def leave(*_):
        raise error

    net = nn.Sequential(Calls(lambda x: x))
    x = clew.ones(2)
    y = net(x)
    handle = y.register_hook(leave)
    with pytest.raises(kind) as e:
        y.sum().backward(retain_graph=True)
    assert e.value is error and e.value.args == ("mine",) and not hasattr(error, "__notes__")
    handle.remove()
    y.sum().backward()  # the graph can go on
    assert net[0].weight.grad.tolist() == [1.0, 1.0]

    with pytest.raises(kind) as e:
        nn.Sequential(Calls(leave))(x)
    assert e.value is error
    assert (clew.ones(1, requires_grad=True) * 2).grad_fn.module is None  # no call is left open

    monkeypatch.setattr(Double, "inside", lambda half, t: half == "backward" and leave())
    z = Double.apply(clew.ones(2, requires_grad=True))
    with pytest.raises(kind) as e:
        z.sum().backward()
    assert e.value is error and clew.is_grad_enabled()


# ---- tracing ----


def test_trace_and_profile_functions_see_the_users_functions():
    x = clew.ones(2, requires_grad=True)

    def hook(grad):
        return None

    def work() -> None:
        y = nn.Sequential(Calls(Double.apply))(x)
        y.register_hook(hook)
        y.sum().backward()

    for install in (sys.settrace, sys.setprofile):
        seen: list[str] = []

        def note(frame, event, arg, seen=seen):
            if event == "call" and frame.f_code.co_filename == __file__:
                seen.append(frame.f_code.co_name)
            return note

        before = sys.gettrace() if install is sys.settrace else sys.getprofile()
        install(note)
        try:
            work()
        finally:
            install(before)
        assert [n for n in seen if n in ("forward", "backward", "hook")] == [
            "forward",  # of the module
            "forward",  # of the Function
            "hook",
            "backward",
        ], seen


def test_a_traced_line_is_still_the_users_line():
    """Tracing rewrites the code that runs; the places must not move."""
    x = clew.ones(2, requires_grad=True)
    made = []

    def work():
        made.append(x * 2)  # traced

    before = sys.gettrace()
    sys.settrace(lambda *_: lambda *_: None)
    try:
        work()
    finally:
        sys.settrace(before)
    assert made[0].grad_fn.location.line == line("traced")


def test_faulthandler_shows_the_stack_of_a_hook():
    shown = []

    def hook(grad):
        with tempfile.TemporaryFile() as f:
            faulthandler.dump_traceback(f, all_threads=False)
            f.seek(0)
            shown.append(f.read().decode())

    y = clew.ones(2, requires_grad=True) * 2
    y.register_hook(hook)
    y.sum().backward()
    assert "in hook" in shown[0] and "in test_faulthandler_shows_the_stack_of_a_hook" in shown[0]


def test_development_mode_has_nothing_to_say(tmp_path):
    done = run(
        """
        import clew
        from clew import nn

        class F(clew.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.exp()
            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * x.exp()

        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh())
        net.register_forward_hook(lambda m, i, o: None)
        opt = clew.optim.Adam(net.parameters())
        for _ in range(3):
            opt.zero_grad()
            loss = F.apply(net(clew.randn(5, 3))).mean()
            loss.backward()
            opt.step()
        try:
            loss.backward()
        except RuntimeError as e:
            assert "second time" in str(e)
        print(clew.debug.summary(loss))
        """,
        tmp_path,
        "-X",
        "dev",
        "-W",
        "error",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


# ---- warnings ----


def test_warnings_point_at_the_users_line():
    x = clew.ones(2, 3)

    class Warns(nn.Module):
        def forward(self, x):
            return nn.functional.softmax(x)  # no dim

    def functional():
        Warns()(x)

    def module():
        nn.Softmax()(x)  # module without dim

    def loss():
        nn.MSELoss()(x, clew.ones(3))  # broadcast

    def criterion():
        nn.L1Loss(size_average=False)  # old argument

    for work, mark in (
        (functional, "no dim"),
        (module, "module without dim"),
        (loss, "broadcast"),
        (criterion, "old argument"),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            work()
        assert [(w.filename, w.lineno) for w in caught] == [(__file__, line(mark))], mark


def test_a_warning_as_error_in_forward_is_raised_there():
    def warns(x):
        warnings.warn("mine", UserWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="^mine$") as e:
            nn.Sequential(Calls(warns))(clew.ones(2))
    assert frames(e.value)[-2:] == ["forward", "warns"]


# ---- generators and printing ----


def test_generators_in_forward():
    class Steps(nn.Module):
        def forward(self, x):
            for _ in range(3):
                x = x * 2  # step
                yield x

    seen = list(nn.Sequential(Steps())(clew.ones(1, requires_grad=True)))
    assert [y.item() for y in seen] == [2.0, 4.0, 8.0]
    assert {y.grad_fn.location.line for y in seen} == {line("step")}
    # The call has ended when the generator runs.
    assert seen[0].grad_fn.module is None

    steps = Steps()(clew.ones(1))
    next(steps)
    with pytest.raises(LookupError) as e:
        steps.throw(LookupError("mine"))
    assert frames(e.value)[-1] == "forward"


def test_printing_anywhere(monkeypatch):
    def shown(t) -> str:
        out = io.StringIO()
        print(t, repr(t), f"{t}", file=out)
        return out.getvalue()

    with clew.inference_mode():
        assert "[1., 1.]" in shown(clew.ones(2))
    texts: list[str] = []
    clew.vmap(lambda x: texts.append(shown(x)) or x)(clew.ones(3, 2))
    assert "BatchedTensor" in texts[0] and "[1., 1.]" in texts[0]

    texts.clear()
    x = clew.full((2,), 3.0, requires_grad=True)
    monkeypatch.setattr(Double, "inside", lambda half, t: texts.append(half + shown(t)))
    y = Double.apply(x)
    y.register_hook(lambda g: texts.append("hook" + shown(g)))
    y.sum().backward()
    assert [t.partition("tensor")[0] for t in texts] == ["forward", "hook", "backward"]
    assert "[3., 3.]" in texts[0] and "[1., 1.]" in texts[1] and "[1., 1.]" in texts[2]
    assert x.grad.tolist() == [2.0, 2.0]


def test_printing_leaves_no_trace():
    x = clew.ones(2, requires_grad=True)
    y = x * 2
    number = (y * 1).sum().item()  # left here
    for shown in (repr(x), repr(y), f"{y.sum():.2f}", repr(y.bfloat16())):
        assert shown
    with pytest.raises(RuntimeError) as e:
        clew.tensor(number).backward()
    assert f"test_debugging.py:{line('left here')}" in str(e.value)
    assert clew._C._cut_of(x) is None and clew._C._cut_of(y) is None
