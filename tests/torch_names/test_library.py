"""Operations that a program adds."""

import itertools

import numpy as np
import pytest

import clew
from clew import library


@library.custom_op("test_library::scaled_square", mutates_args=())
def scaled_square(x: clew.Tensor, k: float = 1.0) -> clew.Tensor:
    return clew.from_numpy(np.square(x.detach().numpy()) * k)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.k = inputs[1]


scaled_square.register_autograd(
    lambda ctx, g: (2 * g * ctx.saved_tensors[0] * ctx.k, None), setup_context=_keep
)
scaled_square.register_fake(lambda x, k=1.0: clew.empty_like(x))


def test_called_by_name_and_differentiated():
    x = clew.tensor([1.0, 2.0], requires_grad=True)
    scaled_square(x, k=3.0).sum().backward()
    assert x.grad.tolist() == [6, 12]
    op = clew.ops.test_library.scaled_square
    assert op.default(x).tolist() == [1, 4] and str(op._schema) == (
        "test_library::scaled_square(Tensor x, float k=1.0) -> Tensor"
    )
    assert op(clew.ones(3, device="meta")).shape == (3,)
    assert set(library.opcheck(scaled_square, (x, 2.0)).values()) == {"SUCCESS"}
    with pytest.raises(RuntimeError, match="unexpected"):
        op(x, z=1)
    with pytest.raises(AttributeError, match="no such operation"):
        _ = clew.ops.test_library.nothing


def test_under_vmap():
    x = clew.arange(6.0).view(3, 2)
    assert clew.vmap(scaled_square)(x).tolist() == x.square().tolist()
    grads = clew.vmap(clew.func.grad(lambda v: scaled_square(v).sum()))(x)
    assert grads.tolist() == (2 * x).tolist()


def test_a_library_of_schemas():
    lib = library.Library("test_library_2", "DEF")
    lib.define("f(Tensor x, int n=2, *, bool half=False) -> Tensor")
    lib.impl("f", lambda x, n, half: x * n / (2 if half else 1), "CPU")
    f = clew.ops.test_library_2.f
    x = clew.ones(2, requires_grad=True)
    f(x, 3, half=True).sum().backward()
    assert x.grad.tolist() == [1.5, 1.5] and clew.vmap(f)(clew.ones(2, 2)).tolist() == [[2, 2]] * 2
    with pytest.raises(RuntimeError, match="defined already"):
        lib.define("f(Tensor x) -> Tensor")

    def g(
        x: clew.Tensor, y: clew.Tensor | None, n: int, s: list[int]
    ) -> tuple[clew.Tensor, int]: ...

    assert library.infer_schema(g, mutates_args=("x",)) == (
        "(Tensor(a!) x, Tensor? y, SymInt n, SymInt[] s) -> (Tensor, SymInt)"
    )


@library.custom_op("test_library::told", mutates_args=())
def told(
    x: clew.Tensor,
    k: float = 1.0,
    n: int | None = None,
    *,
    flag: bool = False,
    name: str = "a",
    sizes: list[int] | None = None,
) -> clew.Tensor:
    got.append((k, n, flag, name, sizes))
    return x.clone()


got = []


@pytest.mark.parametrize(
    ("args", "kwargs", "want"),
    [
        ((), {}, (1.0, None, False, "a", None)),
        ((2, True), {}, (2.0, 1, False, "a", None)),
        ((clew.tensor(2.0), clew.tensor(3)), {}, (2.0, 3, False, "a", None)),
        ((np.float32(0.5), np.int8(3)), {"flag": 1}, (0.5, 3, True, "a", None)),
        ((), {"flag": clew.tensor(True), "name": b"b"}, (1.0, None, True, "b", None)),
        ((), {"sizes": (1, clew.tensor(2))}, (1.0, None, False, "a", [1, 2])),
    ],
)
def test_arguments_become_what_the_schema_says(args, kwargs, want):
    got.clear()
    told(clew.ones(1), *args, **kwargs)
    assert got == [want] and [type(v) for v in got[0]] == [type(v) for v in want]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((3,), {}, "test_library::told: x should be a Tensor; got int"),
        (([1.0, 2.0],), {}, "x should be a Tensor; got list of 2 floats"),
        ((None, "a"), {}, "k should be a number; got str"),
        ((None, None), {}, "k should be a number; got NoneType"),
        ((None, 1j), {}, "k should be a number; got complex"),
        ((None, clew.ones(2)), {}, "k should be a number; got Tensor"),
        ((None, 1.0, 1.5), {}, "n should be a whole number or None; got float"),
        ((None, 1.0, clew.tensor(1.0)), {}, "n should be .*; got Tensor"),
        ((None,), {"name": 3}, "name should be a text; got int"),
        ((None,), {"flag": None}, "flag should be a bool; got NoneType"),
        (
            (None,),
            {"sizes": 3},
            "sizes should be a list, each element a whole number or None; got int",
        ),
        ((None,), {"sizes": [1.5]}, "sizes .* got list of 1 float"),
        ((), {}, "misses the argument 'x'"),
        ((None, 1.0, 1, True), {}, "takes 3 positional arguments; got 4"),
        ((None,), {"z": 1}, "unexpected argument 'z'"),
        ((None, 1.0), {"k": 2.0}, "'k' twice"),
    ],
)
def test_wrong_arguments(args, kwargs, message):
    for call in (told, clew.ops.test_library.told, clew.ops.test_library.told.default):
        with pytest.raises(RuntimeError, match=message):
            call(*args, **kwargs)


def test_lists_numbers_devices_and_dtypes():
    lib = library.Library("test_library_3", "DEF")
    lib.define("g(Tensor x, Tensor? y, Tensor[] ts, int[2] s, Scalar a) -> Tensor")
    lib.impl("g", lambda *args: (seen.append(args[1:]), args[0])[1], "CPU")
    lib.define("h(Tensor x, ScalarType d, Device dev, float[] v) -> Tensor")
    lib.impl("h", lambda *args: (seen.append(args[1:]), args[0])[1], "CPU")
    seen = []
    x = clew.ones(2)
    g, h = clew.ops.test_library_3.g, clew.ops.test_library_3.h
    g(x, None, (x, x), 2, True)
    h(x, clew.float64, "cpu", [1, 2])
    (y, ts, s, a), (d, dev, v) = seen
    assert y is None and ts == [x, x] and s == [2, 2] and a is True
    assert d is clew.float64 and dev == clew.device("cpu") and [type(n) for n in v] == [float] * 2
    for args, name in (
        ((x, 1, [x], 2, 1), "y"),
        ((x, None, x, 2, 1), "ts"),
        ((x, None, [x, None], 2, 1), "ts"),
        ((x, None, [x], 2.5, 1), "s"),
        ((x, None, [x], 2, "a"), "a"),
        ((x, None, [x], 2, clew.tensor(1)), "a"),
    ):
        with pytest.raises(RuntimeError, match=f": {name} should be"):
            g(*args)
    with pytest.raises(RuntimeError, match="d should be a dtype; got str"):
        h(x, "float32", "cpu", [])
    with pytest.raises(RuntimeError, match="dev should be a device; got float"):
        h(x, clew.float32, 1.0, [])


def test_what_a_kernel_gives_is_checked():
    @library.custom_op("test_library::no_tensor", mutates_args=())
    def no_tensor(x: clew.Tensor) -> clew.Tensor:
        return 3

    @library.custom_op("test_library::one_of_two", mutates_args=())
    def one_of_two(x: clew.Tensor) -> tuple[clew.Tensor, int]:
        return [x + 1, 3] if x.numel() == 1 else x

    @library.custom_op("test_library::same", mutates_args=())
    def same(x: clew.Tensor) -> clew.Tensor:
        return x.view(-1)

    with pytest.raises(RuntimeError, match="must give Tensor; got int"):
        no_tensor(clew.ones(1))
    assert one_of_two(clew.ones(1)) == (2, 3)
    with pytest.raises(RuntimeError, match="must give 2 results"):
        one_of_two(clew.ones(2))
    with pytest.raises(RuntimeError, match="shares the memory"):
        same(clew.ones(2))


def test_without_a_gradient_rule():
    """Even one whose kernel could be differentiated: in PyTorch it could not."""

    @library.custom_op("test_library::no_rule", mutates_args=())
    def no_rule(x: clew.Tensor) -> clew.Tensor:
        return clew.from_numpy(x.detach().numpy() * 2)

    assert not no_rule(clew.ones(2)).requires_grad
    y = no_rule(clew.ones(2, requires_grad=True))
    assert y.requires_grad and y.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="no_rule has no gradient rule.*register_autograd"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match=r"tensors without data.*register_fake"):
        no_rule(clew.ones(2, device="meta"))
    with pytest.raises(ValueError, match=r"mutates_args names \['z'\]"):
        library.custom_op("test_library::bad", lambda x: x, mutates_args=("z",))


def test_modes_see_the_operation_once():
    class Names(clew.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    seen = []
    x = clew.ones(2)
    with Names():
        scaled_square(x, 2.0)
    assert seen[0] == "test_library.scaled_square.default"
    assert seen.count("test_library.scaled_square.default") == 1


@library.custom_op("test_library::places", mutates_args=())
def places(x: clew.Tensor) -> clew.Tensor:
    return x.nonzero()


class TestOpcheck:
    x = clew.tensor([0.0, 1.0, 2.0])

    def rule(self, rule, example=x, **kwargs):
        places.register_fake(rule)
        return library.opcheck(places, (example,), **kwargs)

    def test_sizes_that_data_decides(self):
        def rule(x):
            n = library.get_ctx().new_dynamic_size()
            return x.new_empty([n, x.dim()], dtype=clew.int64)

        assert set(self.rule(rule).values()) == {"SUCCESS"}
        assert set(self.rule(rule, clew.zeros(2, 2)).values()) == {"SUCCESS"}
        # Outside of a check nothing is known of them.
        with pytest.raises(RuntimeError, match="new_dynamic_size: the data decides"):
            places(clew.ones(2, device="meta"))

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            (lambda x, n: x.new_empty([n(), x.dim()]), r"\[2, 1\] of \w+.float32, not \[2, 1\]"),
            (lambda x, n: x.new_empty([n(), 2], dtype=clew.int64), r"gives \[2, 2\]"),
            (lambda x, n: x.new_empty([n() + 1, 1], dtype=clew.int64), "gives"),
            (lambda x, n: x.new_empty([n(min=3), 1], dtype=clew.int64), "from 3 to any; it is 2"),
            (lambda x, n: x.new_empty([n(max=1), 1], dtype=clew.int64), "from 0 to 1; it is 2"),
            (lambda x, n: x.new_empty([3, 1], dtype=clew.int64), r"gives \[3, 1\]"),
            (lambda x, n: None, "gives NoneType, not Tensor"),
        ],
    )
    def test_wrong_rules(self, rule, message):
        def fake(x):
            return rule(x, library.get_ctx().new_dynamic_size)

        with pytest.raises(library.OpCheckError, match=f"test_faketensor failed: .*{message}"):
            self.rule(fake)
        found = self.rule(fake, raise_exception=False)
        assert isinstance(found["test_faketensor"], AssertionError)
        assert found["test_schema"] == "SUCCESS"

    def test_two_sizes_and_multiples(self):
        @library.custom_op("test_library::halves", mutates_args=())
        def halves(x: clew.Tensor) -> tuple[clew.Tensor, clew.Tensor]:
            good = x[x > 0]
            return good.repeat(2), x[x < 0].clone()

        @halves.register_fake
        def _(x):
            n, m = (library.get_ctx().new_dynamic_size() for _ in range(2))
            return x.new_empty(2 * n), x.new_empty(m)

        x = clew.tensor([1.0, -1.0, 2.0, 3.0])
        assert set(library.opcheck(halves, (x,)).values()) == {"SUCCESS"}

    def test_a_rule_must_be_there(self):
        @library.custom_op("test_library::no_fake", mutates_args=())
        def no_fake(x: clew.Tensor) -> clew.Tensor:
            return x + 1

        @library.custom_op("test_library::only_writes", mutates_args=("x",))
        def only_writes(x: clew.Tensor) -> None:
            x.add_(1)

        with pytest.raises(library.OpCheckError, match="test_faketensor.*register_fake"):
            library.opcheck(no_fake, (self.x,))
        x = self.x.clone()
        assert set(library.opcheck(only_writes, (x,)).values()) == {"SUCCESS"}
        assert x.tolist() == [0, 1, 2]  # copies were written to

    def test_schemas_and_gradients(self):
        numbers = itertools.count()
        lib = library.Library("test_library_4", "DEF")
        for name, kernel in (
            ("writes", lambda x: x.add_(1).clone()),
            ("views", lambda x: x.view(-1)),
            ("detaches", lambda x: x.detach() * 2),
            ("counts", lambda x: x + next(numbers)),
            ("draws", lambda x: x + clew.rand_like(x)),
        ):
            lib.define(f"{name}(Tensor x) -> Tensor")
            lib.impl(name, kernel, "CPU")
        ops = clew.ops.test_library_4
        x = self.x.clone().requires_grad_()
        for op, message in (
            (ops.writes, "test_schema.*x was written to"),
            (ops.views, "test_schema.*shares the memory of the argument x"),
            (ops.detaches, "test_autograd_registration.*no result requires"),
            (ops.counts, "test_aot_dispatch_dynamic.*two calls give other results"),
        ):
            with pytest.raises(library.OpCheckError, match=message):
                library.opcheck(op, (x if op is ops.detaches else self.x,))
        assert set(library.opcheck(ops.draws, (x,)).values()) == {"SUCCESS"}

        @library.custom_op("test_library::wrong_shape", mutates_args=())
        def wrong_shape(x: clew.Tensor) -> clew.Tensor:
            return x * 2

        wrong_shape.register_fake(clew.empty_like)
        wrong_shape.register_autograd(lambda ctx, g: g[0])
        with pytest.raises(library.OpCheckError, match="test_aot_dispatch_dynamic"):
            library.opcheck(wrong_shape, (x,))

    def test_wrong_requests(self):
        with pytest.raises(ValueError, match="test_utils must be of"):
            library.opcheck(places, (self.x,), test_utils="nonsense")
        with pytest.raises(ValueError, match="op must be an operation"):
            library.opcheck(print, (self.x,))
        with pytest.raises(library.OpCheckError, match="args must be a tuple"):
            library.opcheck(places, self.x)
        assert list(library.opcheck(places, (self.x,), test_utils="test_schema")) == ["test_schema"]


@library.custom_op("test_library::times", mutates_args=())
def times(xs: list[clew.Tensor], k: float = 1.0) -> list[clew.Tensor]:
    return [clew.from_numpy(x.detach().numpy() * k) for x in xs]


def test_lists_of_tensors_have_gradients():
    seen = []

    def setup(ctx, inputs, output):
        ctx.k = inputs[1]
        seen.append(([len(inputs[0]), inputs[1]], [type(t) for t in output]))

    def backward(ctx, *grads):
        seen.append(([type(g) for g in grads], ctx.needs_input_grad))
        return [g * ctx.k for g in grads[0]], None

    a, c = (clew.ones(n, requires_grad=True) for n in (2, 1))
    out = times([a, clew.ones(3), c], 3.0)
    assert isinstance(out, list) and [t.tolist() for t in out] == [[3, 3], [3, 3, 3], [3]]
    with pytest.raises(RuntimeError, match="times has no gradient rule"):
        out[0].sum().backward()
    times.register_autograd(backward, setup_context=setup)
    out = times([a, clew.ones(3), c], 3.0)
    (out[0].sum() + 2 * out[2].sum()).backward()
    assert a.grad.tolist() == [3, 3] and c.grad.tolist() == [6]
    assert seen == [
        ([3, 3.0], [clew.Tensor] * 3),
        ([list], ([True, False, True], False)),
    ]
    x = clew.arange(6.0).view(3, 2)
    assert clew.vmap(lambda v: times([v, v + 1], 2.0)[1])(x).tolist() == (2 * x + 2).tolist()
    times.register_autograd(lambda ctx, grads: ([None], None), setup_context=setup)
    with pytest.raises(RuntimeError, match="a gradient for each of the 2 tensors"):
        times([a, c])[0].sum().backward()


def test_a_function_for_other_devices_waits_for_a_kernel():
    from clew import library

    def more(x: clew.Tensor) -> clew.Tensor:
        return x + 1

    op = library.custom_op("elsewhere::more", more, mutates_args=(), device_types="cuda")
    with pytest.raises(NotImplementedError, match="no implementation for the CPU"):
        op(clew.ones(1))
    assert library.get_kernel("elsewhere::more", "CUDA") is more
    with pytest.raises(RuntimeError, match="no kernel for CPU for elsewhere::more"):
        library.get_kernel(op, "CPU")
    op.register_kernel("cpu", lambda x: x + 2)
    assert op(clew.ones(1)).tolist() == [3.0]
    assert library.get_kernel(op, "CPU")(clew.ones(1)).tolist() == [3.0]
    both = library.custom_op("elsewhere::both", more, mutates_args=(), device_types=["cpu", "cuda"])
    assert both(clew.ones(1)).tolist() == [2.0]


def test_a_second_rule_replaces_the_first_if_it_may():
    @library.custom_op("clew_tests::ruled", mutates_args=())
    def ruled(x: clew.Tensor) -> clew.Tensor:
        return x.clone()

    library.register_fake("clew_tests::ruled", lambda x: x.new_empty(2), allow_override=False)
    assert ruled(clew.empty(3, device="meta")).shape == (2,)
    library.register_fake("clew_tests::ruled", lambda x: x.new_empty(3))
    assert ruled(clew.empty(3, device="meta")).shape == (3,)
    with pytest.raises(RuntimeError, match="clew_tests::ruled already has such a rule"):
        library.register_fake("clew_tests::ruled", lambda x: x, allow_override=False)


@pytest.mark.parametrize("key", ["CPU", "Meta", "Autograd", "CUDA", ""])
def test_a_second_kernel_replaces_the_first_if_it_may(key):
    lib = library.Library(f"clew_tests_{key}", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, key, allow_override=False)
    lib.impl("f", lambda x: x + 2, key)
    with pytest.raises(RuntimeError, match=f"f already has a kernel for {key or 'CPU'}"):
        lib.impl("f", lambda x: x + 3, key, allow_override=False)
    if key in ("CPU", ""):
        assert getattr(clew.ops, f"clew_tests_{key}").f(clew.zeros(1)).item() == 2
