"""Matrix products of every rank and dtype against NumPy, their derivatives, their errors."""

from __future__ import annotations

import numpy as np
import pytest
from numeric import check_gradients, normal

import clew

NUMERIC = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
RANKS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((6, 5, 2, 3), (3, 4)),
    ((2, 1, 1, 3), (1, 2, 3, 1)),
]


def whole(seed: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.integers(0 if dtype == "uint8" else -9, 10, shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.integers(-9, 10, shape)
    return np.asarray(x).astype(dtype)


@pytest.mark.parametrize("shapes", RANKS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_matmul_of_all_ranks(shapes, dtype):
    a, b = normal(1, *shapes[0], dtype=dtype), normal(2, *shapes[1], dtype=dtype)
    out = clew.matmul(clew.tensor(a), clew.tensor(b))
    assert out.shape == np.matmul(a, b).shape
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-12, atol=1e-12)
    check_gradients(clew.matmul, a, b)


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize("size", [1, 2, 7, 16, 33, 70])
def test_mm_is_exact_on_whole_numbers(dtype, size):
    a, b = whole(3, size, size + 1, dtype=dtype), whole(4, size + 1, size + 2, dtype=dtype)
    out = clew.mm(clew.tensor(a), clew.tensor(b))
    assert str(out.dtype) == f"clew.{dtype}"
    np.testing.assert_array_equal(out.numpy(), a @ b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
@pytest.mark.parametrize(
    "m,n,k", [(130, 150, 70), (300, 3, 257), (1, 500, 300), (500, 1, 300), (64, 700, 600)]
)
def test_large_products_in_all_layouts(dtype, m, n, k):
    a, b = whole(5, m, k, dtype=dtype), whole(6, k, n, dtype=dtype)
    expected = a @ b
    for left in (a, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2]):
        for right in (b, np.asfortranarray(b), np.repeat(b, 3, axis=0)[::3]):
            x, y = clew.from_numpy(left), clew.from_numpy(right)
            np.testing.assert_array_equal(clew.mm(x, y).numpy(), expected)


@pytest.mark.parametrize("dtype,tolerance", [(clew.float16, 2e-3), (clew.bfloat16, 2e-2)])
@pytest.mark.parametrize("m,n,k", [(3, 4, 5), (40, 50, 60), (150, 200, 120), (1, 30, 40)])
def test_sixteen_bit_products_accumulate_in_float32(dtype, tolerance, m, n, k):
    a = clew.tensor(normal(7, m, k)).to(dtype)
    b = clew.tensor(normal(8, k, n)).to(dtype)
    exact = a.to(clew.float64).numpy() @ b.to(clew.float64).numpy()
    out = clew.mm(a, b)
    assert out.dtype == dtype
    error = np.abs(out.to(clew.float64).numpy() - exact)
    assert (error <= tolerance * (1 + np.abs(exact))).all()


def test_broadcast_batches_are_not_copied_wrongly():
    a, b = normal(9, 4, 1, 3, 5), normal(10, 6, 5, 2)
    x = clew.tensor(a).expand(4, 6, 3, 5)
    y = clew.tensor(b).transpose(-1, -2).contiguous().transpose(-1, -2).expand(4, 6, 5, 2)
    np.testing.assert_allclose(clew.matmul(x, y).numpy(), a @ b, rtol=1e-12)
    z = clew.tensor(normal(11, 3, 1)).expand(3, 5)
    np.testing.assert_allclose(clew.mm(z, z.t()).numpy(), z.numpy() @ z.numpy().T, rtol=1e-12)


@pytest.mark.parametrize(
    "shapes",
    [
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((2, 3), (3, 0)),
        ((0, 2, 3), (0, 3, 4)),
        ((0,), (0,)),
        ((2, 0), (0,)),
    ],
)
def test_empty_operands(shapes):
    a, b = np.ones(shapes[0]), np.ones(shapes[1])
    x, y = clew.tensor(a, requires_grad=True), clew.tensor(b, requires_grad=True)
    out = clew.matmul(x, y)
    np.testing.assert_array_equal(out.detach().numpy(), a @ b)
    out.sum().backward()
    assert x.grad.shape == shapes[0] and y.grad.shape == shapes[1]
    assert (x.grad.numpy() == 0).all() or b.size


def test_named_products():
    m, v, w = normal(12, 3, 4), normal(13, 4), normal(14, 4)
    t = clew.tensor
    np.testing.assert_allclose(clew.mv(t(m), t(v)).numpy(), m @ v)
    np.testing.assert_allclose(clew.dot(t(v), t(w)).numpy(), v @ w)
    np.testing.assert_allclose(clew.outer(t(v), t(w)).numpy(), np.outer(v, w))
    np.testing.assert_allclose(clew.ger(t(v), t(w)).numpy(), np.outer(v, w))
    np.testing.assert_allclose(clew.inner(t(m), t(v)).numpy(), np.inner(m, v))
    np.testing.assert_allclose(clew.inner(t(m), t(m + 1)).numpy(), np.inner(m, m + 1))
    np.testing.assert_allclose(clew.inner(t(m), t(2.0)).numpy(), m * 2)
    c, d = normal(15, 4, dtype="complex128"), normal(16, 4, dtype="complex128")
    np.testing.assert_allclose(clew.vdot(t(c), t(d)).numpy(), np.vdot(c, d))
    for shapes in (((2, 3), (4, 5)), ((2,), (3, 4)), ((2, 3, 2), (2, 2))):
        a, b = normal(17, *shapes[0]), normal(18, *shapes[1])
        np.testing.assert_allclose(clew.kron(t(a), t(b)).numpy(), np.kron(a, b))
    check_gradients(clew.vdot, c, d)
    check_gradients(clew.kron, normal(19, 2, 2), normal(20, 3))
    check_gradients(clew.outer, v, w)


@pytest.mark.parametrize("beta,alpha", [(1, 1), (0, 2), (0.5, -1.5), (2, 0)])
@pytest.mark.parametrize(
    "name,shapes",
    [
        ("addmm", ((3, 5), (3, 4), (4, 5))),
        ("addmm", ((5,), (3, 4), (4, 5))),
        ("addmm", ((), (3, 4), (4, 5))),
        ("addmv", ((3,), (3, 4), (4,))),
        ("addr", ((3, 1), (3,), (4,))),
        ("addbmm", ((3, 5), (2, 3, 4), (2, 4, 5))),
        ("baddbmm", ((2, 3, 5), (2, 3, 4), (2, 4, 5))),
        ("baddbmm", ((3, 1), (2, 3, 4), (2, 4, 5))),
    ],
)
def test_sums_with_products(name, shapes, beta, alpha):
    i, a, b = (normal(21 + k, *s) for k, s in enumerate(shapes))
    product = {
        "addr": np.outer,
        "addbmm": lambda x, y: np.einsum("bij,bjk->ik", x, y),
    }.get(name, np.matmul)(a, b)
    expected = beta * i + alpha * product
    op = getattr(clew, name)
    got = op(clew.tensor(i), clew.tensor(a), clew.tensor(b), beta=beta, alpha=alpha)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-10, atol=1e-12)
    method = getattr(clew.tensor(i), name)(clew.tensor(a), clew.tensor(b), beta=beta, alpha=alpha)
    np.testing.assert_array_equal(method.numpy(), got.numpy())
    check_gradients(lambda x, y, z: op(x, y, z, beta=beta, alpha=alpha), i, a, b)


def test_in_place_sum_with_a_product():
    i, a, b = normal(31, 3, 5), normal(32, 3, 4), normal(33, 4, 5)
    x = clew.tensor(i)
    assert x.addmm_(clew.tensor(a), clew.tensor(b), beta=2, alpha=3) is x
    np.testing.assert_allclose(x.numpy(), 2 * i + 3 * a @ b)
    out = clew.empty(3, 5, dtype=clew.float64)
    clew.mm(clew.tensor(a), clew.tensor(b), out=out)
    np.testing.assert_allclose(out.numpy(), a @ b)


def test_integers_take_whole_factors():
    i, a = clew.full((2, 2), 7), clew.full((2, 2), 3)
    assert clew.addmm(i, a, a, beta=1.6, alpha=1.2).tolist() == [[25, 25], [25, 25]]
    assert clew.baddbmm(i[None], a[None], a[None], beta=0.6, alpha=2).tolist() == [[[36, 36]] * 2]


def test_beta_zero_ignores_what_input_holds():
    nan = clew.full((2, 2), float("nan"))
    eye = clew.eye(2)
    assert (clew.addmm(nan, eye, eye, beta=0).numpy() == np.eye(2)).all()
    assert (clew.addmv(nan[0], eye, clew.ones(2), beta=0).numpy() == 1).all()
    assert (clew.addr(nan, clew.ones(2), clew.ones(2), beta=0).numpy() == 1).all()
    assert (clew.baddbmm(nan, eye[None], eye[None], beta=0).numpy() == np.eye(2)).all()
    empty = clew.addmm(nan, clew.ones(2, 0), clew.ones(0, 2), beta=0)
    assert (empty.numpy() == 0).all()
    scaled = clew.addmm(clew.ones(2, 2), clew.ones(2, 0), clew.ones(0, 2), beta=3)
    assert (scaled.numpy() == 3).all()


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(lead, bias):
    x, w, b = normal(41, *lead, 4), normal(42, 5, 4), normal(43, 5)
    args = [x, w, b] if bias else [x, w]
    out = clew._C.ops.linear(*(clew.tensor(v) for v in args))
    np.testing.assert_allclose(out.numpy(), x @ w.T + (b if bias else 0), rtol=1e-12)
    check_gradients(clew._C.ops.linear, *args)


def test_linear_with_a_vector_and_complex_weights():
    x, w = normal(44, 3, 4), normal(45, 4)
    np.testing.assert_allclose(clew._C.ops.linear(clew.tensor(x), clew.tensor(w)).numpy(), x @ w)
    check_gradients(clew._C.ops.linear, x, w)
    c = [normal(46 + k, *s, dtype="complex128") for k, s in enumerate([(2, 3, 4), (5, 4), (5,)])]
    np.testing.assert_allclose(
        clew._C.ops.linear(*map(clew.tensor, c)).numpy(), c[0] @ c[1].T + c[2]
    )
    check_gradients(clew._C.ops.linear, *c)


def test_linear_over_transposed_input():
    x, w, b = normal(49, 4, 6, 3), normal(50, 5, 4), normal(51, 5)
    t = clew.tensor(x).permute(2, 1, 0)
    out = clew._C.ops.linear(t, clew.tensor(w), clew.tensor(b))
    np.testing.assert_allclose(out.numpy(), x.transpose(2, 1, 0) @ w.T + b, rtol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear(bias):
    a, b, w, c = normal(52, 2, 3, 4), normal(53, 2, 3, 5), normal(54, 6, 4, 5), normal(55, 6)
    args = [a, b, w, c] if bias else [a, b, w]
    expected = np.einsum("xyi,oij,xyj->xyo", a, w, b) + (c if bias else 0)
    np.testing.assert_allclose(
        clew._C.ops.bilinear(*map(clew.tensor, args)).numpy(), expected, rtol=1e-10
    )
    check_gradients(clew._C.ops.bilinear, *args)


def test_meta_tensors_get_shapes_only():
    a = clew.empty(3, 4, device="meta")
    b = clew.empty(4, 5, device="meta")
    out = clew.mm(a, b)
    assert out.shape == (3, 5) and out.device.type == "meta"


def test_errors_say_what_is_wrong():
    t = clew.ones
    with pytest.raises(RuntimeError, match=r"mm: .*float32\[2, 3\] and float32\[4, 5\]"):
        clew.mm(t(2, 3), t(4, 5))
    with pytest.raises(
        RuntimeError, match="matmul: both operands must have at least one dimension"
    ):
        clew.matmul(t(()), t(3))
    with pytest.raises(RuntimeError, match="one dtype"):
        clew.matmul(t(2, 2), t(2, 2, dtype=clew.float64))
    with pytest.raises(RuntimeError, match="not implemented for bool"):
        clew.mm(t(2, 2, dtype=clew.bool), t(2, 2, dtype=clew.bool))
    with pytest.raises(RuntimeError, match="bmm: batch sizes"):
        clew.bmm(t(2, 2, 2), t(3, 2, 2))
    with pytest.raises(RuntimeError, match="mv: operands must have 2 and 1 dimensions"):
        clew.mv(t(2), t(2))
    with pytest.raises(RuntimeError):
        clew.matmul(t(2, 2, 3), t(3, 3, 4))
    with pytest.raises(RuntimeError, match="addmm: input must broadcast"):
        clew.addmm(t(3, 3), t(2, 2), t(2, 2))
    with pytest.raises(RuntimeError, match="beta and alpha must be integers"):
        i = t(2, dtype=clew.int64)
        clew.addr(t(2, 2, dtype=clew.int64), i, i, beta=0.5)
    with pytest.raises(RuntimeError, match=r"linear: input\.shape"):
        clew._C.ops.linear(t(2, 3), t(4, 5))
    with pytest.raises(RuntimeError, match="linear: bias"):
        clew._C.ops.linear(t(2, 3), t(4, 3), t(5))
    with pytest.raises(TypeError):
        clew.mm(t(2, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 15, 16, 17, 33, 64])
@pytest.mark.parametrize("k", [1, 7, 8, 16, 31, 64, 67])
def test_a_row_times_rows(n, k, dtype):
    """One row against a matrix whose columns are contiguous: what linear does for one sample."""
    rng = np.random.default_rng(n * 100 + k)
    x, w, b = (rng.integers(-8, 9, s).astype(dtype) for s in ((1, k), (n, k), (n,)))
    got = clew.nn.functional.linear(clew.tensor(x), clew.tensor(w), clew.tensor(b))
    np.testing.assert_array_equal(got.numpy(), x @ w.T + b)  # small whole numbers: exact
    wide = clew.tensor(np.concatenate([w, w], 1))[:, :k]
    np.testing.assert_array_equal((clew.tensor(x) @ wide.T).numpy(), x @ w.T)
    np.testing.assert_array_equal(
        clew.addmv(clew.tensor(b), clew.tensor(w), clew.tensor(x[0]), alpha=2, beta=3).numpy(),
        3 * b + 2 * (w @ x[0]),
    )


# Sizes around what the blocked kernel cuts at: tiles of rows, vectors, blocks of depth.
BLOCKS = [(1, 1, 1), (3, 5, 7), (4, 100, 64), (9, 50, 401), (17, 49, 33), (7, 3, 130)]
BLOCKS += [(100, 130, 850), (64, 48, 16), (200, 96, 420), (40, 700, 30), (1, 200, 90), (90, 1, 70)]


def _operand(rng, dtype, rows, cols, transposed):
    shape = (cols, rows) if transposed else (rows, cols)
    if dtype.is_floating_point or dtype.is_complex:
        values = rng.standard_normal(shape)
        if dtype.is_complex:
            values = values + 1j * rng.standard_normal(shape)
    else:
        values = rng.integers(-9, 10, shape)
    t = clew.tensor(values.tolist(), dtype=dtype)
    t = t.t() if transposed else t
    if dtype.is_complex:
        return t, np.array(t.tolist())
    return t, np.array(t.tolist(), dtype=np.float64)


@pytest.mark.parametrize(
    "dtype",
    [clew.float32, clew.float64, clew.bfloat16, clew.float16, clew.complex64, clew.int8]
    + [clew.int32, clew.int64],
    ids=str,
)
@pytest.mark.parametrize("size", BLOCKS, ids=str)
def test_blocks_of_products(dtype, size):
    m, n, k = size
    rng = np.random.default_rng(m * n + k)
    loose = {clew.bfloat16: 1e-2, clew.float16: 2e-3, clew.float64: 1e-12}.get(dtype, 2e-5)
    for turn_a, turn_b in [(False, False), (False, True), (True, False), (True, True)]:
        a, an = _operand(rng, dtype, m, k, turn_a)
        b, bn = _operand(rng, dtype, k, n, turn_b)
        row, rown = _operand(rng, dtype, 1, n, False)
        whole, wholen = _operand(rng, dtype, m, n, False)
        size_of_sums = np.abs(an) @ np.abs(bn) + 30

        def check(got, expected, scale=size_of_sums):
            if dtype == clew.int8:
                expected = expected.astype(np.int64).astype(np.int8)
            got = np.array(got.tolist())
            assert (np.abs(got - expected) <= loose * scale).all()

        check(a @ b, an @ bn)
        check(clew.nn.functional.linear(a, b.t(), row[0]), an @ bn + rown)
        check(clew.addmm(row[0], a, b), an @ bn + rown)
        check(clew.addmm(whole, a, b, beta=2, alpha=3), 2 * wholen + 3 * (an @ bn))
        if dtype.is_floating_point or dtype.is_complex:
            out = clew.empty(n, m, dtype=dtype).t()  # a result with contiguous columns
            check(clew.mm(a, b, out=out), an @ bn)


def laid_out(values: np.ndarray, layout: str) -> clew.Tensor:
    if layout == "rows":
        return clew.tensor(values)
    if layout == "columns":
        return clew.tensor(np.ascontiguousarray(values.T)).t()
    wide = clew.full((2 * values.shape[0], 2 * values.shape[1] + 1), float("nan"))
    part = wide.to(clew.float64 if values.dtype == np.float64 else clew.float32)
    part = part[::2, 1 : 1 + values.shape[1]] if layout == "part" else part[::2, 1::2]
    part.copy_(clew.tensor(values))
    return part


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["rows", "columns", "part", "spread"])
def test_small_products(dtype, layout):
    """Sizes on both sides of every vector, of four rows, and of what is small."""
    sizes = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33]
    tolerance = (
        {"rtol": 1e-5, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-12}
    )
    for m in sizes:
        for n in sizes:
            for k in (1, 3, 4, 8, 15, 16, 17):
                a, b = normal(m, m, k).astype(dtype), normal(n, k, n).astype(dtype)
                bias = normal(k, n).astype(dtype)
                x, w = laid_out(a, layout), laid_out(b, layout)
                np.testing.assert_allclose((x @ w).numpy(), a @ b, **tolerance)
                got = clew.nn.functional.linear(x, w.t(), clew.tensor(bias))
                np.testing.assert_allclose(got.numpy(), a @ b + bias, **tolerance)
                out = clew.full((n, m), float("nan"), dtype=x.dtype).t()
                clew.matmul(x, w, out=out)
                np.testing.assert_allclose(out.numpy(), a @ b, **tolerance)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize("m", [4, 9, 64, 513])
@pytest.mark.parametrize("k", [2, 17, 300, 1025])
def test_narrow_products_of_all_layouts(m, k, dtype):
    """Results of few columns go by their rows, or transposed, as the factors lie."""
    for n in range(1, 9):
        a, b = whole(n, m, k), whole(n + 9, k, n)
        want = a @ b
        of = clew.tensor(want).to(getattr(clew, dtype))
        x, w = (clew.tensor(v).to(of.dtype) for v in (a, b))
        for left in (x, x.t().contiguous().t()):
            for right in (w, w.t().contiguous().t(), w.repeat(1, 2)[:, :n]):
                assert (left @ right).equal(of)
                if of.dtype != clew.int32:
                    assert clew.mm(left, right, out=clew.empty(n, m, dtype=of.dtype).t()).equal(of)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("m, k, n", [(7, 8, 8), (64, 20, 16), (64, 300, 32), (3, 5, 2)])
def test_rows_that_are_one_and_the_same(m, k, n, dtype):
    a, row = whole(0, m, k, dtype=dtype), whole(1, 1, n, dtype=dtype)
    want = a @ np.repeat(row, k, axis=0)
    same = clew.tensor(row).expand(k, n)
    left = clew.tensor(a)
    np.testing.assert_array_equal((left @ same).numpy(), want)
    np.testing.assert_array_equal((same.t() @ left.t()).numpy(), want.T)
    bias = clew.tensor(whole(2, n, dtype=dtype))
    got = clew.nn.functional.linear(left, same.t(), bias)
    np.testing.assert_array_equal(got.numpy(), want + bias.numpy())
    into = clew.tensor(whole(3, m, n, dtype=dtype))
    np.testing.assert_array_equal(clew.addmm(into, left, same).numpy(), want + into.numpy())


def test_gradient_of_a_mean_over_rows():
    x = clew.tensor(normal(0, 64, 20))
    v = clew.tensor(normal(1, 16))
    w = clew.tensor(normal(2, 20, 16), requires_grad=True)
    ((x @ w).mean(0) * v).sum().backward()
    np.testing.assert_allclose(
        w.grad.numpy(), np.outer(x.numpy().mean(0), v.numpy()), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("m", [47, 48, 511, 512, 517])
@pytest.mark.parametrize("k, n", [(33, 130), (401, 47), (820, 97)])
def test_each_way_of_a_large_product_reads_each_layout(m: int, k: int, n: int):
    # The number of rows and where the factors are contiguous decide which kernel runs, and whether
    # it packs the first factor or reads it in place.
    rng = np.random.default_rng(m + k + n)
    row = rng.standard_normal(n).astype(np.float32)
    for dtype in (np.float32, np.float64):
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
        loose = 4e-6 if dtype == np.float32 else 1e-14
        for layout_a in ("rows", "columns", "part", "spread", "one row"):
            x = laid_out(a, layout_a) if layout_a != "one row" else clew.tensor(a[0]).expand(m, k)
            xn = a.astype(np.float64) if layout_a != "one row" else np.tile(a[0], (m, 1))
            for layout_b in ("rows", "columns", "part", "spread"):
                w = laid_out(b, layout_b)
                scale = loose * (np.abs(xn) @ np.abs(b) + 3)
                expected = xn @ b.astype(np.float64)
                assert (np.abs((x @ w).numpy() - expected) <= scale).all(), (layout_a, layout_b)
                bias = clew.tensor(row.astype(dtype))
                got = clew.nn.functional.linear(x, w.t(), bias).numpy()
                assert (np.abs(got - expected - row) <= scale).all(), (layout_a, layout_b)


def arranged(values: np.ndarray, how: int) -> clew.Tensor:
    """The values in rows, in columns, with gaps, or with one matrix for the whole batch."""
    t = clew.tensor(values)
    if how == 1:
        return clew.tensor(np.ascontiguousarray(values.swapaxes(-1, -2))).mT
    if how == 2:
        return clew.stack([t, t], -1)[..., 0]
    return t


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("batch", [(1,), (7,), (3, 5), (2, 1, 4), (0,)])
def test_batches_of_rows_and_columns(batch: tuple[int, ...], dtype: str) -> None:
    random = np.random.default_rng(0)
    for m, n in ((1, 1), (1, 5), (1, 40), (2, 1), (17, 1), (33, 1)):
        for k in (1, 2, 3, 7, 8, 9, 31, 100, 200):
            a = (5 * random.standard_normal((*batch, m, k))).astype(dtype)
            b = (5 * random.standard_normal((*batch, k, n))).astype(dtype)
            want = a.astype("float64") @ b
            bound = 1e-12 if dtype == "float64" else 3e-5
            for how in range(9):
                x, y = arranged(a, how // 3), arranged(b, how % 3)
                got = (x @ y).numpy()
                assert got.shape == want.shape and got.dtype == dtype
                assert (abs(got - want) <= bound * (abs(a).astype("float64") @ abs(b))).all()
                if m == n == 1:
                    assert (clew.einsum("...ij,...ji->...", x, y).numpy() == got[..., 0, 0]).all()
            shared = clew.tensor(a[:1]).expand(a.shape) if batch[0] else clew.tensor(a)
            want = np.broadcast_to(a[:1], a.shape).astype("float64") @ b
            assert np.allclose((shared @ clew.tensor(b)).numpy(), want, rtol=1e-4, atol=1e-3)


def test_numbers_are_no_factors_of_a_matrix_product() -> None:
    x = clew.ones(3, 4)
    for other in (2, 2.0, 1j, True, np.float32(2), [1, 2, 3, 4], "a", None):
        with pytest.raises(TypeError, match="unsupported operand"):
            x @ other
        if not isinstance(other, np.generic):
            with pytest.raises(TypeError, match="unsupported operand"):
                other @ x
        y = x
        with pytest.raises(TypeError, match="unsupported operand"):
            y @= other
    assert x.__matmul__(2) is NotImplemented and x.__rmatmul__(2) is NotImplemented
    assert (x @ np.ones((4, 2))).tolist() == [[4.0, 4.0]] * 3
    with pytest.raises(RuntimeError, match="at least one dimension"):
        x @ clew.tensor(2.0)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.complex64])
@pytest.mark.parametrize("size", [(2, 3, 4), (1, 3, 4), (8, 8, 8), (40, 50, 60), (3, 1, 1)])
def test_a_product_times_zero_is_not_made(dtype, size):
    m, k, n = size
    a = clew.full((m, k), float("nan")).to(dtype)
    b = clew.full((k, n), float("inf")).to(dtype)
    c = clew.randn(m, n).to(dtype)
    c[0, 0] = float("inf")
    assert clew.equal(clew.addmm(c, a, b, alpha=0), c)
    assert clew.equal(
        clew.baddbmm(c.expand(3, m, n), a.expand(3, m, k), b.expand(3, k, n), alpha=0),
        c.expand(3, m, n),
    )
    assert clew.equal(clew.addmv(c[:, 0], a, b[:, 0], alpha=0), c[:, 0])
    assert not clew.addmm(c, a, b, alpha=0, beta=0).any()
    half = clew.addmm(c[:, 1:], a, b[:, 1:], alpha=0, beta=0.5)
    assert clew.equal(half, c[:, 1:] * 0.5)
