"""Programs that are recorded, changed and run again."""

import copy
import operator
import pickle

import pytest

import clew
from clew import fx, nn
from clew.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = nn.Parameter(clew.full((4,), 2.0))
        self.register_buffer("shift", clew.ones(4))
        self.unused = nn.Parameter(clew.ones(1))
        self.rest = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x, y=None, *, k=3):
        a = self.linear(x) + self.scale.unsqueeze(0) * self.shift
        a = F.dropout(F.gelu(a), p=0.5, training=False)
        a = clew.cat([a, self.rest(x)], dim=1)
        rows = a.shape[0]
        return {"out": a.view(rows, -1)[:, 1:] * k, "sum": F.layer_norm(a, (8,)).sum()}


@pytest.fixture
def pair():
    clew.manual_seed(0)
    model = Model()
    return model, fx.symbolic_trace(model), clew.randn(2, 4)


def test_a_recorded_module_does_the_same(pair):
    model, traced, x = pair
    for module in (
        traced,
        copy.deepcopy(traced),
        pickle.loads(pickle.dumps(traced)),
        fx.Transformer(traced).transform(),
        lambda v: fx.Interpreter(traced).run(v),
    ):
        got, want = module(x), model(x)
        assert clew.equal(got["out"], want["out"]) and clew.equal(got["sum"], want["sum"])
    names = dict(traced.named_parameters())
    assert "unused" not in names and names["scale"] is model.scale
    traced(x)["out"].sum().backward()
    assert model.scale.grad is not None
    assert not fx.symbolic_trace(model, {"k": 5}).graph.find_nodes(op="placeholder", target="k")


def test_tracing_leaves_modules_and_functions_as_they_were(pair):
    model, traced, x = pair
    assert F.gelu.__module__.startswith("clew") and "scale" not in model.__dict__
    before = clew.cat
    with pytest.raises(fx.proxy.TraceError, match="control flow"):
        fx.symbolic_trace(lambda v: v if v.sum() > 0 else -v)
    assert clew.cat is before and clew.equal(model(x)["out"], traced(x)["out"])
    assert type(nn.Linear(1, 1).__call__).__name__ == "method-wrapper"


def test_graphs_change(pair):
    _, traced, x = pair
    want = traced(x)["out"]
    product = traced.graph.find_nodes(op="call_function", target=operator.mul)[1]
    with traced.graph.inserting_after(product):
        other = traced.graph.call_function(operator.add, (product, 1.0))
    product.replace_all_uses_with(other)
    other.args = (product, 1.0)
    traced.graph.lint()
    traced.recompile()
    assert clew.allclose(traced(x)["out"], want + 1)
    with pytest.raises(RuntimeError, match="used by"):
        traced.graph.erase_node(product)
    other.replace_all_uses_with(product)
    assert traced.graph.eliminate_dead_code()
    traced.recompile()
    assert clew.equal(traced(x)["out"], want)
    with pytest.raises(NotImplementedError, match="mutation"):
        traced.graph.output_node().args[0]["x"] = 1


def test_arguments_named_like_builtins():
    traced = fx.symbolic_trace(lambda input, len: input - len)
    assert traced(input=3, len=1) == 2 and traced(3, 1) == 2


def test_star_arguments_and_patterns():
    def f(x, *rest, **named):
        return x + rest[0] * named["z"]

    assert fx.symbolic_trace(f)(1, 2, z=3) == 7
    traced = fx.symbolic_trace(lambda x, y: clew.relu(x + y) * clew.relu(x + y + 1))
    found = fx.replace_pattern(traced, lambda a: clew.relu(a), lambda a: clew.neg(a))
    assert len(found) == 2
    assert traced(clew.tensor(1.0), clew.tensor(2.0)) == 12


def test_a_tracer_decides_what_it_looks_into():
    class Deep(fx.Tracer):
        def is_leaf_module(self, m, name):
            return isinstance(m, nn.ReLU)

    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    graph = Deep().trace(model)
    assert [n.op for n in graph.nodes].count("get_attr") == 2
    assert len(graph.find_nodes(op="call_module")) == 1
    x = clew.randn(3, 2)
    assert clew.allclose(fx.GraphModule(model, graph)(x), model(x))


def test_operators_in_place_are_recorded_as_python_makes_them():
    class Net(nn.Module):
        def forward(self, x, y):
            x = x * 2
            x += y
            x /= 4
            return x

    traced = fx.symbolic_trace(Net())
    assert [n.name for n in traced.graph.nodes][2:5] == ["mul", "add", "truediv"]
    assert traced(clew.tensor(3.0), clew.tensor(2.0)).item() == 2.0
