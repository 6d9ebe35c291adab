"""Operations that a program adds (clew.library) in exported programs: one call each."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import clew
from clew import library, nn
from clew.export import Dim, ExportError, export, load, save


@library.custom_op("export_added::scaled", mutates_args=())
def scaled(x: clew.Tensor, by: float = 2.0) -> clew.Tensor:
    return clew.from_numpy(x.detach().numpy() * by)


scaled.register_fake(lambda x, by=2.0: clew.empty_like(x))
scaled.register_autograd(
    lambda ctx, g: (g * ctx.by, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x):
        return scaled(self.inner(x), by=4.0).relu()


def calls(program):
    return [node.op for node in program.graph.nodes]


@pytest.mark.parametrize("batch", [None, Dim("batch")])
def test_one_call_with_its_gradient(batch, tmp_path):
    clew.manual_seed(0)
    model = Model()
    program = export(model, (clew.randn(4, 3),), dynamic_shapes=batch and ({0: batch},))
    assert calls(program) == ["nn.functional.linear", "export_added::scaled", "relu"]
    rows = 4 if batch is None else "?"
    assert f"scaled: float32[{rows}, 2] = export_added::scaled(linear, by=4.0)" in str(program)
    save(program, tmp_path / "p.clew")
    x = clew.randn(4 if batch is None else 7, 3)
    for made in (program, load(tmp_path / "p.clew")):
        assert calls(made) == calls(program)
        module = made.module()
        assert clew.equal(module(x), model(x))
        model.zero_grad()
        model(x).sum().backward()
        wanted = model.inner.weight.grad.clone()
        module.zero_grad()
        module(x).sum().backward()
        assert clew.equal(dict(module.named_parameters())["inner.weight"].grad, wanted)


def test_a_file_where_nobody_registered_it(tmp_path):
    path = tmp_path / "p.clew"
    save(export(Model(), (clew.ones(4, 3),)), path)
    program = """
        import sys, clew
        try:
            clew.export.load(sys.argv[1])
        except clew.export.ExportError as error:
            print(error)
        import clew.library
        clew.library.define("export_added::scaled", "(Tensor x, float by=2.0) -> Tensor")
        clew.library.impl("export_added::scaled", "cpu", lambda x, by: 0 * x + by)
        print(clew.export.load(sys.argv[1]).module()(clew.ones(4, 3)).tolist()[0])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(clew.__file__).parent.parent)},
        timeout=120,
    )
    first, second = done.stdout.splitlines()
    assert "the operation export_added::scaled, which this process has not registered" in first
    assert second == "[4.0, 4.0]"


@library.custom_op("export_added::places", mutates_args=())
def places(x: clew.Tensor) -> clew.Tensor:
    return x.nonzero()


@pytest.mark.parametrize("rule", [False, True])
def test_sizes_that_data_decides(rule):
    def fake(x):
        return x.new_empty([library.get_ctx().new_dynamic_size(), 1], dtype=clew.int64)

    clew.ops.export_added.places._fake = fake if rule else None

    class Places(nn.Module):
        def forward(self, x):
            return places(x).float() * 2

    program = export(Places(), (clew.tensor([1.0, 0.0, 2.0]),))
    assert calls(program)[0] == "export_added::places"
    for values in ([1.0, 1, 1], [0.0, 0, 5], [0.0, 0, 0]):
        want = 2 * np.argwhere(np.array(values))
        assert program.module()(clew.tensor(values)).tolist() == want.tolist()


@library.custom_op("export_added::raise_by", mutates_args=("x",))
def raise_by(by: float, x: clew.Tensor) -> None:
    x += by


class Writes(nn.Module):
    def forward(self, x):
        y = x * 2
        if y.sum() > 0:
            raise_by(1.0, y)
        for _ in range(x.shape[0]):
            raise_by(0.5, y)
        return y


def test_writes_in_branches_and_loops():
    program = export(Writes(), (clew.tensor([1.0, 2.0, 3.0]),), dynamic_shapes=({0: Dim("n")},))
    module = program.module()
    for values in ([1.0, 1.0], [-1.0, -1.0, -1.0, 1.0]):
        assert clew.equal(module(clew.tensor(values)), Writes()(clew.tensor(values)))


def test_several_results_and_others():
    @library.custom_op("export_added::both", mutates_args=())
    def both(x: clew.Tensor) -> tuple[clew.Tensor, clew.Tensor]:
        return x + 1, x.sum()

    @library.custom_op("export_added::with_number", mutates_args=())
    def with_number(x: clew.Tensor) -> tuple[clew.Tensor, int]:
        return x + 1, 3

    class Both(nn.Module):
        def forward(self, x):
            a, b = both(x)
            return a * b

    class WithNumber(nn.Module):
        def forward(self, x):
            return with_number(x)[0]

    x = clew.tensor([1.0, 2.0])
    assert export(Both(), (x,)).module()(x).tolist() == [6, 9]
    with pytest.raises(ExportError, match="with_number gives more than tensors"):
        export(WithNumber(), (x,))


def test_onnx_writes_the_parts():
    pytest.importorskip("onnx")
    lib = library.Library("export_parts", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: 2 * x, "CompositeImplicitAutograd")

    class Twice(nn.Module):
        def forward(self, x):
            return clew.ops.export_parts.twice(x) + 1

    made = clew.onnx.export(Twice(), (clew.ones(2),))
    assert {"Mul", "Add"} <= {node.op_type for node in made.model_proto.graph.node}
