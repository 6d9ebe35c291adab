"""What exported programs and their files have as state: all of it, as it is now."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile

import pytest

import clew
from clew import jit, nn
from clew.export import Dim, ExportError, export, load, save

X = clew.randn(2, 3)
SHAPES = ({0: Dim("b")},)


class Model(nn.Module):
    """With tied weights, a layer that is not called, and buffers of both kinds."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(7, 7)
        self.first, self.second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("table", clew.ones(3), persistent=False)

    def forward(self, x):
        return self.norm(self.second(self.first(x))) + self.table


def model():
    made = Model().eval()
    with clew.no_grad():
        made.norm.running_mean.normal_()
    return made


def through_a_file(x, write=save, read=load):
    file = io.BytesIO()
    write(x, file)
    file.seek(0)
    return read(file)


def exported(m):
    return through_a_file(export(m, (X,), dynamic_shapes=SHAPES)).module()


def traced(m):
    return through_a_file(jit.trace(m, (X,)), jit.save, jit.load)


def scripted(m):
    made = jit.script(m)
    made(X)
    return through_a_file(made, jit.save, jit.load)


FORMS = pytest.mark.parametrize("form", [exported, traced, scripted])


@FORMS
def test_the_state_dict_is_the_model_s(form):
    m = model()
    module = form(m)
    assert list(module.state_dict()) == list(m.state_dict())
    assert [n for n, _ in module.named_parameters()] == [n for n, _ in m.named_parameters()]
    assert module.first.weight is module.second.weight
    other = model()
    assert not module.load_state_dict(other.state_dict()).missing_keys
    clew.testing.assert_close(module(X), other(X), rtol=0, atol=0)
    other.load_state_dict(form(model()).state_dict())
    with pytest.raises(RuntimeError, match="size mismatch"):
        module.load_state_dict({**other.state_dict(), "norm.weight": clew.ones(4)})


def test_the_program_s_own_state_dict():
    m = model()
    program = through_a_file(export(m, (X,)))
    assert list(program.state_dict) == list(m.state_dict())
    names = [n for n, _ in program.named_parameters()]
    assert names == [n for n, _ in m.named_parameters()]


@FORMS
def test_assigned_tensors_are_what_is_stored(form):
    module, other = form(model()), model()
    module.load_state_dict(other.state_dict(), assign=True)
    clew.testing.assert_close(module(X), other(X), rtol=0, atol=0)
    copies = [copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    if isinstance(module, jit.ScriptModule):
        copies.append(through_a_file(module, jit.save, jit.load))
    for made in copies:
        clew.testing.assert_close(made(X), other(X), rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="other dtypes than the program's"):
        module.load_state_dict(model().double().state_dict(), assign=True)


def test_assigned_tensors_are_the_program_s():
    program, other = export(model(), (X,)), model()
    program.module().load_state_dict(other.state_dict(), assign=True)
    clew.testing.assert_close(through_a_file(program).module()(X), other(X), rtol=0, atol=0)


def test_a_parameter_that_was_replaced_is_stored():
    module = traced(model())
    module.second.bias = nn.Parameter(clew.full((3,), 9.0))
    made = through_a_file(module, jit.save, jit.load)
    clew.testing.assert_close(made(X), module(X), rtol=0, atol=0)
    assert made.second.bias.tolist() == [9.0] * 3


@FORMS
@pytest.mark.parametrize("dtype", [clew.float64, clew.bfloat16])
def test_converted_programs_run_and_are_stored(form, dtype):
    m = model()
    module = form(m).to(dtype)
    expected = m.to(dtype)(X.to(dtype))
    clew.testing.assert_close(module(X.to(dtype)), expected, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match=f"must be {dtype.name}"):
        module(X)
    for made in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        clew.testing.assert_close(made(X.to(dtype)), expected, rtol=0, atol=0)
    assert module.float()(X).dtype is clew.float32


def test_a_script_that_was_converted_after_its_first_call():
    made = jit.script(model())
    made(X)
    loaded = through_a_file(made.double(), jit.save, jit.load)
    clew.testing.assert_close(loaded(X.double()), made(X.double()), rtol=0, atol=0)


def test_methods_are_converted_with_the_module():
    class Net(nn.Linear):
        @jit.export
        def twice(self, x):
            return 2 * self(x)

    made = jit.script(Net(3, 2))
    made(X)
    made.twice(X)
    loaded = through_a_file(made, jit.save, jit.load).double()
    clew.testing.assert_close(loaded.twice(X.double()), 2 * loaded(X.double()))
    again = through_a_file(loaded, jit.save, jit.load)
    clew.testing.assert_close(again.twice(X.double()), loaded.twice(X.double()))


NAMES = """
import sys, clew
module = clew.export.load(sys.argv[1]).module()
(name, result), = module(clew.ones(5, 3)).items()
clew.save((name, result.detach(), list(module.state_dict())), sys.argv[2])
"""


def test_names_of_any_script_in_a_fresh_process(tmp_path):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.α = nn.Linear(3, 2)
            self.layers = nn.ModuleDict({"a-b": nn.Linear(2, 2), "日 本": nn.Linear(2, 2)})

        def forward(self, вход):
            y = self.α(вход)
            for k in self.layers:
                y = self.layers[k](y)
            return {"выход 😀": y}

    net, path = Net(), tmp_path / "модель 😀.clew"
    save(export(net, (X,), dynamic_shapes={"вход": {0: Dim("b")}}), path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", NAMES, str(path), str(tmp_path / "out")]
    subprocess.run(command, check=True, env=environment)
    name, result, names = clew.load(tmp_path / "out")
    assert name == "выход 😀" and names == list(net.state_dict())
    clew.testing.assert_close(result, net(clew.ones(5, 3))[name].detach())


def changed(change):
    """A file whose program.json was changed."""
    file, made = io.BytesIO(), io.BytesIO()
    save(export(model(), (X,)), file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            if member == "program.json":
                whole = json.loads(content)
                change(whole)
                content = json.dumps(whole).encode()
            new.writestr(member, content)
    made.seek(0)
    return made


def test_a_file_without_the_state_is_read():
    def older(whole):
        del whole["state"], whole["transient"]

    module = load(changed(older)).module()
    assert "norm.running_mean" in module.state_dict()
    assert "unused.weight" not in module.state_dict()
    assert module(X).shape == (2, 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w["state"].append(w["state"][0]),
        lambda w: w["state"].append(["constant", "other", 0]),
        lambda w: w["state"].append(["param", "a..b", 0]),
        lambda w: w["state"].append(["param", "other", 10_000]),
        lambda w: w["state"].append(["param", "norm.weight", 0]),
        lambda w: w["transient"].append("no such buffer"),
        lambda w: w.update(state=3),
        lambda w: w.update(version=2),
    ],
)
def test_a_state_that_is_none_is_refused(change):
    with pytest.raises(ExportError):
        load(changed(change))
