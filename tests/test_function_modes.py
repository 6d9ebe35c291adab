"""Function modes: the calls that PyTorch 2.13 shows to a TorchFunctionMode, by its names."""

from __future__ import annotations

import copy
import operator

import numpy as np
import pytest

import clew
from clew import nn, overrides
from clew.nn import functional as F
from clew.overrides import TorchFunctionMode, resolve_name


class Names(TorchFunctionMode):
    """Notes the names of what is called."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


X = clew.tensor([[1.0, 2.0], [3.0, 4.0]])
V = X[0].clone()
WHOLE = clew.tensor([[1, 2], [3, 4]])
TARGET = clew.tensor([0, 1])

# What PyTorch's TorchFunctionMode gets of each operator: of two tensors, with a number behind,
# with a number before.
OPERATORS = {
    "add": "add add add",
    "sub": "sub sub __rsub__",
    "mul": "mul mul mul",
    "floordiv": "__floordiv__ __floordiv__ __rfloordiv__",
    "mod": "remainder remainder __rmod__",
    "pow": "pow pow __rpow__",
    "and_": "__and__ __and__ bitwise_and",
    "or_": "__or__ __or__ bitwise_or",
    "xor": "__xor__ __xor__ bitwise_xor",
    "lshift": "__lshift__ __lshift__ __rlshift__",
    "rshift": "__rshift__ __rshift__ __rrshift__",
    "lt": "lt lt gt",
    "le": "le le ge",
    "gt": "gt gt lt",
    "ge": "ge ge le",
    "eq": "__eq__ __eq__ __eq__",
    "ne": "ne ne ne",
}
IN_PLACE = {
    "iadd": "add_", "isub": "sub_", "imul": "mul_", "ifloordiv": "floor_divide_",
    "imod": "remainder_", "ipow": "pow_", "iand": "__iand__", "ior": "__ior__", "ixor": "__ixor__",
    "ilshift": "__ilshift__", "irshift": "__irshift__",
}  # fmt: skip
CALLS = {
    "divide": (lambda: X / X, "div"),
    "product": (lambda: X @ X, "matmul"),
    "minus": (lambda: -X, "neg"),
    "plus": (lambda: +X, "positive"),
    "absolute": (lambda: abs(X), "abs"),
    "not": (lambda: ~WHOLE, "__invert__"),
    "truth": (lambda: bool(X[0, 0]), "__getitem__ __bool__"),
    "float": (lambda: float(X.sum()), "sum __float__"),
    "length": (lambda: len(X), "__len__"),
    "contains": (lambda: 2.0 in X, "__contains__"),
    "reversed": (lambda: reversed(X), "__reversed__"),
    "text": (lambda: repr(X), "__repr__"),
    "format": (lambda: f"{X}", "__format__"),
    "deepcopy": (lambda: copy.deepcopy(X), "__deepcopy__"),
    "turned": (lambda: X.T, "__get__"),
    "type": (lambda: X.type(clew.float64), "type"),
    "method": (lambda: X.new_zeros(2), "new_zeros"),
    "question": (lambda: X.dim(), "dim"),
    "einsum": (lambda: clew.einsum("ij,jk->ik", X, X), "einsum"),
    "meshgrid": (lambda: clew.meshgrid(V, V, indexing="ij"), "meshgrid"),
    "norm": (lambda: clew.norm(X), "norm"),
    "fft": (lambda: clew.fft.fft(X), "fft"),
    "softmax": (lambda: F.softmax(X, -1), "softmax"),
    "cross entropy": (lambda: F.cross_entropy(X, TARGET), "cross_entropy"),
    "embedding": (lambda: F.embedding(TARGET, X), "embedding"),
    "normalize": (lambda: F.normalize(X), "normalize"),
    "interpolate": (lambda: F.interpolate(X[None], scale_factor=2), "__getitem__ interpolate"),
    "max pool": (lambda: F.max_pool1d(X[None], 2), "__getitem__ max_pool1d"),
    "max pool of three dims": (lambda: F.max_pool3d(X[None, None], 1), "__getitem__ max_pool3d"),
    "mean pool": (lambda: F.adaptive_avg_pool1d(X[None], 1), "__getitem__ adaptive_avg_pool1d"),
    "linear": (lambda: F.linear(X, X), "linear"),
    "layer": (lambda: nn.Linear(2, 2), "empty empty kaiming_uniform_ uniform_"),
    "parameter": (lambda: nn.Parameter(X), ""),
    "uniform": (lambda: nn.init.uniform_(clew.empty(2)), "empty uniform_"),
    "zeros": (lambda: clew.zeros(2, 3), "zeros"),
    "tensor": (lambda: clew.tensor([1.0]), "tensor"),
    "arange": (lambda: clew.arange(3), "arange"),
    "as tensor": (lambda: clew.as_tensor([1]), "as_tensor"),
    "asarray": (lambda: clew.asarray([1]), "asarray"),
    "normal": (lambda: clew.normal(0.0, 1.0, (2,)), "normal"),
    "window": (lambda: clew.hann_window(3), "hann_window"),
    "like": (lambda: clew.rand_like(X), "rand_like"),
    "from numpy": (lambda: clew.from_numpy(np.ones(1)), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_arrive_as_pytorchs_methods(name):
    apply = getattr(operator, name)
    for operands, expected in zip(
        [(WHOLE, WHOLE), (WHOLE, 2), (2, WHOLE)], OPERATORS[name].split()
    ):
        plain = apply(*operands)
        with Names() as mode:
            got = apply(*operands)
        assert mode.seen == [expected] and got.tolist() == plain.tolist()


@pytest.mark.parametrize("name", IN_PLACE)
def test_operators_in_place(name):
    x, y = WHOLE.clone(), WHOLE.clone()
    plain = getattr(operator, name)(x, 2)
    with Names() as mode:
        got = getattr(operator, name)(y, 2)
    assert mode.seen == [IN_PLACE[name]] and got is y and got.tolist() == plain.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_calls_arrive_as_wholes(name):
    call, expected = CALLS[name]
    with Names() as mode:
        call()
    assert mode.seen == expected.split()


def test_what_is_no_operand_is_not_asked_about():
    with Names():
        assert (X == None) is False and (X != None) is True  # noqa: E711
        with pytest.raises(TypeError):
            X + object()
        assert (X + np.ones((2, 2), np.float32)).tolist() == [[2.0, 3.0], [4.0, 5.0]]


KNOWN = {
    clew.Tensor.add: "add", clew.Tensor.size: "size", clew.zeros: "zeros", clew.cat: "cat",
    F.cross_entropy: "cross_entropy", clew.Tensor.T.__get__: "T", clew.Tensor.to: "to",
}  # fmt: skip


def use_all():
    x = clew.zeros(2, 2) + 1
    x.size()
    clew.cat([x.T, x.to(clew.float32)])
    F.cross_entropy(x, TARGET)


def test_functions_are_those_that_programs_know():
    class Known(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(KNOWN[func])
            assert func is not clew.Tensor.mul and func is not clew.ones
            exact.append(
                func in (clew.cat, F.cross_entropy, clew.Tensor.T.__get__)
                or any(func is known for known in (clew.zeros, clew.Tensor.add, clew.Tensor.size))
                or func is clew.Tensor.to
            )
            return func(*args, **(kwargs or {}))

    for depth in (1, 2):
        seen, exact = [], []
        with Known():
            if depth == 2:
                with Known():
                    use_all()
            else:
                use_all()
        names = "zeros add size T to cat cross_entropy".split()
        assert seen == [name for name in names for _ in range(depth)] and all(exact)


def test_every_mode_is_asked_in_turn():
    with Names() as outer, Names() as inner:
        use_all()
        clew.Tensor.dim(X)
    assert inner.seen == outer.seen
    assert inner.seen == "zeros add size __get__ to cat cross_entropy dim".split()


def test_modes_leave_everything_as_it_was():
    before, names = dict(vars(clew)), dict(vars(clew.Tensor))
    with Names():
        assert {"zeros", "tensor"} <= set(dir(clew))
        with pytest.raises(ZeroDivisionError), Names():
            raise ZeroDivisionError
        clew.zeros(1)
    assert {n: v for n, v in vars(clew).items() if n in before} == before
    assert clew.zeros is before["zeros"] and clew.Tensor.dim is names["dim"]
    assert clew.Tensor.__add__ is names["__add__"] and vars(clew.Tensor)["T"] is names["T"]


def test_another_threads_calls_are_its_own():
    import threading

    def work():
        found.append(clew.zeros(2).sum().item())
        found.append(clew.zeros is own)

    found, own = [], clew.zeros
    with Names() as mode:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert mode.seen == [] and found == [0.0, True]


class NoInit(TorchFunctionMode):
    """Makes modules without filling their parameters, as libraries do."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if str(getattr(func, "__module__", None)).endswith("nn.init"):
            return kwargs["tensor"] if "tensor" in (kwargs or {}) else args[0]
        return func(*args, **(kwargs or {}))


def test_initialization_can_be_left_out():
    state = clew.get_rng_state()
    with NoInit():
        nn.Sequential(nn.Linear(3, 3), nn.Conv2d(3, 3, 3), nn.Embedding(3, 3))
    assert clew.equal(state, clew.get_rng_state())
    nn.Linear(3, 3)
    assert not clew.equal(state, clew.get_rng_state())


def test_a_mode_that_makes_tensors_elsewhere():
    class OnMeta(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if func in MAKE and kwargs.get("device") is None:
                kwargs["device"] = "meta"
            return func(*args, **kwargs)

    MAKE = {clew.empty, clew.rand, clew.zeros, clew.ones, clew.tensor, clew.full}
    with OnMeta():
        net = nn.Linear(100, 100)
        assert net(clew.rand(3, 100)).device.type == "meta"
        assert clew.tensor([1.0]).is_meta and clew.zeros(2, device="cpu").device.type == "cpu"


def test_names_of_functions():
    assert resolve_name(clew.Tensor.add) == "clew.Tensor.add"
    assert resolve_name(clew.add) == "clew.add" and resolve_name(clew.zeros) == "clew.zeros"
    assert resolve_name(F.cross_entropy) == "clew.nn.functional.cross_entropy"
    assert resolve_name(nn.init.uniform_) == "clew.nn.init.uniform_"
    assert resolve_name(clew.linalg.norm) == "clew.linalg.norm"
    assert resolve_name(clew.fft.fft) == "clew.fft.fft"
    assert resolve_name(clew.Tensor.T.__get__) == "clew.Tensor.T.__get__"
    assert resolve_name(clew.Tensor.shape.__get__) == "clew.Tensor.shape.__get__"
    assert resolve_name(lambda: None) is None and resolve_name(3) is None

    class Resolved(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(resolve_name(func))
            return func(*args, **(kwargs or {}))

    seen = []
    with Resolved():
        use_all()
    assert seen == [
        "clew.zeros", "clew.Tensor.add", "clew.Tensor.size", "clew.Tensor.T.__get__",
        "clew.Tensor.to", "clew.cat", "clew.nn.functional.cross_entropy",
    ]  # fmt: skip


def test_classes_get_functions_as_wholes():
    class Logged(clew.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    seen: list = []
    x = X.as_subclass(Logged)
    seen.clear()
    calls = [
        lambda: F.cross_entropy(x, TARGET), lambda: F.softmax(x, 0), lambda: F.normalize(x),
        lambda: clew.fft.fft(x), lambda: F.max_pool1d(x, 2), lambda: F.embedding(TARGET, x),
    ]  # fmt: skip
    for call in calls:
        assert type(call()) is Logged
    assert seen == [
        F.cross_entropy, F.softmax, F.normalize, clew.fft.fft, F.max_pool1d, F.embedding
    ]  # fmt: skip


def test_modes_are_found():
    with Names() as mode:
        assert overrides._get_current_function_mode() is mode
        assert overrides._get_current_function_mode_stack() == [mode]
    assert overrides._get_current_function_mode() is None


def test_files_and_points_are_read_on_the_cpu_whatever_the_default_device():
    import io

    file = io.BytesIO()
    clew.save({"x": X, "net": nn.Linear(2, 2)}, file)
    clew.set_default_device("meta")
    try:
        file.seek(0)
        read = clew.load(file, weights_only=False)
        points = clew.quasirandom.SobolEngine(2, scramble=True, seed=1).draw(2)
        whole = clew.LongTensor([1, 2])
        assert clew.zeros(1).is_meta and clew.FloatTensor(2).device.type == "cpu"
    finally:
        clew.set_default_device(None)
    assert read["x"].tolist() == X.tolist() and read["net"].weight.device.type == "cpu"
    assert points.device.type == "cpu" and whole.tolist() == [1, 2]


def test_classes_that_are_no_tensors_take_grad_over():
    class Pair:
        """Two tensors that are differentiated together."""

        def __init__(self, *parts):
            self.parts = parts

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            assert func is clew.autograd.grad and types == (cls,)
            own = [list(a.parts) if isinstance(a, cls) else a for a in args]
            return cls(*func(*own, **(kwargs or {})))

    x, y = clew.ones(2, requires_grad=True), clew.ones(1, requires_grad=True)
    made = clew.autograd.grad(Pair((x * 3).sum(), (y**2).sum()), Pair(x, y), allow_unused=True)
    assert type(made) is Pair and [g.tolist() for g in made.parts] == [[3.0, 3.0], [2.0]]
    with Names() as mode:
        clew.autograd.grad((x * 3).sum(), x)
    assert mode.seen == ["mul", "sum", "grad"]
