"""jit.trace, jit.save and jit.load."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys

import export_models as models
import numpy as np
import pytest

import clew
from clew import jit, nn
from clew.export import ExportError


def same(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-6)


def test_trace_keeps_branches_and_lets_sizes_vary():
    def f(x, y):
        if x.sum() > 0:
            return x * y
        return x - y

    traced = jit.trace(f, (clew.ones(2, 3), clew.ones(2, 3)))
    assert isinstance(traced, jit.ScriptModule) and jit.is_script_module(traced)
    for n, sign in ((2, 1), (5, -1), (1, -1)):
        x = sign * clew.rand(n, 3)
        same(traced(x, clew.ones(n, 3)), f(x, clew.ones(n, 3)))
    with pytest.raises(RuntimeError, match="one input"):
        traced(clew.ones(4, 3), clew.ones(3, 3))
    with pytest.raises(RuntimeError):
        jit.trace(nn.Linear(2, 1), clew.ones(1, 3))
    with pytest.raises(ExportError, match="check_inputs"):
        seen = []

        def changes(x):
            seen.append(1)
            return x * (1 if len(seen) < 9 else 2)

        jit.trace(changes, clew.ones(2), check_inputs=[clew.ones(2)] * 9)


def test_saved_modules_train_and_keep_extra_files(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    traced = jit.trace(model, clew.ones(2, 3))
    file = io.BytesIO()
    jit.save(traced, file, _extra_files={"about.txt": "hello"})
    file.seek(0)
    extra = {"about.txt": ""}
    loaded = jit.load(file, _extra_files=extra)
    assert extra["about.txt"] == b"hello"
    assert list(loaded.state_dict()) == list(model.state_dict())
    optimizer = clew.optim.SGD(loaded.parameters(), lr=0.1)
    x = clew.randn(5, 3)
    before = float((loaded(x) ** 2).mean())
    for _ in range(20):
        optimizer.zero_grad()
        (loaded(x) ** 2).mean().backward()
        optimizer.step()
    assert float((loaded(x) ** 2).mean()) < before / 2
    loaded.load_state_dict(model.state_dict())
    same(loaded(x), model(x))
    for other in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        same(other(x), model(x))
        assert (
            other.state_dict()["0.weight"].data_ptr() != loaded.state_dict()["0.weight"].data_ptr()
        )
    traced.save(tmp_path / "m.pt")
    same(jit.load(str(tmp_path / "m.pt"))(x), model(x))
    with pytest.raises(ValueError, match="CPU"):
        jit.load(tmp_path / "m.pt", map_location="cuda")


def test_a_file_runs_without_the_source(tmp_path):
    case, model, example, unseen = models.make("adaptive")
    clew.export.save(clew.export.export(model, example, dynamic_shapes=case.shapes),
                     tmp_path / "m.clew")  # fmt: skip
    clew.save(unseen[0][0], tmp_path / "x.pt")
    text = (
        "import clew, sys; assert 'export_models' not in sys.modules;"
        f"m = clew.export.load({str(tmp_path / 'm.clew')!r}).module();"
        f"x = clew.load({str(tmp_path / 'x.pt')!r});"
        "y = m(x); print([float(y[0].sum()), y[2]])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    expected = model(*unseen[0])
    got = eval(done.stdout)
    assert got[1] == expected[2] and abs(got[0] - float(expected[0].sum())) < 1e-5


def test_a_fresh_process_has_lapack_for_a_program(tmp_path):
    class Solve(nn.Module):
        def forward(self, x):
            return clew.linalg.cholesky(x), clew.linalg.solve(x, x), clew.linalg.svdvals(x)

    x = clew.tensor([[4.0, 2.0], [2.0, 5.0]])
    program = clew.export.export(Solve(), (x,))
    clew.export.save(program, tmp_path / "m.clew")
    text = (  # nothing of it names clew.linalg
        f"import clew; m = clew.export.load({str(tmp_path / 'm.clew')!r}).module();"
        "print([y.tolist() for y in m(clew.tensor([[4.0, 2.0], [2.0, 5.0]]))])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    lower, one, values = map(clew.tensor, eval(done.stdout))
    assert clew.allclose(lower, clew.tensor([[2.0, 0.0], [1.0, 2.0]]))
    assert clew.allclose(one, clew.eye(2), atol=1e-6)
    assert clew.allclose(values, clew.tensor([4.5 + 4.25**0.5, 4.5 - 4.25**0.5]))


def test_script_with_examples_and_trace_module():
    model = nn.Linear(3, 2)
    assert jit.is_script_module(jit.script(model, example_inputs=[(clew.ones(2, 3),)]))
    assert jit.is_script_module(jit.trace_module(model, {"forward": clew.ones(2, 3)}))
    with pytest.raises(ValueError, match="forward"):
        jit.trace_module(model, {"other": clew.ones(2, 3)})
    assert not jit.is_tracing()
    seen = []
    jit.trace(lambda x: (seen.append(jit.is_tracing()), x)[1], clew.ones(2))
    assert True in seen


def test_a_traced_function_takes_other_numbers_of_dims_and_dtypes():
    calls = []

    def scaled(x):
        calls.append(x.dim())
        return clew.tanh(x) * 2

    traced = clew.jit.trace(scaled, clew.ones(3))
    calls.clear()
    for shape in ((5,), (2, 3), (4, 2, 3), (7, 1)):
        x = clew.randn(shape)
        assert clew.allclose(traced(x), clew.tanh(x) * 2)
    x = clew.randn(3, dtype=clew.float64)
    assert traced(x).dtype is clew.float64
    made = len(calls)
    assert made and traced(clew.ones(9, 2)).shape == (9, 2) and len(calls) == made


def test_a_traced_module_takes_other_numbers_of_dims():
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Tanh()).eval()
    traced = clew.jit.trace(net, clew.ones(3))
    net.train()  # a trace is of the mode that it was made in
    x = clew.randn(5, 2, 3)
    assert clew.equal(traced(x), traced(x)) and net.training and net[1].training
    net.eval()
    assert clew.allclose(traced(x), net(x))
    with clew.no_grad():
        net[0].weight.zero_()
    assert clew.allclose(traced(x), net(x))
    traced.get_submodule("0").weight = nn.Parameter(clew.ones(4, 3))
    expected = clew.tanh(x.sum(-1, keepdim=True) + net[0].bias)
    assert clew.allclose(traced(x), expected)
    assert clew.allclose(traced(x[0, 0]), expected[0, 0])
    traced(x).sum().backward()
    assert traced.get_submodule("0").weight.grad.shape == (4, 3) and net[0].weight.grad is None


def test_arguments_that_no_trace_takes_raise_what_the_function_raises():
    traced = clew.jit.trace(nn.Linear(3, 2), clew.ones(1, 3))
    with pytest.raises(RuntimeError, match="linear"):
        traced(clew.ones(2, 2, 5))
    back = copy.deepcopy(traced)  # holds the program alone
    with pytest.raises(RuntimeError, match="exported program"):
        back(clew.ones(2, 2, 3))


def test_further_arguments_are_checked_for_each_method():
    class Net(nn.Linear):
        def twice(self, x):
            return 2 * self(x)

    net, x = Net(3, 2), clew.randn(2, 3)
    checks = [{"forward": x, "twice": (x + 1,)}, {"forward": (x * 2,)}]
    traced = clew.jit.trace_module(net, {"forward": x, "twice": x}, check_inputs=checks)
    assert clew.allclose(traced.twice(x), 2 * net(x))
