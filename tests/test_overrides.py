"""__torch_function__ of tensors' subclasses and of classes that are no tensors."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import pickle
import subprocess
import sys
import types
import weakref
from typing import Any, ClassVar

import numpy as np
import pytest

import clew
from clew import _C, overrides


class Logged(clew.Tensor):
    """Notes what is called; results are of its class."""

    calls: ClassVar[list] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.fixture
def x():
    made = clew.tensor([1.0, 2.0]).as_subclass(Logged)
    Logged.calls.clear()
    return made


def test_operators_methods_and_functions_arrive(x):
    for f, name in [
        (lambda: x + 1, "add"),
        (lambda: 1 + x, "add"),
        (lambda: clew.ones(2) + x, "add"),
        (lambda: 1 - x, "__rsub__"),
        (lambda: x @ x, "matmul"),
        (lambda: -x, "neg"),
        (lambda: x > 1, "gt"),
        (lambda: x == 1, "__eq__"),
        (lambda: x[0], "__getitem__"),
        (lambda: x.sum(), "sum"),
        (lambda: x.quantile(0.5), "quantile"),
        (lambda: clew.add(x, 1), "add"),
        (lambda: clew.add(clew.ones(2), other=x), "add"),
        (lambda: clew.stack([clew.ones(2), x]), "stack"),
        (lambda: clew.nn.functional.gelu(x), "gelu"),
    ]:
        Logged.calls.clear()
        assert type(f()) is Logged and Logged.calls == [name]
    Logged.calls.clear()
    assert x.tolist() == [1.0, 2.0] and len(x) == 2 and x.size() == (2,)
    assert Logged.calls == ["tolist", "__len__", "size"]
    assert type(x.max(0)).__name__ == "max" and type(x.max(0).values) is Logged
    assert type(x.unsqueeze(0).mT) is Logged
    x[0] = 5.0
    x += 1
    assert type(x) is Logged and x.tolist() == [6.0, 3.0]
    assert {x: 1}[x] == 1


def test_gradients_flow_through(x):
    w = clew.ones(2, requires_grad=True)
    y = (w * x).sum()
    assert type(y) is Logged
    y.backward()
    assert w.grad.tolist() == [1.0, 2.0]


def test_only_their_own_methods_are_theirs(x):
    class Times(Logged):
        calls: ClassVar[list] = []

        def double(self):
            return self * 2

        def sum(self):
            return "mine"

    t = clew.ones(2).as_subclass(Times)
    assert type(t.double()) is Times and t.sum() == "mine"
    assert type(t + x) is Times  # the subclass is asked first
    with clew.DisableTorchFunctionSubclass():
        assert not overrides.has_torch_function((x,))
        assert type(x + 1) is clew.Tensor and type(clew.add(x, 1)) is clew.Tensor
    assert overrides.has_torch_function((x,)) and not overrides.has_torch_function((clew.ones(1),))


def test_parameters_and_closed_subclasses_are_left_alone():
    class Closed(clew.Tensor):
        __torch_function__ = clew._C._disabled_torch_function_impl

    t = clew.ones(2).as_subclass(Closed)
    assert type(t + 1) is clew.Tensor and type(clew.add(t, 1)) is clew.Tensor
    for kind in (clew.nn.Parameter, clew.nn.Buffer):
        p = kind(clew.ones(2))
        assert type(p * 2) is clew.Tensor and not overrides.has_torch_function((p,))


class Duck:
    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ not in ("add", "sub", "cat", "sum"):
            return NotImplemented
        return func.__name__, [t.__name__ for t in types], len(args), kwargs


def test_classes_that_are_no_tensors():
    d, t = Duck(3), clew.ones(1)
    for f in (operator.add, clew.add, lambda a, b: clew.Tensor.add(t, d)):
        assert f(d, t) == ("add", ["Duck"], 2, {}) and f(t, d) == ("add", ["Duck"], 2, {})
    assert (t - d)[0] == "sub" and clew.cat([t, d])[0] == "cat"
    assert clew.sum(d, dim=0) == ("sum", ["Duck"], 1, {"dim": 0})
    assert overrides.is_tensor_like(d) and not overrides.is_tensor_like(3)
    with pytest.raises(TypeError, match="no implementation"):
        clew.mul(d, t)
    with pytest.raises(TypeError, match="must be Tensor"):
        clew.add(Duck, 1)  # a class, not an instance
    with pytest.raises(TypeError):
        t + object()


def test_functions_written_in_python():
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def f(a, b=None):
        return "plain"

    assert f(1) == "plain" and f(clew.ones(1)) == "plain"
    with pytest.raises(TypeError, match="no implementation"):
        f(1, b=Duck(1))
    with pytest.raises(ZeroDivisionError):

        class Failing:
            @classmethod
            def __torch_function__(cls, *args):
                return 1 / 0

        clew.add(Failing(), 1)


def test_results_with_names_can_be_pickled():
    for made in (clew.max(clew.ones(2, 2), 0), clew.sort(clew.ones(2)), clew.aminmax(clew.ones(2))):
        back = pickle.loads(pickle.dumps(made))
        assert type(back) is type(made) and all(clew.equal(a, b) for a, b in zip(made, back))
        assert type(copy.deepcopy(made)) is type(made)
    a = clew.sort(clew.ones(2))
    assert type(clew.sort(clew.ones(2), stable=True)) is type(a) is clew.return_types.sort
    assert clew.return_types.kthvalue.__name__ == "kthvalue"
    with pytest.raises(AttributeError):
        clew.return_types.nothing  # noqa: B018


def test_a_fresh_process_reads_a_pickled_result(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(clew.median(clew.tensor([[3.0, 1.0, 2.0]]), 1)))
    code = f"import pickle; print(pickle.load(open({str(path)!r}, 'rb')).values.item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "2.0", done.stderr


class Plain(clew.Tensor):
    """Says nothing about calls."""


def test_results_of_a_subclass_are_of_the_subclass():
    x = clew.tensor([1.0, 2.0], requires_grad=True).as_subclass(Plain)
    for f in [
        lambda: x + 1,
        lambda: 1 - x,
        lambda: x[0],
        lambda: x.sum(),
        lambda: x.detach(),
        lambda: clew.exp(x),
        lambda: clew.cat([x, clew.ones(2)]),
        lambda: clew.ones(2) * x,
        lambda: clew.nn.Parameter(clew.ones(2)) * x,
        lambda: clew.nn.functional.softmax(x, 0),
    ]:
        assert type(f()) is Plain
    assert all(type(part) is Plain for part in [*x.split(1), *x])
    likes = [clew.zeros_like, clew.empty_like, clew.rand_like, clew.randn_like]
    assert all(type(like(x)) is Plain for like in likes)
    assert type(clew.full_like(x, 3)) is type(clew.randint_like(x, 9)) is Plain
    x.data = x.data * 2
    assert type(x.data) is Plain and x.tolist() == [2.0, 4.0]
    assert type(x.tolist()) is list and type(x.size()) is clew.Size
    assert type(clew.ones(2) + 1) is clew.Tensor
    y = (x * x).sum()
    y.backward()
    assert type(y) is Plain


def test_where_pytorchs_programs_look_for_it():
    assert clew._C.DisableTorchFunctionSubclass is overrides.DisableTorchFunctionSubclass
    with pytest.raises(AttributeError, match="'clew._C' has no attribute 'nothing'"):
        _ = clew._C.nothing
    x = clew.ones(2).as_subclass(Plain)
    with clew._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is clew.Tensor


def test_two_subclasses_that_are_not_related():
    class Other(clew.Tensor):
        pass

    with pytest.raises(TypeError, match="no implementation found"):
        clew.ones(2).as_subclass(Other) + clew.ones(2).as_subclass(Plain)


class Reflecting:
    """No tensor and no number, but it knows what to do with one on its left."""

    def __radd__(self, other):
        return "added"

    __rmul__ = __rmatmul__ = __rpow__ = __radd__

    def __eq__(self, other):
        return "compared"

    __hash__ = None


def test_operators_leave_what_they_do_not_know_to_the_other_operand():
    x = clew.ones(2).as_subclass(Plain)
    one = Reflecting()
    assert x + one == x * one == x @ one == x**one == "added"
    assert (x == one) == "compared"
    assert (x == None) is False and (x != None) is True  # noqa: E711
    assert (x == "a") is False and x in [None, x]
    assert [1, 2] * clew.tensor(2).as_subclass(Plain) == [1, 2, 1, 2]
    with pytest.raises(TypeError, match="unsupported operand"):
        x + object()
    n = np.array([1.0, 2.0], dtype=np.float32)
    for got in (x + n, x * n, x - n, x / n, x**n):
        assert type(got) is Plain
    x += n
    assert type(x) is Plain and x.tolist() == [2.0, 3.0]


def test_results_that_are_named():
    x = clew.eye(2).as_subclass(Plain)
    for got in (x.svd(), x.qr(), x.slogdet(), clew.linalg.qr(x), clew.linalg.eigh(x)):
        assert all(type(part) is Plain for part in got) and got._fields
    assert type(clew.linalg.inv(x)) is type(clew.linalg.solve(x, x)) is Plain
    assert type(clew.fft.fft(x)) is Plain


def test_classes_that_opt_out_below_one_that_does_not():
    class Out(Plain):
        __torch_function__ = clew._C._disabled_torch_function_impl

    class Both(Plain, clew.nn.Parameter):
        __torch_function__ = clew._C._disabled_torch_function_impl

    for x in (clew.ones(2, 2).as_subclass(Out), Both(clew.ones(2, 2))):
        for got in (x + 1, x.sum(), x[0], x.T, 1 - x, x == x):
            assert type(got) is clew.Tensor
        assert "1., 1." in repr(x)


def test_methods_that_call_those_of_their_base():
    class Calls(clew.Tensor):
        def __getitem__(self, index):
            return super().__getitem__(index)

        def __add__(self, other):
            return super().__add__(other)

        def __neg__(self):
            return super().__neg__()

        def __eq__(self, other):
            return super().__eq__(other)

    x = clew.ones(2).as_subclass(Calls)
    for got in (x[0], x + 1, x + x, -x, x == 1, clew.Tensor.__add__(x, 1), clew.ones(2)[x > 0]):
        assert type(got) is Calls


def test_a_list_that_holds_itself():
    class Other(clew.Tensor):
        pass

    endless: list = []
    endless.append(endless)
    with pytest.raises((TypeError, RecursionError)):
        clew.cat(endless)


def test_a_causal_bias_does_not_spread():
    from clew.nn.attention.bias import causal_lower_right

    q = clew.ones(1, 1, 2, 2)
    bias = causal_lower_right(2, 2)
    got = clew.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=bias)
    assert type(got) is clew.Tensor


class Operator:
    """No tensor: notes which function of the library was called."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, args, kwargs


@pytest.mark.parametrize(
    "name",
    "linalg.cholesky linalg.eigh linalg.solve linalg.svd linalg.qr linalg.solve_triangular "
    "linalg.inv linalg.det logdet cholesky inverse pinverse clone detach equal numel diff cdist "
    "quantile unique complex isin stft tensordot trace trapz unsafe_chunk as_strided_scatter "
    "t_copy layer_norm embedding_bag nn.functional.grid_sample nn.functional.ctc_loss "
    "nn.functional.soft_margin_loss nn.functional.triplet_margin_loss nn.functional.max_unpool2d "
    "nn.functional.fractional_max_pool3d".split(),
)
def test_functions_written_in_python_ask_classes_that_are_no_tensors(name):
    function = operator.attrgetter(name)(clew)
    one, x = Operator(), clew.ones(2, 2)
    second = name in "linalg.solve linalg.solve_triangular equal cdist complex isin tensordot"
    args = (one, x) if second else (one,)
    assert function(*args) == (function, args, {})
    if second:
        assert function(x, one) == (function, (x, one), {})


def test_lists_and_named_arguments_are_asked_too():
    one, x = Operator(), clew.ones(2, 2)
    assert clew.linalg.multi_dot([one, x])[0] is clew.linalg.multi_dot
    assert clew.linalg.solve(x, B=one, left=False)[2] == {"B": one, "left": False}
    assert clew.clone(one, memory_format=clew.preserve_format)[2] == {
        "memory_format": clew.preserve_format
    }
    with clew.DisableTorchFunctionSubclass(), pytest.raises(TypeError, match="must be Tensor"):
        clew.linalg.cholesky(one)


def test_functions_written_in_python_keep_a_subclass(x):
    a = (clew.eye(2) * 4).as_subclass(Logged)
    Logged.calls.clear()
    assert type(clew.linalg.cholesky(a)) is Logged and Logged.calls == ["cholesky"]


def test_functions_that_ask_look_like_functions_of_python() -> None:
    f = clew.nn.functional.cross_entropy
    assert isinstance(f, types.FunctionType) and inspect.isfunction(f)
    assert f.__name__ == f.__qualname__ == "cross_entropy"
    assert f.__module__ == f.__wrapped__.__module__
    assert f.__doc__ and f.__code__.co_name == "cross_entropy"
    assert repr(f).startswith("<function cross_entropy at 0x")
    assert "label_smoothing" in inspect.signature(f).parameters
    assert "def cross_entropy(" in inspect.getsource(f)
    assert f.__kwdefaults__ is None and f.__defaults__
    assert pickle.loads(pickle.dumps(f)) is f
    assert copy.copy(f) is copy.deepcopy(f) is f
    assert weakref.ref(f)() is f
    assert {f: 1}[f] == 1
    assert functools.partial(f, reduction="sum").func is f
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = f.nothing
    f.mark = 3  # as on any function
    assert f.__dict__.pop("mark") == 3


def test_functions_that_ask_are_methods_in_classes() -> None:
    class Scores:
        normalized = clew.nn.functional.normalize

        def __torch_function__(self, *args: Any) -> Any:
            return "taken over"

    assert Scores().normalized() == "taken over"
    assert Scores.normalized is clew.nn.functional.normalize
    x = clew.ones(1, 2)
    assert types.MethodType(clew.nn.functional.normalize, x)(dim=0).shape == (1, 2)


def test_functions_that_ask_pass_errors_and_arguments_on() -> None:
    f = clew.nn.functional.cross_entropy
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        f(clew.ones(1, 2), clew.tensor([0]), nothing=1)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        f(clew.ones(1, 2))
    assert f(input=clew.zeros(1, 2), target=clew.tensor([0]), reduction="none").shape == (1,)
    with pytest.raises(TypeError, match="expected a function of Python"):
        _C.Asking(len, len)
    with pytest.raises(TypeError):
        _C.Asking()


@pytest.mark.parametrize(
    "call, parameter, got",
    [
        (lambda f: f.cdist([[1.0]], f.ones(1, 1)), "x1", "list"),
        (lambda f: f.cdist(f.ones(1, 1), np.ones((1, 1))), "x2", r"numpy\.ndarray"),
        (lambda f: f.trace(3), "input", "int"),
        (lambda f: f.broadcast_tensors(f.ones(1), "x"), r"tensors\[1\]", "str"),
        (lambda f: f.nn.functional.grid_sample(None, f.ones(1)), "input", "NoneType"),
        (lambda f: f.nn.functional.ctc_loss((1.0,), f.ones(1), (1,), (1,)), "log_probs", "tuple"),
    ],
)
def test_an_argument_that_should_be_a_tensor_is_named(call, parameter, got) -> None:
    with pytest.raises(TypeError, match=rf"\(\): argument '{parameter}' must be Tensor, not {got}"):
        call(clew)


def test_other_missing_attributes_stay_as_they_are() -> None:
    class Lacking:
        pass

    lacking = Lacking()
    asking = _C.Asking(lambda x, y: x.nothing_of_a_tensor, lambda *args: None)
    with pytest.raises(AttributeError, match="nothing_of_a_tensor"):
        asking(lacking, 1)
    inner = _C.Asking(lambda x, y: lacking.shape, lambda *args: None)  # no argument lacks it
    with pytest.raises(AttributeError, match="shape"):
        inner(1, 2)
    keyword = _C.Asking(lambda x, *, y: y.shape, lambda *args: None)
    with pytest.raises(AttributeError, match="shape"):
        keyword(1, y=lacking)
    with pytest.raises(TypeError, match="argument 'x' must be Tensor, not Lacking$"):
        _C.Asking(lambda x, y: x.shape, lambda *args: None)(lacking, 2)


def test_copy_hands_on_all_its_arguments():
    seen = []

    class Seeing(clew.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func.__name__ == "copy_":
                seen.append(sorted(kwargs or {}))
            return super().__torch_function__(func, types, args, kwargs or {})

    source = clew.ones(2).as_subclass(Seeing)
    clew.zeros(2).copy_(source)
    clew.zeros(2).copy_(source, non_blocking=True)
    assert clew.zeros(2).copy_(src=source).tolist() == [1.0, 1.0]
    assert seen == [[], ["non_blocking"], ["src"]]


class Declines:
    """Answers no function, but has operators of its own."""

    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        return NotImplemented

    def __rmul__(self, other):
        return "rmul"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __gt__(self, other):
        return "gt"


@pytest.mark.parametrize("cls", [clew.Tensor, clew.nn.Parameter])
def test_an_operand_that_declines_is_asked_for_its_own_operator(cls):
    t = clew.ones(2) if cls is clew.Tensor else clew.nn.Parameter(clew.ones(2))
    u = Declines()
    before = Declines.calls
    assert t * u == "rmul" and t @ u == "rmatmul" and (t < u) == "gt"
    assert Declines.calls == before + 3  # each asked once
    assert (t == u) is False and (t != u) is True
    for call in (lambda: t - u, lambda: u - t, lambda: t >= u):
        with pytest.raises(TypeError, match="not supported|unsupported operand"):
            call()
    if cls is clew.Tensor:
        t *= u
        assert t == "rmul"
    with pytest.raises(TypeError, match="mul"):
        clew.mul(clew.ones(2), u)


def test_a_subclass_that_declines_leaves_the_operator_to_the_other_tensor():
    class Silent(clew.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

        def __radd__(self, other):
            return "radd"

    d, t = clew.ones(2).as_subclass(Silent), clew.ones(2)
    assert t + d == "radd"
    assert (t == d) is False and (t != d) is True and (d == t) is False
    for operator_of in (lambda: t * d, lambda: d - 1, lambda: t < d):
        with pytest.raises(TypeError, match="no implementation found"):
            operator_of()
