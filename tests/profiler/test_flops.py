"""Formulas against counts that were written out by hand: each term names its loop."""

from __future__ import annotations

import ast

import pytest

import clew
from clew import _C, nn
from clew._ops.flops import _FUNCTIONS, Formula, backward_flops, flops, is_product
from clew._ops.signatures import parse
from clew.profiler import profile
from clew.utils.flop_counter import FlopCounterMode, register_flop_formula

# One multiplication and one addition for each pair that meets.
COUNTED = [
    ("linear", [(8, 32), (64, 32), (64,)], [(8, 64)], 8 * 64 * 32 * 2),
    ("nn.functional.linear", [(2, 3, 5), (7, 5), None], [(2, 3, 7)], 2 * 3 * 7 * 5 * 2),
    ("linear", [(4, 5), (5,), None], [(4,)], 4 * 5 * 2),
    ("mm", [(2, 3), (3, 4)], [(2, 4)], 48),
    ("bmm", [(6, 2, 3), (6, 3, 4)], [(6, 2, 4)], 6 * 48),
    ("matmul", [(5, 1, 2, 3), (7, 3, 4)], [(5, 7, 2, 4)], 35 * 48),
    ("matmul", [(3,), (3,)], [()], 6),
    ("mv", [(2, 3), (3,)], [(2,)], 12),
    ("dot", [(9,), (9,)], [()], 18),
    ("addmm_", [(4,), (2, 3), (3, 4)], [(2, 4)], 48),
    ("baddbmm", [(1,), (6, 2, 3), (6, 3, 4)], [(6, 2, 4)], 6 * 48),
    ("addbmm", [(2, 4), (6, 2, 3), (6, 3, 4)], [(2, 4)], 6 * 48),
    # 10 output places, 4 output channels, 3 input channels, 5 taps.
    ("conv1d", [(2, 3, 14), (4, 3, 5), (4,)], [(2, 4, 10)], 2 * 10 * 4 * 3 * 5 * 2),
    # Two groups: each output channel sees 2 of 4 channels.
    ("_conv", [(1, 4, 8, 8), (6, 2, 3, 3), None], [(1, 6, 6, 6)], 6 * 36 * 2 * 9 * 2),
    # Each of 5 * 7 input elements is spread over 3 channels and 16 taps.
    ("conv_transpose2d", [(1, 5, 7, 1), (5, 3, 4, 4), None], [(1, 3, 10, 4)], 35 * 3 * 16 * 2),
    # The same pairs as forward: (2, 4, 10) gradients meet 3 channels and 5 taps.
    ("_conv_weight", [(2, 4, 10), (2, 3, 14)], [(4, 3, 5)], 2 * 4 * 10 * 15 * 2),
    ("_conv_input", [(2, 4, 10), (4, 3, 5), None], [(2, 3, 14)], 2 * 4 * 10 * 15 * 2),
    # 2 batches, 3 heads: 5 queries on 7 keys of width 4, then values of width 6.
    (
        "scaled_dot_product_attention",
        [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)],
        [(2, 3, 5, 6)],
        2 * 3 * 5 * 7 * (4 + 6) * 2,
    ),
    # 5 steps of 2 rows: 3 -> 4*6 and 6 -> 4*6 weights, 13 for each of 6 units.
    (
        "_recurrent",
        [(5, 2, 3), None, None, (24, 3), (24, 6), None, None, None],
        [(5, 2, 6), (1, 2, 6), (1, 2, 6), (100,)],
        10 * (2 * 24 * 3 + 2 * 24 * 6 + 13 * 6),
    ),
    # Projected from 6 hidden units to a state of 4.
    (
        "_recurrent",
        [(5, 2, 3), None, None, (24, 3), (24, 4), None, None, (4, 6)],
        [(5, 2, 4), (1, 2, 4), (1, 2, 6), (100,)],
        10 * (2 * 24 * 3 + 2 * 24 * 4 + 2 * 4 * 6 + 13 * 6),
    ),
    (
        "_recurrent",  # a GRU: three gates
        [(5, 2, 3), None, None, (18, 3), (18, 6), None, None, None],
        [(5, 2, 6), (1, 2, 6), (0,), (100,)],
        10 * (2 * 18 * 3 + 2 * 18 * 6 + 10 * 6),
    ),
    ("mul", [(4, 1), (1, 5)], [(4, 5)], 20),
    ("mul_", [(4, 5), ()], [(4, 5)], 20),
    ("nn.functional.relu", [(4, 5)], [(4, 5)], 20),
    ("_gelu_backward", [(4, 5), (4, 5)], [(4, 5)], 20),
    ("sum", [(4, 5)], [(4,)], 20),
    ("softmax", [(4, 5)], [(4, 5)], 100),
    ("_native_norm", [(4, 5), (5,), (5,)], [(4, 5), (4,), (4,)], 8 * 20),
    ("_native_norm", [(4, 5), None, None], [(4, 5), (4,), (4,)], 6 * 20),
    ("transpose", [(4, 5)], [(5, 4)], 0),
    ("clone", [(4, 5)], [(4, 5)], 0),
]


@pytest.mark.parametrize("name, ins, outs, expected", COUNTED)
def test_counted_by_hand(name, ins, outs, expected):
    assert flops(name, ins, outs) == expected


def test_attributes_decide_where_shapes_do_not():
    shapes = [(1, 4, 9), (4, 4, 3), None]
    there = flops("convolution", shapes, [(1, 4, 7)], {"transposed": False})
    back = flops("convolution", shapes, [(1, 4, 11)], {"transposed": True})
    assert (there, back) == (7 * 4 * 4 * 3 * 2, 9 * 4 * 4 * 3 * 2)
    assert flops("convolution", shapes, [(1, 4, 7)]) is None


def test_pooling_counts_its_window():
    shapes = [(1, 2, 8, 8)], [(1, 2, 4, 4), (1, 2, 4, 4)]
    assert flops("_max_pool2d", *shapes, {"kernel_size": (2, 2)}) == 2 * 16 * 4
    assert flops("_max_pool2d", *shapes, {"kernel_size": 3}) == 2 * 16 * 9
    assert flops("_max_pool2d", *shapes) is None


def test_unknown_is_not_zero():
    assert flops("MyFunction", [(4, 5)], [(4, 5)]) is None
    assert flops("sort", [(4, 5)], [(4, 5), (4, 5)]) is None
    assert flops("linear", [], []) is None


def test_backward_of_products():
    shapes = [(8, 32), (64, 32), (64,)], [(8, 64)]
    once = 8 * 64 * 32 * 2
    assert backward_flops("linear", *shapes) == 2 * once
    assert backward_flops("linear", *shapes, needs=(False, True, True)) == once
    assert backward_flops("addmm", [(4,), (2, 3), (3, 4)], [(2, 4)]) == 2 * 48
    conv = backward_flops("_conv", [(2, 3, 14), (4, 3, 5), None], [(2, 4, 10)])
    assert conv == 2 * (2 * 10 * 4 * 15 * 2)


def test_backward_of_attention_is_five_products():
    shapes = [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)]
    forward = flops("_attention", shapes, [(2, 3, 5, 4)])
    assert backward_flops("_attention", shapes, [(2, 3, 5, 4)]) == forward // 2 * 5


def test_backward_of_others():
    assert backward_flops("mul", [(4, 5), (4, 5)], [(4, 5)]) == 40
    assert backward_flops("mul", [(4, 5), (4, 5)], [(4, 5)], needs=(True, False)) == 20
    assert backward_flops("add", [(4, 5), (4, 5)], [(4, 5)]) == 0
    assert backward_flops("transpose", [(4, 5)], [(5, 4)]) == 0
    assert backward_flops("MyFunction", [(4, 5)], [(4, 5)]) is None


def test_sparse_products():
    shapes = [(11,), (30,), (30,), (20, 8)]
    assert flops("_sparse_csr_mm", shapes, [(10, 8)]) == 2 * 30 * 8
    assert flops("_sparse_csr_dots", [(11,), (30,), (10, 8), (20, 8)], [(30,)]) == 2 * 30 * 8


# Libraries' algorithms, transforms and recurrences, which PyTorch does not count either.
BEHIND_FUNCTIONS = set(
    """
    _cholesky _cholesky_solve _det _eig _eigh _fft_c2c _fft_c2r _fft_r2c _geqrf _grid_sample
    _grid_sample_grid_grad _grid_sample_input_grad _householder_product _inverse _ldl_factor
    _ldl_solve _lstsq _lu_factor _lu_permutation _lu_solve _lu_unpack _matrix_exp _ormqr _polynomial
    _qr _slogdet _solve _solve_triangular _svd
    """.split()
)
# No arithmetic that could be counted: random numbers, sorting, searching.
UNCOUNTED = set(
    """
    _normal bernoulli poisson multinomial sort topk kthvalue median nanmedian mode searchsorted
    bucketize _binomial_draws _log_gamma_draws nonzero argwhere _nonzero_flat _places _unique
    _unique_dim _unique_consecutive
    """.split()
)


# Written with other ops, and with a formula all the same.
COUNTED_COMPOSITES = set(
    """
    addbmm convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d ger
    inner nn.functional.avg_pool1d nn.functional.scaled_dot_product_attention outer vdot
    """.split()
)


def test_every_kernel_has_a_formula_or_a_reason():
    found = {name for name, (_, text, _, _) in _C._operation_costs.items() if text is not None}
    kinds = _C._operation_kinds
    kernels = {name for name, kind in kinds.items() if kind != "composite"}
    assert kernels - found == UNCOUNTED | BEHIND_FUNCTIONS
    # By name, one overload of these is composite and comes first.
    assert found - kernels == COUNTED_COMPOSITES | {"std", "std_mean", "var", "var_mean"}


@pytest.mark.parametrize("name", sorted(_C._operation_costs))
def test_formulas_name_what_the_signature_has(name):
    signature, forward, backward, _ = _C._operation_costs[name]
    parameters = [p for p in parse(signature)[0] if p.name != "inplace"]
    tensors = [p.name for p in parameters if p.kind.startswith(("Tensor", "Operand"))]
    own = {p.name for p in parameters}
    others = {"result", "results", *_FUNCTIONS}
    assert not own & {*others, "flops", "wanted"}, "a parameter that no formula could name"
    if forward is not None:
        assert set(Formula(forward, tensors).names) <= own | {"result", "results"}
    if backward is not None:
        known = own | {"result", "results", "wanted"} | ({"flops"} if forward else set())
        assert set(Formula(backward, tensors).names) <= known


def test_formulas_are_arithmetic():
    texts = {text for _, *both, _ in _C._operation_costs.values() for text in both if text}
    allowed = (
        *(ast.Expression, ast.BinOp, ast.Mult, ast.Add, ast.Name, ast.Load, ast.Constant, ast.Call),
        *(ast.Subscript, ast.Slice, ast.UnaryOp, ast.USub, ast.IfExp, ast.BoolOp, ast.And),
    )
    for text in texts:
        for node in ast.walk(ast.parse(text, mode="eval")):
            assert isinstance(node, allowed), (text, type(node))


def test_a_misspelt_input_is_no_formula():
    with pytest.raises(ValueError):
        Formula("wanted(inptu) * flops", ["input"])
    assert Formula("numel(inptu)", ["input"]).names == ["inptu"]


def test_products_are_what_pytorch_counts():
    products = {name.rsplit(".", 1)[-1] for name, cost in _C._operation_costs.items() if cost[3]}
    assert products == set(
        """
        matmul mm bmm mv dot vdot linear addmm addmv baddbmm addbmm inner convolution conv1d conv2d
        conv3d conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention _conv
        _conv_input _conv_weight _attention _attention_backward _recurrent _recurrent_backward
        """.split()
    )
    assert is_product("addmm_") and is_product("nn.functional.linear") and not is_product("mul")


def test_no_count_of_a_gradient_that_there_is_not():
    shapes = [(2, 4, 10), (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)]
    assert flops("_attention_backward", shapes, []) is not None
    assert backward_flops("_attention_backward", shapes, []) is None


# FlopCounterMode


def test_counter_counts_products_forward_and_backward(capsys):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

        def forward(self, x):
            return self.second(self.first(x).relu())

    model = Net()
    with FlopCounterMode() as counter:
        model(clew.randn(3, 8)).sum().backward()
    first, second = 2 * 3 * 8 * 16, 2 * 3 * 16 * 4
    assert counter.get_flop_counts() == {
        # The input wants no gradient: one product for the first layer's weight.
        "Global": {"linear": first + second, "LinearBackward0": first + 2 * second},
        "Net": {"linear": first + second, "LinearBackward0": first + 2 * second},
        "Net.first": {"linear": first, "LinearBackward0": first},
        "Net.second": {"linear": second, "LinearBackward0": 2 * second},
    }
    assert counter.get_total_flops() == 2 * first + 3 * second
    shown = capsys.readouterr().out
    assert "Net.second" in shown and "100.00%" in shown
    assert "Net.second" not in counter.get_table(depth=1)


def test_counter_takes_formulas():
    mapping = {"sin": lambda x, out_shape: 7 * x[0] + out_shape[0]}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        clew.ones(5).sin().cos()
    assert counter.get_flop_counts() == {"Global": {"sin": 40}}


def test_registered_formulas():
    @register_flop_formula(["sinc", "erf"])
    def formula(x, *, out_shape):
        return 3 * out_shape[0]

    with FlopCounterMode(display=False) as counter:
        clew.ones(5).sinc().erf()
    assert counter.get_flop_counts()["Global"] == {"sinc": 15, "erf": 15}
    with pytest.raises(NotImplementedError, match="get_raw"):
        register_flop_formula("sinc", get_raw=True)


def test_counter_is_no_profile_within_another():
    with profile(), pytest.raises(RuntimeError, match="another profiler"):
        FlopCounterMode(display=False).__enter__()
    with FlopCounterMode(display=False) as counter:
        pass
    assert counter.get_total_flops() == 0
