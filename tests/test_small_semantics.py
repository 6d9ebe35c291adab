"""Small points in which programs of PyTorch's notice a difference."""

from __future__ import annotations

import struct
import warnings
from typing import ClassVar

import pytest

import clew
from clew.nn import functional as F
from clew.utils.checkpoint import checkpoint


def test_views_made_where_nothing_is_recorded_tell_what_their_base_does():
    p = clew.nn.Parameter(clew.ones(2, 2))
    with clew.no_grad():
        views = [p.view(-1), p[0], p.t(), p.unsqueeze(0)]
        others = [p.detach(), p.data, p.detach()[0], (p * 2)[0]]
    assert all(v.requires_grad and v.grad_fn is None and v.is_leaf for v in views)
    assert not any(t.requires_grad for t in others)
    z = clew.ones(4)
    half = z.chunk(2)[0]
    assert not half.requires_grad
    z.requires_grad_()
    assert half.requires_grad
    with pytest.raises(
        RuntimeError, match="no_grad"
    ):  # what they lack is said when it is asked for
        (views[0] * 2).sum().backward()


def test_a_complex_weight_keeps_its_digits_in_the_gradient_of_lerp():
    a, b = (clew.ones(3, dtype=clew.complex128, requires_grad=True) for _ in range(2))
    clew.lerp(a, b, 5.4 + 9j).sum().real.backward()
    assert b.grad.tolist() == [5.4 - 9j] * 3 and a.grad.tolist() == [1 - 5.4 + 9j] * 3


@pytest.mark.parametrize("weight", [0.25, clew.tensor(0.25)])
def test_backward_runs_again_where_lerp_kept_a_number_alone(weight):
    a, b = (clew.ones(3, requires_grad=True) for _ in range(2))
    y = clew.lerp(a, b, weight).sum()
    y.backward()
    if not isinstance(weight, float):
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()
        return
    y.backward()
    assert a.grad.tolist() == [1.5] * 3 and b.grad.tolist() == [0.5] * 3
    written = (a * 1).lerp_(b, 0.5).sum()
    written.backward(inputs=(b,))
    written.backward(inputs=(b,))
    assert b.grad.tolist() == [1.5] * 3


def test_truth_values_are_squared_as_integers():
    truth = clew.tensor([True, False])
    squares = truth.square()
    assert squares.dtype == clew.int64 and squares.tolist() == [1, 0]
    assert clew.square(truth, out=clew.empty(2)).tolist() == [1.0, 0.0]
    assert clew.square(clew.ones(2, dtype=clew.uint8)).dtype == clew.uint8
    with pytest.raises(RuntimeError, match="type int64 can't be cast"):
        truth.square_()


def test_truth_values_are_exponents():
    truth = clew.tensor([True, False])
    for x in ([1, 3], [1j, 3.0]):
        assert clew.ldexp(clew.tensor(x), truth).tolist() == [x[0] * 2, x[1]]
        assert clew.ldexp(clew.tensor(x), clew.tensor(True)).tolist() == [x[0] * 2, x[1] * 2]
    assert clew.ldexp(truth, truth).tolist() == [2.0, 0.0]
    with pytest.raises(RuntimeError, match="ldexp: is not implemented"):
        clew.ldexp(clew.ones(2), truth)


def test_blocks_of_truth_values():
    image = clew.tensor([[True, False, False], [False, False, False], [False, False, True]])
    columns = F.unfold(image[None, None], 2)
    want = [[True] + [False] * 3, [False] * 4, [False] * 4, [False] * 3 + [True]]
    assert columns.dtype == clew.bool and columns.tolist() == [want]
    assert clew.equal(F.fold(columns, (3, 3), 2), image[None, None])
    assert F.fold(clew.ones(1, 4, 4).bool(), (3, 3), 2).all()
    assert F.unfold(image[None, None], 2, padding=1)[0, 3].any()


def test_slopes_over_complex_distances():
    (slopes,) = clew.gradient(clew.tensor([1.0, 2.0, 4.0, 8.0]), spacing=2j)
    assert slopes.tolist() == [-0.5j, -0.75j, -1.5j, -2j]
    rows, columns = clew.gradient(clew.tensor([[1.0, 2.0], [4.0, 8j]]), spacing=[1j, 2.0])
    assert rows.tolist() == [[-3j, 8 + 2j]] * 2
    assert columns.tolist() == [[0.5] * 2, [-2 + 4j] * 2]


def test_gradients_of_padding_inside_vmap():
    x = clew.randn(4, 3, dtype=clew.float64)

    def padded(row):
        return F.pad(row, (1, 2)) ** 2

    got = clew.vmap(clew.func.jacrev(padded))(x)
    want = clew.stack([clew.func.jacrev(padded)(row) for row in x])
    assert clew.equal(got, want)
    second = clew.func.hessian(lambda row: padded(row).sum())(x[0])
    assert second.tolist() == (2 * clew.eye(3)).tolist()


def test_gamma_draws_are_those_of_equal_seeds():
    clew.manual_seed(0)
    kind = clew.distributions.Gamma(*(clew.tensor(v, dtype=clew.float64) for v in (1.5, 2.1)))
    assert kind.sample().item() == pytest.approx(1.78484142041654, rel=1e-15)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_too_few_elements_for_a_variance_warn(name):
    function = getattr(clew, name)
    with pytest.warns(UserWarning, match=rf"{name}\(\): degrees of freedom is <= 0"):
        function(clew.ones(3, 1), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(clew.ones(3, 1), 1, correction=0)
        function(clew.ones(3, 2), 1)
        with pytest.raises(UserWarning):
            function(clew.ones(1))


def test_storages_from_buffers():
    floats = clew.FloatStorage.from_buffer
    assert floats(struct.pack(">2f", 1, 2), "big").tolist() == [1.0, 2.0]
    assert floats(struct.pack("<3f", 1, 2, 3), "little", count=1, offset=4).tolist() == [2.0]
    assert floats(struct.pack("<3f", 1, 2, 3), "little", -1, 4).tolist() == [2.0, 3.0]
    complexes = clew.ComplexFloatStorage.from_buffer(struct.pack(">2f", 1, 2), "big")
    assert complexes.tolist() == [1 + 2j]
    raw = clew.UntypedStorage.from_buffer
    assert raw(b"abcd", dtype=clew.uint8, count=2, offset=1).tolist() == [98, 99]
    assert raw(struct.pack(">H", 1), dtype=clew.int16, byte_order="big").tolist() == [1, 0]
    with pytest.raises(TypeError, match="byte order"):
        floats(struct.pack("<3f", 1, 2, 3))
    for given in [
        (b"abc", "little"),
        (b"abcd", "up"),
        (b"abcd", "little", 5),
        (b"abcd", "big", 1, 5),
    ]:
        with pytest.raises(ValueError, match="from_buffer"):
            floats(*given)


class Asked(clew.Tensor):
    """Keeps the names of what it was asked."""

    names: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Asked.names.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_classes_are_asked_about_writes_into_plain_tensors():
    x, y = clew.ones(2), clew.ones(2).as_subclass(Asked)
    for write in ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__"):
        getattr(clew.ones(2), write)(y)
    assert Asked.names == ["add_", "sub_", "mul_", "div_", "pow_"]
    Asked.names.clear()
    x[0] = y[0]
    assert Asked.names[-1] == "__setitem__" and x.tolist() == [1.0, 1.0]


def test_dense_tensors_and_sparse_ones():
    eye = clew.eye(2).to_sparse()
    x = clew.ones(2, 2)
    x += eye
    assert x.tolist() == [[2.0, 1.0], [1.0, 2.0]]
    for use in (
        lambda: x.set_(eye),
        lambda: setattr(x, "data", eye),
        lambda: x.__setitem__(0, eye),
    ):
        with pytest.raises(NotImplementedError, match="sparse"):
            use()
    assert not clew.ones(2, 3).t().is_contiguous(memory_format=clew.preserve_format)


@pytest.mark.parametrize("dtype", [clew.complex128, clew.float64])
def test_complex_numbers_keep_their_digits_in_gradients(dtype):
    s = 0.1 - 0.3j

    def slope(f, *others):
        x = clew.tensor([1.5, 2.0], dtype=dtype, requires_grad=True)
        f(x).sum().real.backward()
        return x.grad.tolist()

    def real(value):
        return value if dtype is clew.complex128 else value.real

    for f in (lambda x: x * s, lambda x: s * x):
        assert slope(f) == [real(s.conjugate())] * 2
    assert slope(lambda x: x / s) == [real((1 / s).conjugate())] * 2
    over = [real(-(s / x**2).conjugate()) for x in (1.5, 2.0)]
    assert slope(lambda x: s / x) == pytest.approx(over, rel=1e-15)
    if dtype is clew.complex128:
        index = clew.tensor([0, 1])
        added = slope(lambda x: clew.zeros(2, dtype=dtype).index_add(0, index, x, alpha=s))
        assert added == [s.conjugate()] * 2


def test_methods_take_sizes_one_by_one() -> None:
    x = clew.rand(1, 1, 2)
    assert x.squeeze(0, 1).shape == (2,)
    assert x.squeeze((0, 1)).shape == x.squeeze().shape == (2,)
    assert x.squeeze(0).shape == (1, 2)
    assert x.count_nonzero(0, 1).tolist() == [1, 1]
    assert clew.ones(2).broadcast_to(3, 2).shape == (3, 2)


@pytest.mark.parametrize("dtype", [clew.int8, clew.int32, clew.int64])
def test_a_negative_number_is_no_exponent_of_integers_but_a_tensor_is(dtype: clew.dtype) -> None:
    base = clew.tensor([2, 1, -1], dtype=dtype)
    with pytest.raises(RuntimeError, match="integers to negative integer powers"):
        base**-3
    for exponent in (clew.tensor(-3, dtype=dtype), clew.tensor([-3], dtype=dtype)):
        assert (base**exponent).tolist() == [0, 1, -1]
    assert (2 ** clew.tensor([-1, 3])).tolist() == [0, 8]


def test_a_tensor_is_written_over_itself_in_another_shape() -> None:
    x = clew.arange(12.0).view(4, 3).t()
    x[None] = x
    assert x.tolist() == clew.arange(12.0).view(4, 3).t().tolist()
    square = clew.ones(3, 3)
    with pytest.raises(RuntimeError, match="single memory location"):
        square.copy_(square.t())


def test_a_leaf_that_requires_grad_is_not_set() -> None:
    leaf = clew.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.set_(clew.zeros(2))
    with clew.no_grad():
        assert leaf.set_(clew.zeros(2)).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
def test_cubes_are_the_products_that_one_would_write(dtype: clew.dtype) -> None:
    x = clew.randn(1000, dtype=dtype)
    assert clew.equal(x**3, x * x * x)
    y = x.clone().requires_grad_()
    (y**4).sum().backward()
    assert clew.equal(y.grad, x * x * x * 4)


def test_equal_of_few_elements() -> None:
    for dtype in (clew.float32, clew.float64, clew.int64, clew.bool, clew.complex64):
        a = clew.tensor([0, 1, 1], dtype=dtype)
        assert a.equal(a.clone())
        assert not a.equal(clew.tensor([1, 1, 1], dtype=dtype))
        assert not a.equal(a[:2])
    nan = clew.tensor([1.0, float("nan")])
    assert not nan.equal(nan)
    assert clew.tensor([0.0]).equal(clew.tensor([-0.0]))
    assert clew.empty(0).equal(clew.empty(0))
    assert clew.ones(2).equal(clew.ones(2, dtype=clew.int64))


def test_a_checkpoint_that_lets_draws_differ_draws_its_masks_anew() -> None:
    x = clew.ones(1000, requires_grad=True)
    y = checkpoint(
        lambda t: F.dropout(t, 0.5) * 2, x, use_reentrant=False, preserve_rng_state=False
    )
    kept = y.detach() != 0
    y.sum().backward()
    assert set(x.grad.tolist()) == {0.0, 4.0}
    assert not clew.equal(x.grad != 0, kept)
    z = clew.ones(1000, requires_grad=True)
    y = checkpoint(lambda t: F.dropout(t, 0.5) * 2, z, use_reentrant=False)
    y.sum().backward()
    assert clew.equal(z.grad, y.detach())


@pytest.mark.parametrize("name", ["max", "min", "maximum", "add"])
def test_pairs_are_written_over_one_of_them(name: str) -> None:
    function = getattr(clew, name)
    a, b = clew.tensor([1.0, 5.0, 2.0]), clew.tensor([3.0, 2.0, 2.0])
    want = function(a, b)
    assert function(a, b, out=a) is a
    assert clew.equal(a, want)
    with pytest.raises(RuntimeError, match="single memory location"):
        function(a[1:], b[1:], out=a[:2])


def test_what_changes_nothing_gives_its_input_back() -> None:
    x = clew.ones(2, 3, requires_grad=True)
    other = clew.zeros(2, 3)
    same = clew.broadcast_tensors(x, other)
    assert same[0] is x and same[1] is other
    assert clew.broadcast_tensors(x, clew.ones(4, 1, 3))[0].shape == (4, 2, 3)
    assert x.sum_to_size(2, 3) is x and x.sum_to_size(1, 3).shape == (1, 3)
    assert clew.asarray(x) is x  # in its graph, unless something else is asked for
    assert not clew.asarray(x, requires_grad=False).requires_grad
    assert clew.asarray(other, requires_grad=True).requires_grad and not other.requires_grad
    d = clew.distributions.Normal(x, clew.ones(2, 3))
    assert d.loc is x


def test_a_tensor_without_dimensions_has_none_to_name() -> None:
    x = clew.tensor(3.0)
    for call in (
        lambda: x.stride(0),
        lambda: x.stride(-1),
        lambda: clew.unique(x, dim=0),
        lambda: clew.unique_consecutive(x, dim=-1),
    ):
        with pytest.raises(IndexError, match="no dimensions"):
            call()
    assert x.stride() == () and clew.unique(x).tolist() == [3.0]


def test_real_results_are_not_written_over_complex_numbers() -> None:
    z = clew.tensor([3 + 4j])
    with pytest.raises(RuntimeError, match="abs_: in place"):
        z.abs_()
    assert z.tolist() == [3 + 4j] and clew.tensor([-2.0]).abs_().tolist() == [2.0]


def test_float_power_writes_only_over_double_precision() -> None:
    for base, exponent in (
        (clew.ones(2), 2),
        (clew.ones(2, dtype=clew.int64), 2),
        (clew.ones(2, dtype=clew.complex64), 2),
        (clew.ones(2, dtype=clew.float64), 1j),
    ):
        with pytest.raises(RuntimeError, match="float_power_: the base has dtype"):
            base.float_power_(exponent)
    x = clew.tensor([2.0, 3.0], dtype=clew.float64, requires_grad=True)
    y = x.clone()
    assert y.float_power_(clew.tensor(3)) is y
    y.sum().backward()
    assert y.tolist() == [8.0, 27.0] and x.grad.tolist() == [12.0, 27.0]


def test_masks_are_added_at_indices() -> None:
    x, at, true = clew.zeros(3, dtype=clew.bool), clew.tensor([1]), clew.tensor([True])
    assert x.index_add(0, at, true, alpha=2).tolist() == [False, True, False]
    assert not x.index_add(0, at, true, alpha=0).any()


def test_samples_of_nothing_keep_their_dtype_when_summed() -> None:
    y = clew.zeros(2, 0, dtype=clew.int64)
    got = clew.trapezoid(y)
    assert got.dtype is clew.int64 and got.tolist() == [0, 0]
    assert clew.trapezoid(clew.zeros(0, 3), dim=0).tolist() == [0.0] * 3


def test_histogram_has_a_hundred_bins_by_default() -> None:
    hist, edges = clew.histogram(clew.arange(4.0))
    assert hist.shape == (100,) and edges.shape == (101,) and hist.sum() == 4


@pytest.mark.parametrize("dtype", [clew.uint8, clew.bool, clew.float32, clew.int16])
def test_rows_are_reduced_by_whole_indices_only(dtype: clew.dtype) -> None:
    with pytest.raises(RuntimeError, match="int64 or int32"):
        clew.zeros(3).index_reduce(0, clew.zeros(1, dtype=dtype), clew.ones(1), "amax")


def test_no_differences_are_a_copy() -> None:
    x = clew.arange(3.0)
    y = clew.diff(x, 0)
    assert y is not x and y.data_ptr() != x.data_ptr() and clew.equal(x, y)


def test_stirlings_term_keeps_the_dtype_of_the_loss() -> None:
    x, counts = clew.ones(2, dtype=clew.float16), clew.tensor([1, 3])
    assert F.poisson_nll_loss(x, counts, full=True, reduction="none").dtype is clew.float16


def test_the_operator_invert_is_for_integers():
    """PyTorch raises TypeError for the operator, NotImplementedError for the function."""
    for dtype in (clew.float32, clew.complex64):
        with pytest.raises(TypeError, match="only of integers and truth values"):
            ~clew.ones(2, dtype=dtype)
        with pytest.raises(NotImplementedError):
            clew.bitwise_not(clew.ones(2, dtype=dtype))
    assert (~clew.tensor([1, 2])).tolist() == [-2, -3]


@pytest.mark.parametrize("arguments", [([], clew.ones(1)), (clew.ones(1), [])])
def test_gradients_of_nothing(arguments):
    with pytest.raises(RuntimeError, match="cannot be empty"):
        clew.autograd.grad(*arguments)


@pytest.mark.parametrize("loss", ["cross_entropy", "nll_loss"])
def test_the_class_of_one_sample_may_be_a_vector(loss):
    x = clew.tensor([0.5, 1.0, 2.0], requires_grad=True)
    fn = getattr(clew.nn.functional, loss)
    weight = clew.tensor([1.0, 3.0, 1.0])
    for more in ({}, {"reduction": "none"}, {"weight": weight}):
        got, wanted = fn(x, clew.tensor([1]), **more), fn(x, clew.tensor(1), **more)
        assert got.shape == wanted.shape == () and got.item() == wanted.item()
    with pytest.raises((RuntimeError, ValueError)):
        fn(x, clew.tensor([1, 1]))


def test_can_cast_names_what_is_no_dtype():
    for pair in ((1, clew.float32), (clew.float32, "int64")):
        with pytest.raises(TypeError, match="can_cast: from_ and to must be dtypes"):
            clew.can_cast(*pair)
