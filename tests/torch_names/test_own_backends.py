"""`compile` with a backend of the program's own: the graphs that it is given, and when."""

import pytest

import clew
from clew import nn
from clew._torch import _dynamo
from clew._torch._dynamo._graphs import backends, with_backend
from clew._torch._dynamo.backends import registry


class Backend:
    """Keeps what it is given, and runs graphs as they are."""

    def __init__(self):
        self.graphs, self.shapes = [], []

    def __call__(self, module, examples):
        self.graphs.append(module)
        self.shapes.append([tuple(e.shape) for e in examples])
        return module.forward

    def steps(self, i=-1):
        nodes = self.graphs[i].graph.nodes
        return [getattr(n.target, "__name__", n.target) for n in nodes if n.op.startswith("call")]


def test_one_graph_for_each_shape():
    backend = Backend()

    def function(x, scale=2.0):
        out = x.sin() * scale + x.sum()
        return out if out.dim() == 1 else out.mT

    compiled = with_backend(function, backend)
    for x in (clew.ones(3), clew.zeros(3), clew.ones(2, 3)):
        assert compiled(x).tolist() == function(x).tolist()
    assert backend.shapes == [[(3,)], [(2, 3)]]
    assert backend.steps() == ["sin", "mul", "sum", "add", "transpose"]
    assert compiled(clew.ones(3), scale=3.0).tolist() == function(clew.ones(3), 3.0).tolist()
    assert len(backend.graphs) == 3
    assert compiled.__name__ == "function"


def test_a_model_trains_with_it():
    def losses(compiling):
        clew.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
        x, y = clew.randn(5, 4), clew.tensor([0, 1, 0, 1, 1])
        called = with_backend(model, backend) if compiling else model
        optimizer = clew.optim.SGD(model.parameters(), lr=0.1)
        found = []
        for _ in range(3):
            loss = nn.functional.cross_entropy(called(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        model.eval()
        return [*found, called(x).sum().item(), model[1].num_batches_tracked.item()]

    backend = Backend()
    assert losses(True) == pytest.approx(losses(False), abs=1e-6)
    assert len(backend.graphs) == 2  # of training and of evaluation
    assert backend.shapes[0][0] == (5, 4) and (8, 4) in backend.shapes[0]  # parameters are inputs


def test_what_the_graph_holds():
    bias = clew.ones(3)

    def function(x):
        made = clew.zeros(3)
        made[0] = x[0]
        made += clew.arange(3)
        with clew.no_grad():
            fixed = x * 2
        return {"a": made + bias, "b": (fixed, x.shape[0])}

    backend = Backend()
    compiled = with_backend(function, backend)
    x = clew.tensor([5.0, 1.0, 1.0], requires_grad=True)
    for _ in range(2):  # nothing that was made is kept from call to call
        found = compiled(x)
        assert found["a"].tolist() == [6.0, 2.0, 3.0] and found["a"].requires_grad
        assert found["b"][0].tolist() == [10.0, 2.0, 2.0] and found["b"][1] == 3
        assert not found["b"][0].requires_grad
    bias = clew.full((3,), 2.0)  # a variable is read at each call
    assert compiled(x)["a"].tolist() == [7.0, 3.0, 4.0]
    assert len(backend.graphs) == 1


def test_functions_and_random_numbers():
    class Doubles(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    backend = Backend()
    compiled = with_backend(lambda x: Doubles.apply(x) + clew.rand(2), backend)
    x = clew.ones(2, requires_grad=True)
    clew.manual_seed(0)
    drawn = clew.rand(2)
    clew.manual_seed(0)  # recording draws nothing
    found = compiled(x)
    assert (found - 2).tolist() == pytest.approx(drawn.tolist())
    assert compiled(x).tolist() != found.tolist()
    found.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_what_a_backend_makes_runs():
    def doubling(module, examples):
        return lambda *inputs: tuple(2 * t for t in module(*inputs))

    assert with_backend(lambda x: x + 1, doubling)(clew.ones(1)).item() == 4.0
    with pytest.raises(TypeError, match="must return a function; got int"):
        with_backend(lambda x: x + 1, lambda module, examples: 1)(clew.ones(1))


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2


class Keeps(nn.Module):
    def forward(self, x):
        self.last = x * 2
        return self.last


@pytest.mark.parametrize(
    "model, message",
    [
        (lambda x: x if x.sum() > 0 else -x, "__bool__ reads elements"),
        (lambda x: x * x.max().item(), "item reads elements"),
        (lambda x: x[x.nonzero()], "nonzero reads elements"),
        (lambda x: (x * 2).backward(), "backward within the function"),
        (Counts(), "sets Counts.calls"),
        (Keeps(), "sets Keeps.last"),
    ],
)
def test_refused(model, message):
    with pytest.raises(NotImplementedError, match=message):
        with_backend(model, Backend())(clew.ones(2))


def test_a_tensor_from_elsewhere_is_refused():
    holder = {"x": clew.ones(2)}
    with pytest.raises(NotImplementedError, match="no argument, not of a module"):
        with_backend(lambda x: x + holder["x"], Backend())(clew.ones(2))


def test_names_of_backends():
    backend = Backend()
    try:
        assert _dynamo.register_backend(backend, name="mine") is backend
        assert registry.lookup_backend("mine") is backend and "mine" in _dynamo.list_backends()
        assert with_backend(lambda x: x + 1, "mine")(clew.ones(1)).item() == 2.0
        assert len(backend.graphs) == 1
        with pytest.raises(AssertionError, match="duplicate name"):
            registry.register_backend(backend, name="mine")
    finally:
        backends.clear()
    with pytest.raises(NotImplementedError, match="'nope' is neither"):
        with_backend(lambda x: x, "nope")


def test_the_class_of_compiled_modules():
    model = nn.Linear(2, 2)
    assert isinstance(clew.compile(model), _dynamo.OptimizedModule)
    assert isinstance(with_backend(model, Backend()), _dynamo.OptimizedModule)
