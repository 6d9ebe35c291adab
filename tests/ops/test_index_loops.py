"""Gathering, scattering and finding on arrays large enough for threads, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import clew

DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64"]
DTYPES += ["complex128"]
SHAPES = [(0,), (1,), (70001,), (3, 0), (300, 257), (2, 40000), (40000, 2), (17, 33, 129)]


@pytest.fixture(params=[1, 2, 5])
def threads(request):
    before = clew.get_num_threads()
    clew.set_num_threads(request.param)
    yield request.param
    clew.set_num_threads(before)


def numbers(rng, shape, dtype="float32"):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def layouts(array):
    """The same values as a contiguous, a transposed and a strided tensor."""
    yield clew.from_numpy(array.copy())
    if array.ndim > 1:
        yield clew.from_numpy(np.ascontiguousarray(array.swapaxes(0, -1))).transpose(0, -1)
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
    wide[..., 1::2] = array
    yield clew.from_numpy(wide)[..., 1::2]


def same(tensor, array):
    got = tensor.numpy()
    assert got.shape == array.shape
    assert got.dtype == array.dtype
    assert np.array_equal(got, array)


# ---- gather, take ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_picks_along_each_dim(threads, dtype):
    rng = np.random.default_rng(1)
    for shape in [(9001,), (210, 170), (3, 20000), (20000, 3), (9, 41, 130)]:
        array = numbers(rng, shape, dtype)
        for dim in range(len(shape)):
            picks = list(shape)
            picks[dim] = 2 * shape[dim] + 1
            where = rng.integers(0, shape[dim], picks)
            want = np.take_along_axis(array, where, dim)
            for x in layouts(array):
                for i in layouts(where):
                    same(x.gather(dim, i), want)


def test_gather_by_a_broadcast_index(threads):
    rng = np.random.default_rng(2)
    array = numbers(rng, (300, 400))
    x = clew.from_numpy(array)
    column = rng.integers(0, 400, (300, 1))
    i = clew.from_numpy(column).expand(300, 250)
    same(x.gather(1, i), np.take_along_axis(array, np.broadcast_to(column, (300, 250)), 1))
    row = rng.integers(0, 300, (1, 400))
    i = clew.from_numpy(row).expand(200, 400)
    same(x.gather(0, i), np.take_along_axis(array, np.broadcast_to(row, (200, 400)), 0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_take_counts_negative_places_from_the_end(threads, dtype):
    rng = np.random.default_rng(3)
    array = numbers(rng, (130, 70), dtype)
    flat = array.reshape(-1)
    for low in (0, -flat.size):
        where = rng.integers(low, flat.size, (260, 310))
        for x in layouts(array):
            for i in layouts(where):
                same(x.take(i), flat[where])
    same(clew.from_numpy(array).take(clew.zeros((0, 3), dtype=clew.int64)), flat[:0].reshape(0, 3))


def test_what_take_keeps_for_backward_is_not_reached_by_later_writes():
    x = clew.arange(5.0).requires_grad_()
    i = clew.tensor([1, 3, 3])
    y = x.take(i)
    i.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 0, 2, 0]


def test_indexing_by_vectors(threads):
    rng = np.random.default_rng(4)
    array = numbers(rng, (120, 90, 7))
    a, b = rng.integers(-120, 120, 9000), rng.integers(-90, 90, 9000)
    for x in layouts(array):
        same(x[clew.from_numpy(a[:300])], array[a[:300]])
        same(x[clew.from_numpy(a), clew.from_numpy(b)], array[a, b])
        same(x[:, clew.from_numpy(b[:300])], array[:, b[:300]])
        same(x.index_select(2, clew.from_numpy(a % 7)), array[:, :, a % 7])


# ---- scatter -----------------------------------------------------------------------------------


def scattered(array, dim, where, values, add):
    """In the order of the index, one element after another."""
    out = array.copy()
    places = list(np.indices(where.shape, sparse=False).reshape(where.ndim, -1))
    places[dim] = where.reshape(-1)
    values = values[tuple(slice(0, n) for n in where.shape)].reshape(-1)
    if add:
        np.add.at(out, tuple(places), values)
    else:
        at = np.ravel_multi_index(places, out.shape)
        last = np.zeros(out.size, np.int64) - 1
        np.maximum.at(last, at, np.arange(at.size))
        flat = out.reshape(-1)
        flat[last >= 0] = values[last[last >= 0]]
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter_in_the_order_of_the_index(threads, dtype):
    rng = np.random.default_rng(5)
    for shape in [(3001,), (210, 170), (3, 7000), (7000, 3), (9, 21, 130)]:
        array = numbers(rng, shape, dtype)
        for dim in range(len(shape)):
            for fewer in (0, 1):
                picks = [max(n - fewer, 1) for n in shape]
                picks[dim] = 2 * shape[dim] + 1
                where = rng.integers(0, shape[dim], picks)
                values = numbers(rng, [n + 1 for n in picks], dtype)
                want = scattered(array, dim, where, values, add=False)
                src = clew.from_numpy(values)
                for x in layouts(array):
                    for i in layouts(where):
                        same(x.scatter(dim, i, src), want)
                x.scatter_(dim, i, src)
                same(x, want)


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64", "complex64"])
def test_scatter_add_in_the_order_of_the_index(threads, dtype):
    rng = np.random.default_rng(6)
    for shape in [(3001,), (210, 170), (3, 7000), (7000, 3), (9, 21, 130)]:
        array = numbers(rng, shape, dtype)
        for dim in range(len(shape)):
            picks = list(shape)
            picks[dim] = 3 * shape[dim] + 1
            where = rng.integers(0, shape[dim], picks)
            values = numbers(rng, picks, dtype)
            want = scattered(array, dim, where, values, add=True)
            for x in layouts(array):
                for i in layouts(where):
                    same(x.scatter_add(dim, i, clew.from_numpy(values)), want)
            x.scatter_add_(dim, i, clew.from_numpy(values))
            same(x, want)


def test_scatter_of_a_number_and_of_nothing(threads):
    array = numbers(np.random.default_rng(7), (400, 300))
    where = np.random.default_rng(8).integers(0, 300, (400, 5))
    want = array.copy()
    np.put_along_axis(want, where, 2.5, 1)
    x = clew.from_numpy(array)
    same(x.scatter(1, clew.from_numpy(where), 2.5), want)
    nothing = clew.zeros((0, 3), dtype=clew.int64)
    same(x.scatter(1, nothing, x), array)
    same(x.scatter_add(0, nothing, x), array)


# ---- indices out of range ----------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1, 150, 2**40, 2**63 - 1, -(2**63), -(2**63) + 149])
@pytest.mark.parametrize("at", [0, 1023, 1024, 33333, 59999])
def test_the_first_index_out_of_range_is_named(threads, bad, at):
    x = clew.zeros(400, 150)
    i = clew.zeros(60000, dtype=clew.int64)
    i[at:] = bad
    i[at + 1 :] = 999
    grid = i.reshape(400, 150)
    text = f"index {bad} is out of bounds for dimension 1 with size 150"
    for call in (
        lambda: x.gather(1, grid),
        lambda: x.scatter(1, grid, clew.ones(400, 150)),
        lambda: x.scatter_add(1, grid, clew.ones(400, 150)),
        lambda: x.scatter(1, grid, 3),
        lambda: x.half().scatter_add(1, grid, clew.ones(400, 150).half()),
        lambda: x.scatter_add_(1, grid, clew.ones(400, 150)),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert not x.any()
    if bad != -1:
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dim"):
            clew.zeros(150)[i]
        with pytest.raises(IndexError, match=f"take: index {bad} is out of bounds"):
            clew.zeros(150).take(i)
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dim"):
        clew.zeros(150, 3).index_select(0, i)


def test_a_refused_index_leaves_out_as_it_was(threads):
    x, i = clew.ones(400, 150), clew.zeros(400, 150, dtype=clew.int64)
    i[-1, -1] = 150
    out = clew.zeros(400, 150)
    with pytest.raises(RuntimeError, match="out of bounds"):
        clew.gather(x, 1, i, out=out)
    with pytest.raises(RuntimeError, match="out of bounds"):
        clew.scatter(x, 1, i, x, out=out)
    with pytest.raises(IndexError, match="out of bounds"):
        clew.index_select(x, 0, clew.full((400,), 400), out=out)
    assert not out.any()


# ---- finding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("density", [0.0, 0.001, 0.5, 1.0])
def test_nonzero_in_row_major_order(threads, dtype, density):
    rng = np.random.default_rng(9)
    for shape in SHAPES:
        array = (rng.random(shape) < density).astype(dtype)
        want = np.argwhere(array)
        for x in layouts(array):
            same(x.nonzero(), want)
            for got, column in zip(x.nonzero(as_tuple=True), want.T, strict=True):
                same(got, np.ascontiguousarray(column))
        mask = array.astype(bool)
        for m in layouts(mask):
            values = numbers(rng, shape, dtype)
            for x in layouts(values):
                same(x[m], values[mask])
                same(clew.masked_select(x, m), values[mask])


def test_nonzero_of_special_numbers_and_broadcasts(threads):
    special = np.array([0.0, -0.0, np.nan, np.inf, 1e-45, 1.0], np.float32)
    assert clew.from_numpy(special).nonzero().flatten().tolist() == [2, 3, 4, 5]
    row = clew.from_numpy(special).expand(20000, 6)
    same(row.nonzero(), np.argwhere(np.broadcast_to(special, (20000, 6))))
    assert clew.tensor(3).nonzero().shape == (1, 0)
    assert clew.tensor(0).nonzero().shape == (0, 0)


def test_a_mask_made_of_other_bytes_counts_each_once(threads):
    odd = np.tile(np.array([0, 1, 2, 255], np.uint8), 20000)
    mask = clew.from_numpy(odd.view(np.bool_))
    same(mask.nonzero(), np.argwhere(odd))
    assert clew.arange(odd.size)[mask].numel() == 60000


# ---- rows that alternate -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_pixel_shuffle_makes_rows_alternate(threads, dtype, factor):
    rng = np.random.default_rng(10)
    for n, c, h, w in [(1, 1, 1, 7), (3, 2, 5, 8), (4, 8, 33, 57), (0, 1, 4, 9)]:
        array = numbers(rng, (n, c * factor**2, h, w), dtype)
        want = array.reshape(n, c, factor, factor, h, w).transpose(0, 1, 4, 2, 5, 3)
        want = want.reshape(n, c, h * factor, w * factor)
        for x in layouts(array):
            same(clew.nn.functional.pixel_shuffle(x, factor), want)


def test_alternating_copies_into_parts_and_from_broadcasts(threads):
    rng = np.random.default_rng(11)
    array = numbers(rng, (90, 3, 800))
    out = np.zeros((90, 801, 3), np.float32)
    target = clew.from_numpy(out)
    target[:, 1:].copy_(clew.from_numpy(array).transpose(1, 2))
    assert np.array_equal(out[:, 1:], array.swapaxes(1, 2))
    assert not out[:, 0].any()
    row = numbers(rng, (90, 1, 800))
    wide = clew.from_numpy(row).expand(90, 2, 800).transpose(1, 2)
    same(wide.contiguous(), np.ascontiguousarray(np.repeat(row, 2, 1).swapaxes(1, 2)))


# ---- places that are neighbours ----------------------------------------------------------------

PLACES = {
    "reflected": [3, 2, 1, *range(60), 58, 57],
    "slice": list(range(5, 55)),
    "two slices": [*range(40, 60), *range(30)],
    "twice": [*range(60), *range(60)],
    "scattered": [(7 * k) % 60 for k in range(90)],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_selected_runs(threads, dtype, places):
    rng = np.random.default_rng(2)
    for shape in [(60,), (900, 60), (9, 5, 60), (70, 60, 5)]:
        array = numbers(rng, shape, dtype)
        axis = shape.index(60)
        for x in layouts(array):
            same(x.index_select(axis, clew.tensor(places)), array.take(places, axis))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_added_runs(threads, dtype, places):
    rng = np.random.default_rng(3)
    for shape in [(60,), (900, 60), (9, 5, 60), (70, 60, 5)]:
        axis = shape.index(60)
        into = rng.integers(0, 9, shape).astype(dtype)
        added = rng.integers(0, 9, (*shape[:axis], len(places), *shape[axis + 1 :])).astype(dtype)
        want = into.copy()
        np.add.at(np.moveaxis(want, axis, 0), places, np.moveaxis(added, axis, 0))
        for x in layouts(into):
            same(x.index_add(axis, clew.tensor(places), clew.from_numpy(added)), want)
            same(x.clone().index_add_(axis, clew.tensor(places), clew.from_numpy(added)), want)
            same(x.index_add_(axis, clew.tensor(places), clew.from_numpy(added)), want)
        put = into.copy()
        np.moveaxis(put, axis, 0)[places] = np.moveaxis(added, axis, 0)
        if len(set(places)) == len(places):
            for x in layouts(into):
                same(x.index_copy_(axis, clew.tensor(places), clew.from_numpy(added)), put)
