"""Small functions and methods that the generic suite does not fit: predicates, in-place forms,
Python functions of elements.
"""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import nn

# Top-level functions that are tested here instead of by samples.
TESTED_HERE = {
    "alpha_dropout_",
    "as_strided_",
    "detach_",
    "dropout_",
    "empty_permuted",
    "feature_alpha_dropout_",
    "feature_dropout_",
    "get_device",
    "is_conj",
    "is_inference",
    "is_neg",
    "is_same_size",
    "is_signed",
    "resize_as_",
    "slice_inverse",
    # Switches: tests/test_small_names.py.
    "get_deterministic_debug_mode",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_deterministic_debug_mode",
    "set_warn_always",
    # tests/torch_names/test_legacy_types.py.
    "from_file",
    "set_default_tensor_type",
}


def test_predicates():
    x = clew.ones(2)
    with clew.inference_mode():
        inside = clew.ones(2)
    assert clew.is_inference(inside) and not clew.is_inference(x)
    assert clew.is_signed(x) and not clew.is_signed(clew.tensor([1], dtype=clew.uint8))
    assert clew.is_conj(clew.tensor(1j).conj()) and not x.is_conj()
    assert not clew.is_neg(x) and not x.is_neg()
    assert clew.is_same_size(x, clew.zeros(2)) and not clew.is_same_size(x, clew.zeros(3))
    assert clew.get_device(x) == -1
    assert clew.tensor(3.0).is_nonzero() and not clew.tensor(0).is_nonzero()
    base = clew.arange(6).reshape(2, 3)
    assert base[0].is_set_to(base[0]) and not base[0].is_set_to(base[1])
    for f in (clew.is_conj, clew.is_neg, clew.is_inference, clew.is_signed, clew.get_device):
        with pytest.raises(TypeError, match="must be Tensor"):
            f(3)


def test_in_place_functions_return_their_tensor():
    x = clew.ones(4)
    assert clew.zero_(x) is x and not x.any()
    assert clew.fill_(x, 2) is x and x.tolist() == [2.0] * 4
    assert clew.as_strided_(x, (2,), (2,)) is x and x.shape == (2,)
    y = clew.ones(2, requires_grad=True) * 2
    assert clew.detach_(y) is y and not y.requires_grad


@pytest.mark.parametrize("name", ["dropout_", "alpha_dropout_", "feature_dropout_"])
def test_dropout_in_place(name: str):
    x = clew.ones(50, 40)
    clew.manual_seed(0)
    assert getattr(clew, name)(x, 0.5, True) is x
    assert 0.3 < (x == x.amax()).float().mean() < 0.7
    y = clew.ones(50, 40)
    getattr(clew, name)(y, 0.5, False)
    assert (y == 1).all()


def test_feature_alpha_dropout_in_place_drops_whole_features():
    x = clew.ones(50, 40, 3)
    clew.feature_alpha_dropout_(x, 0.5, True)
    assert (x == x[..., :1]).all() and len(x.unique()) == 2


def test_resize_as_and_slice_inverse():
    x = clew.arange(4)
    assert clew.resize_as_(x, clew.zeros(2, 2)) is x and x.shape == (2, 2)
    assert x.resize_as_(clew.zeros(1)).tolist() == [0]
    base = clew.arange(6)
    part = base[2:5]
    assert clew.slice_inverse(part, base, 0, 2, 5).tolist() == list(range(6))


def test_empty_permuted():
    x = clew.empty_permuted((2, 3, 4), (2, 0, 1), dtype=clew.float64, requires_grad=True)
    assert (x.shape, x.stride(), x.dtype) == ((2, 3, 4), (3, 1, 6), clew.float64)
    assert x.requires_grad and x.is_leaf and x.dim_order() == (2, 0, 1)
    with pytest.raises(RuntimeError, match="must be equal"):
        clew.empty_permuted((2, 3), (0,))
    with pytest.raises(RuntimeError, match="each dimension once"):
        clew.empty_permuted((2, 3), (0, 0))


def test_sum_to_size():
    x = clew.arange(24.0).reshape(2, 3, 4).requires_grad_()
    want = x.detach().numpy().sum((0, 2)).reshape(3, 1)
    got = x.sum_to_size(3, 1)
    np.testing.assert_allclose(got.detach().numpy(), want)
    (g,) = clew.autograd.grad(got, x, clew.tensor([[1.0], [2.0], [3.0]]))
    np.testing.assert_allclose(g.numpy()[1, :, 3], [1, 2, 3])
    assert x.sum_to_size((2, 3, 4)).shape == (2, 3, 4)
    assert x.sum_to_size([]).shape == ()
    for wrong in ((5,), (1, 1, 1, 1), (2, 3, 2)):
        with pytest.raises(RuntimeError, match="not expandable"):
            x.sum_to_size(wrong)
    with pytest.raises(TypeError):
        x.sum_to_size()


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (7, 3), (3, 3, 3), (0, 3)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape: tuple[int, ...], wrap: bool):
    want = np.zeros(shape)
    if want.size:
        np.fill_diagonal(want, 5, wrap)
    x = clew.zeros(shape)
    assert x.fill_diagonal_(5, wrap) is x
    np.testing.assert_array_equal(x.numpy(), want)
    y = clew.zeros(*shape[::-1]).permute(*range(len(shape) - 1, -1, -1))
    np.testing.assert_array_equal(y.fill_diagonal_(5, wrap).numpy(), want)


def test_fill_diagonal_has_a_gradient_and_checks():
    x = clew.ones(2, 2, requires_grad=True)
    (x * 2).fill_diagonal_(0).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0], [2.0, 0.0]]
    with pytest.raises(RuntimeError, match="larger than 1"):
        clew.ones(3).fill_diagonal_(1)
    with pytest.raises(RuntimeError, match="equal length"):
        clew.ones(3, 3, 2).fill_diagonal_(1)


def test_python_functions_of_elements():
    x = clew.arange(6).reshape(2, 3).t()
    assert x.map2_(clew.tensor([10, 20]), clew.tensor(1), lambda a, b, c: a * b + c) is x
    assert x.tolist() == [[1, 61], [11, 81], [21, 101]]
    one, leaf = clew.ones(1), clew.ones(1, requires_grad=True)
    for tensors in ((leaf, one, one), (one, leaf, one), (one, one, leaf)):
        with pytest.raises(RuntimeError, match="no gradient goes through"):
            tensors[0].map2_(*tensors[1:], lambda a, b, c: a)


def test_new_and_module_load():
    x = clew.tensor([1.5], dtype=clew.float64)
    assert x.new(2, 3).shape == (2, 3) and x.new([1, 2]).dtype is clew.float64
    assert x.new(clew.Size([2])).shape == (2,) and x.new().shape == (0,)
    assert x.new(size=(2, 3)).shape == (2, 3) and x.new(size=[2]).dtype is clew.float64
    with pytest.raises(TypeError, match="takes the place"):
        x.new(1, size=(2,))
    # Memory that is given is shared.
    for given in (x, x.storage(), x.untyped_storage()):
        made = x.new(given)
        assert made.dtype is x.dtype and made.data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="new: expected a tensor of clew.float64"):
        x.new(clew.ones(2).long())
    with pytest.raises(RuntimeError, match="new: expected a storage of clew.float64"):
        x.new(clew.ones(2).storage())
    assert x.module_load(clew.ones(1)).tolist() == [1.0] and x.tolist() == [1.0]
    assert x.module_load(clew.zeros(1), assign=True).tolist() == [0.0] and x.tolist() == [1.0]
    assert (2.0).__rtruediv__(4.0) == 2.0 and clew.tensor(2.0).__rdiv__(4.0).item() == 2.0
    assert x.chalf().dtype is clew.complex32


def same(a: clew.Tensor, b: clew.Tensor) -> None:
    np.testing.assert_allclose(a.numpy(), b.numpy())


def test_native_batch_norm_with_running_statistics():
    clew.manual_seed(1)
    x, w, b, mean, var = clew.randn(4, 6), clew.randn(6), clew.randn(6), clew.randn(6), clew.rand(6)
    out, m, v = clew.native_batch_norm(x, w, b, mean, var, False, 0.1, 1e-3)
    same(out, nn.functional.batch_norm(x, mean, var, w, b, False, 0.1, 1e-3))
    assert m.shape == v.shape == (0,)


def test_grid_sampler_takes_modes_as_numbers():
    image, grid = clew.randn(2, 3, 4, 5), clew.rand(2, 3, 3, 2) * 2 - 1
    grid_sample = nn.functional.grid_sample
    same(
        clew.grid_sampler(image, grid, 2, 1, True),
        grid_sample(image, grid, "bicubic", "border", True),
    )
    same(
        clew.grid_sampler_2d(image, grid, 1, 2, False),
        grid_sample(image, grid, "nearest", "reflection", False),
    )
    with pytest.raises(RuntimeError, match="5 dimensions"):
        clew.grid_sampler_3d(image, grid, 0, 0, False)
    with pytest.raises(ValueError, match="interpolation_mode"):
        clew.grid_sampler(image, grid, 3, 0, False)
    with pytest.raises(TypeError, match="padding_mode"):
        clew.grid_sampler(image, grid, 0, "zeros", False)


def test_embedding_bag_of_a_table():
    table, rows, starts = clew.randn(5, 2), clew.tensor([0, 3, 4, 3]), clew.tensor([0, 3])
    bags, owner, sizes, _ = clew.embedding_bag(table, rows, starts, False, 1, padding_idx=3)
    same(bags, nn.functional.embedding_bag(rows, table, starts, mode="mean", padding_idx=3))
    assert owner.tolist() == [0, 0, 0, 1] and sizes.tolist() == [2, 0]


def test_operations_by_their_names_in_compiled_graphs():
    aten = clew.ops.aten
    x = clew.tensor([[-1.0, 2.0], [3.0, -4.0]])
    assert aten.relu.default(x).tolist() == x.relu().tolist() == aten.relu(x).tolist()
    assert aten.add.Tensor(x, x, alpha=2).tolist() == (3 * x).tolist()
    assert aten._safe_softmax.default(x - clew.inf, 1).tolist() == [[0.0, 0.0]] * 2
    assert aten.slice.Tensor(x, 1, 1).tolist() == [[2.0], [-4.0]]
    assert aten.expand.default(clew.ones(1), (2,)).shape == (2,)
    assert aten.relu is clew.ops.aten.relu and "aten.relu" in repr(aten.relu)
    for name in ("no_such_operation", "float32", "Tensor", "__wrapped__"):
        with pytest.raises(AttributeError):
            getattr(aten, name)


def test_upsampling_with_scales_and_a_size():
    x = clew.randn(1, 2, 6, 8)
    same(
        clew._upsample_bilinear2d_aa(x, (3, 4), False, scales_h=0.5, scales_w=0.5),
        nn.functional.interpolate(x, (3, 4), mode="bilinear", antialias=True),
    )
    with pytest.raises(ValueError, match="output_size"):
        clew._upsample_bilinear2d_aa(x, None, False, scales_h=0.5)


def test_dim_order_tells_whether_it_is_the_only_one():
    formats = [clew.contiguous_format, clew.channels_last]
    plain, one = clew.ones(2, 3, 4, 5), clew.ones(2, 1, 4, 5)
    last = plain.to(memory_format=clew.channels_last)
    for check in (True, [], formats):
        assert plain.dim_order(ambiguity_check=check) == (0, 1, 2, 3)
        assert last.dim_order(ambiguity_check=check) == (0, 2, 3, 1)
    assert one.dim_order() == one.dim_order(ambiguity_check=formats[:1]) == (0, 1, 2, 3)
    for check in (True, [], formats):  # it lies in both formats
        with pytest.raises(RuntimeError, match="ambiguous"):
            one.dim_order(ambiguity_check=check)
    with pytest.raises(RuntimeError, match="ambiguous"):
        clew.ones(1).expand(3, 4).dim_order(ambiguity_check=True)
    for check in ("ABCD", [clew.float32], 1):
        with pytest.raises(TypeError, match="bool or a list of memory formats"):
            plain.dim_order(ambiguity_check=check)


def test_signs_of_wide_unsigned_dtypes():
    for dtype in (clew.uint8, clew.uint16, clew.uint32, clew.uint64, clew.bool):
        assert clew.is_signed(clew.zeros(1, dtype=dtype)) is dtype.is_signed is False
    assert clew.is_signed(clew.zeros(1, dtype=clew.int8))


@pytest.mark.parametrize("power", [0, 1, 2, float("inf")])
def test_norms_of_single_numbers(power):
    v = clew.tensor([-3.0, 0.0, 2.0])
    want = [float(x != 0) if power == 0 else abs(x) for x in v.tolist()]
    assert clew.norm_except_dim(v, power).tolist() == want
    assert clew.norm_except_dim(v[:, None], power).flatten().tolist() == want
