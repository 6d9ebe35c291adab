"""Modules that programs import names from: jit, compiler, types, hub and others."""

from __future__ import annotations

import hashlib
import sys

import pytest

import clew
from clew import nn


def test_jit_returns_what_it_is_given():
    jit = clew.jit

    def f(x, y=1):
        return x + y

    assert jit.unused(f) is f and jit.export(f) is f and jit.script(dict) is dict
    assert jit.ignore(f) is f and jit.ignore()(f) is f and jit.ignore(drop=True)(f) is f
    m = nn.Linear(2, 1).eval()
    assert not jit.is_scripting() and not jit.is_tracing()
    assert jit.annotate(list[int], [1]) == [1] and jit.isinstance([1], list[int])
    assert not jit.isinstance(1, (list[int], str)) and jit.Attribute(3, int).value == 3
    assert jit.wait(jit.fork(f, clew.ones(1), y=4)).item() == 5
    for frozen in (jit.freeze(m), jit.optimize_for_inference(m)):
        given = frozen(clew.ones(2))
        assert not given.requires_grad and given == m(clew.ones(2))
        assert frozen.weight.data_ptr() == m.weight.data_ptr() and m.weight.requires_grad
    with pytest.raises(RuntimeError, match="evaluation"):
        jit.freeze(m.train())
    with pytest.raises(RuntimeError, match="jit.trace"):
        jit.save(m, "x")

    class Doubled(jit.ScriptModule):
        @jit.script_method
        def forward(self, x):
            return 2 * x

    assert Doubled()(clew.ones(1)).item() == 2


def test_compiler():
    from clew import compiler

    @compiler.disable
    def f(x):
        return x

    assert compiler.disable(reason="none")(f) is f and compiler.allow_in_graph(f) is f
    assert f(3) == 3 and not compiler.is_compiling() and compiler.list_backends() == []
    compiler.reset()


def test_names():
    import clew.autograd.variable
    import clew.functional
    import clew.optim.sparse_adam
    import clew.storage
    import clew.types

    assert clew.types._dtype is clew.dtype and isinstance(3, clew.types.Number)
    assert clew.functional.einsum is clew.einsum
    assert isinstance(clew.ones(2).untyped_storage(), clew.storage.UntypedStorage)
    assert clew.autograd.variable.Variable is clew.autograd.Variable
    assert clew.optim.sparse_adam.SparseAdam is clew.optim.SparseAdam
    with pytest.raises(AttributeError):
        clew.functional.nothing  # noqa: B018


def test_helpers_of_modules():
    from clew.nn.modules.transformer import _get_clones
    from clew.nn.modules.utils import _ntuple

    assert _ntuple(3)(2) == (2, 2, 2) and _ntuple(2)([1, 5]) == (1, 5)
    a, b = _get_clones(nn.Linear(1, 1), 2)
    assert a.weight is not b.weight and clew.equal(a.weight, b.weight)


def test_flattening():
    from clew._utils import _flatten_dense_tensors, _unflatten_dense_tensors

    parts = [clew.arange(6).reshape(2, 3), clew.tensor(7), clew.zeros(0, dtype=clew.int64)]
    flat = _flatten_dense_tensors(parts)
    assert flat.tolist() == [0, 1, 2, 3, 4, 5, 7]
    back = _unflatten_dense_tensors(flat, parts)
    assert all(clew.equal(a, b) for a, b in zip(parts, back))
    flat[0] = 9
    assert back[0][0, 0] == 9


def test_hub_keeps_weights(tmp_path, monkeypatch):
    source = tmp_path / "weights.pt"
    clew.save({"w": clew.arange(3)}, source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    named = tmp_path / f"net-{digest[:8]}.pt"
    named.write_bytes(source.read_bytes())
    monkeypatch.setattr(clew.hub, "_dir", None)
    clew.hub.set_dir(tmp_path / "hub")
    assert clew.hub.get_dir() == str(tmp_path / "hub")
    for url, options in ((source.as_uri(), {}), (named.as_uri(), {"check_hash": True})):
        got = clew.hub.load_state_dict_from_url(url, progress=False, **options)
        assert got["w"].tolist() == [0, 1, 2]
    source.unlink()  # the kept one serves
    from clew.utils import model_zoo

    assert model_zoo.load_url(source.as_uri())["w"].tolist() == [0, 1, 2]
    wrong = tmp_path / "net-00000000.pt"
    wrong.write_bytes(named.read_bytes())
    with pytest.raises(RuntimeError, match="hash"):
        clew.hub.load_state_dict_from_url(wrong.as_uri(), check_hash=True, progress=False)
    left = sorted(p.name for p in (tmp_path / "hub" / "checkpoints").iterdir())
    assert left == sorted(["weights.pt", named.name])
    monkeypatch.setattr(clew.hub, "_dir", None)
    monkeypatch.setenv("CLEW_HOME", str(tmp_path / "home"))
    assert clew.hub.get_dir() == str(tmp_path / "home" / "hub")
    with pytest.raises(NotImplementedError, match="programs"):
        clew.hub.load("someone/something", "model")


def test_hub_runs_what_lies_in_a_folder(tmp_path):
    (tmp_path / "beside_hub.py").write_text("WIDTH = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\n"
        "from beside_hub import WIDTH\n"
        "from clew import nn\n"
        "def layer(width=WIDTH, *, bias=True): return nn.Linear(WIDTH, width, bias=bias)\n"
        "number = 3\n"
    )
    before = list(sys.path)
    made = clew.hub.load(tmp_path, "layer", 5, source="local", bias=False, verbose=False)
    assert made.weight.shape == (5, 3) and made.bias is None and sys.path == before
    assert clew.hub.load(str(tmp_path), "layer", source="LOCAL").out_features == 3
    for name in ("absent", "number"):
        with pytest.raises(RuntimeError, match=f"Cannot find callable {name}"):
            clew.hub.load(tmp_path, name, source="local")
    with pytest.raises(NotImplementedError, match="does not fetch"):
        clew.hub.load("someone/something", "layer")
    with pytest.raises(ValueError, match="source must be"):
        clew.hub.load(tmp_path, "layer", source="disk")
    with pytest.raises(FileNotFoundError):
        clew.hub.load(tmp_path / "none", "layer", source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['not_there_at_all']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: not_there_at_all"):
        clew.hub.load(tmp_path, "layer", source="local")
    assert sys.path == before
