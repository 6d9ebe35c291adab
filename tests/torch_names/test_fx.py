"""Programs that are recorded, changed and run again."""

import copy
import gc
import linecache
import operator
import pickle
import traceback

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


def test_arguments_that_the_program_was_recorded_with():
    def function(x, double, shift=None):
        return x * 2 if double else x if shift is None else x + shift

    traced = fx.symbolic_trace(function, concrete_args={"double": True, "shift": None})
    assert [n.target for n in traced.graph.find_nodes(op="placeholder")] == [
        "x",
        "double_1",
        "shift_2",
    ]
    traced.graph.eliminate_dead_code()
    traced.recompile()
    x = clew.tensor(3.0)
    assert traced(x, True).item() == traced(x, True, None).item() == 6.0
    with pytest.raises(AssertionError, match="double has been specialized to have value True"):
        traced(x, False)
    with pytest.raises(AssertionError, match="shift has been specialized to have value None"):
        traced(x, True, 1.0)


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


def test_a_trace_that_is_written_elsewhere():
    """As PyTorch Geometric's: the parts of a trace, put together by a subclass."""
    from clew._torch import _more

    class Leaf:
        """No module, whose calls are steps all the same."""

        def __call__(self, x):
            raise AssertionError("is not looked into")

    part = {
        name: _more.find("fx._symbolic_trace", name)
        for name in "_Patcher _orig_module_call _orig_module_getattr _patch_wrapped_functions "
        "_autowrap_check compatibility FunctionType ScriptObject".split()
    }

    class Tracer(fx.Tracer):
        def is_leaf_module(self, module, name):
            return not isinstance(module, nn.Sequential)

        @part["compatibility"](is_backward_compatible=True)
        def trace(self, root, concrete_args=None):
            self.root = root
            self.submodule_paths = {m: n for n, m in root.named_modules()}
            self.graph = fx.Graph(tracer_cls=type(self))
            assert isinstance(type(root).forward, part["FunctionType"])
            function, args = self.create_args_for_root(type(root).forward, True, concrete_args)

            def attribute(module, name):
                return self.getattr(name, part["_orig_module_getattr"](module, name), {})

            def call(module, *args, **kwargs):
                def forward(*args, **kwargs):
                    return part["_orig_module_call"](module, *args, **kwargs)

                return self.call_module(module, forward, args, kwargs)

            def leaf(self_, *args):
                return self.create_proxy("call_function", Leaf.__call__, (self_, *args), {})

            with part["_Patcher"]() as patcher:
                patcher.patch_method(nn.Module, "__getattr__", attribute, deduplicate=False)
                patcher.patch_method(nn.Module, "__call__", call, deduplicate=False)
                part["_patch_wrapped_functions"](patcher)
                part["_autowrap_check"](patcher, globals(), self._autowrap_function_ids)
                for module in self._autowrap_search:
                    part["_autowrap_check"](patcher, vars(module), self._autowrap_function_ids)
                result = function(*args)
                self.create_node("output", "output", (self.create_arg(result),), {})
            return self.graph

    clew.manual_seed(0)
    model, x = Model(), clew.randn(2, 4)
    before = (nn.Module.__call__, F.dropout, clew.cat, F.layer_norm)
    graph = Tracer().trace(model)
    assert (nn.Module.__call__, F.dropout, clew.cat, F.layer_norm) == before
    got, want = fx.GraphModule(model, graph)(x), model(x)
    assert clew.equal(got["out"], want["out"]) and clew.equal(got["sum"], want["sum"])
    called = {n.target for n in graph.nodes if n.op in ("call_module", "call_function")}
    assert {"linear", "rest.0", F.dropout, clew.cat} <= called and "rest" not in called
    assert {n.target for n in graph.nodes if n.op == "get_attr"} == {"scale", "shift"}


def test_what_a_local_tracer_recorded_is_pickled():
    class Tracer(fx.Tracer):
        pass

    model, x = Model(), clew.ones(2, 4)
    made = fx.GraphModule(model, Tracer().trace(model))
    again = pickle.loads(pickle.dumps(made))
    assert clew.equal(again(x)["out"], model(x)["out"])
    assert made.graph._tracer_cls is Tracer and copy.deepcopy(made).graph._tracer_cls is Tracer
    kept = fx.symbolic_trace(model)
    assert pickle.loads(pickle.dumps(kept)).graph._tracer_cls is fx.Tracer


def test_functions_and_methods_are_others_only_for_a_while():
    from clew._torch._more.fx__symbolic_trace import _Patcher

    class Base:
        def f(self):
            return 1

    class Sub(Base):
        pass

    space = {"g": len}
    with pytest.raises(KeyError), _Patcher() as patcher:
        patcher.patch_method(Sub, "f", lambda self: 2)
        patcher.patch_method(Base, "f", lambda self: 3)
        patcher.patch(space, "g", lambda: 4)
        patcher.patch(space, "g", lambda: 5)  # was replaced already
        patcher.patch(space, "h", lambda: 6)
        assert (Sub().f(), Base().f(), space["g"](), space["h"]()) == (2, 3, 4, 6)
        assert patcher.visit_once(space) and not patcher.visit_once(space)
        raise KeyError
    assert "f" not in vars(Sub) and Base().f() == 1 and space == {"g": len}


def test_source_and_text_name_functions_as_programs_do():
    traced = fx.symbolic_trace(lambda x, y: F.gelu(clew.relu(x) * clew.cat([x, y])))
    lines = [line.strip() for line in traced.code.splitlines() if line.strip()]
    assert lines == [
        "def forward(self, x, y):",
        "relu = clew.relu(x)",
        "cat = clew.cat([x, y]);  x = y = None",
        "mul = relu * cat;  relu = cat = None",
        "gelu = clew.nn.functional.gelu(mul);  mul = None",
        "return gelu",
    ]
    assert str(traced.graph).splitlines()[3:] == [
        "    %relu : [num_users=1] = call_function[target=clew.relu](args = (%x,), kwargs = {})",
        "    %cat : [num_users=1] = call_function[target=clew.cat]"
        "(args = ([%x, %y],), kwargs = {})",
        "    %mul : [num_users=1] = call_function[target=operator.mul]"
        "(args = (%relu, %cat), kwargs = {})",
        "    %gelu : [num_users=1] = call_function[target=clew.nn.functional.gelu]"
        "(args = (%mul,), kwargs = {})",
        "    return gelu",
    ]
    x = clew.ones(1)
    assert clew.equal(pickle.loads(pickle.dumps(traced))(x, x), traced(x, x))
    # An argument that is called as the library is does not hide it.
    graph = fx.Graph()
    given = graph.placeholder("clew")
    graph.output(graph.call_function(clew.relu, (given,)))
    assert fx.GraphModule({}, graph)(-x).item() == 0


def test_the_class_of_a_graph_module_has_pytorchs_name():
    made = fx.symbolic_trace(nn.Linear(1, 1))
    assert "GraphModuleImpl" in str(type(made)) and type(made).__name__ == "Linear"
    assert type(copy.deepcopy(made)).__name__ == "Linear"
    assert pickle.loads(pickle.dumps(made)).code == made.code


def test_functions_of_the_program_itself_keep_their_names():
    def low(x):
        return x

    low.__module__, low.__qualname__ = "__main__", "low"
    graph = fx.Graph()
    graph.output(graph.call_function(low, (graph.placeholder("x"),)))
    traced = fx.GraphModule({}, graph)
    assert "low = __main___low(x)" in traced.code
    assert "call_function[target=__main__.low](args = (%x,)" in str(graph)
    assert traced(3) == 3


def test_a_table_of_the_steps(capsys):
    class Model(clew.nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = clew.nn.ReLU()

        def forward(self, x):
            return self.relu(x)

    fx.Tracer().trace(Model()).print_tabular()
    assert capsys.readouterr().out.splitlines() == [
        "opcode       name    target    args     kwargs",
        "-----------  ------  --------  -------  --------",
        "placeholder  x       x         ()       {}",
        "call_module  relu    relu      (x,)     {}",
        "output       output  output    (relu,)  {}",
    ]


def test_marks_of_the_profiler_are_steps():
    """As a tracer records them that looks into `record_function`."""
    ops = clew.ops.profiler

    class Traced(fx.Tracer):
        def trace(self, root, concrete_args=None):
            graph = super().trace(root, concrete_args)
            first = next(n for n in graph.nodes if n.op == "call_function")
            with graph.inserting_before(first):
                mark = graph.call_function(ops._record_function_enter, ("part", "2"))
            with graph.inserting_after(first):
                graph.call_function(ops._record_function_exit, (mark,))
            return graph

    tracer = Traced()
    graph = tracer.trace(lambda x: clew.relu(x))
    marked = fx.GraphModule(tracer.root, graph)
    assert marked(clew.tensor([-1.0, 2.0])).tolist() == [0, 2]  # with nobody recording
    with clew.autograd.profiler.profile() as recorded:
        marked(clew.ones(2))
    names = [event.name for event in recorded.function_events]
    assert names.index("part(2)") < names.index("relu")
    with pytest.raises(AttributeError, match="no such operation"):
        ops.absent(1)


def test_the_text_of_a_graph_and_its_code():
    def f(x):
        y = getattr(x, "shape")[0]  # noqa: B009
        return x.view(y, -1)[..., None], clew.einsum("ij->ji", x).to(clew.float64)

    traced = fx.symbolic_trace(f)
    assert str(traced.graph).splitlines()[2:8] == [
        "    %getattr_1 : [num_users=1] = call_function[target=builtins.getattr]"
        "(args = (%x, shape), kwargs = {})",
        "    %getitem : [num_users=1] = call_function[target=operator.getitem]"
        "(args = (%getattr_1, 0), kwargs = {})",
        "    %view : [num_users=1] = call_method[target=view]"
        "(args = (%x, %getitem, -1), kwargs = {})",
        "    %getitem_1 : [num_users=1] = call_function[target=operator.getitem]"
        "(args = (%view, (Ellipsis, None)), kwargs = {})",
        "    %einsum : [num_users=1] = call_function[target=clew.einsum]"
        "(args = (ij->ji, %x), kwargs = {})",
        "    %to : [num_users=1] = call_method[target=to]"
        "(args = (%einsum, clew.float64), kwargs = {})",
    ]
    assert "getitem_1 = view[(Ellipsis, None)];" in traced.code
    assert "to = einsum.to(clew.float64);" in traced.code
    first, second = traced(clew.ones(2, 3))
    assert first.shape == (2, 3, 1) and second.dtype is clew.float64
    # A graph may have a step of the package's name.
    graph = fx.Graph()
    x = graph.placeholder("clew")
    graph.output(graph.call_method("to", (x, clew.float64)))
    assert fx.GraphModule(clew.nn.Module(), graph)(clew.ones(2)).dtype is clew.float64


def test_the_source_of_a_module_goes_with_it():
    def source_of(module):
        return linecache.getlines(type(module).forward.__code__.co_filename)

    module = fx.symbolic_trace(nn.Linear(2, 2))
    gc.collect()
    before = len(linecache.cache)
    for _ in range(10):
        module.recompile()
        fx.symbolic_trace(nn.Linear(2, 2))
    gc.collect()
    assert len(linecache.cache) == before
    assert any("def forward" in line for line in source_of(module))
    with pytest.raises(RuntimeError) as caught:
        module(clew.ones(3))
    want = source_of(module)
    del module
    gc.collect()
    # What a traceback needs stays as long as that does.
    assert any(line.strip() and line in "".join(want) for line in traceback_lines(caught.value))


def traceback_lines(error):
    return [f.line for f in traceback.extract_tb(error.__traceback__) if "eval_with" in f.filename]
