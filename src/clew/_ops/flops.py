"""How many floating-point operations an op takes, from the shapes of its tensors.

A multiplication and an addition count as one each, so a product of (n, k) and (k, m) takes
2 * n * k * m, as in PyTorch; additions of a bias are left out there, as PyTorch leaves them out.
An elementwise op counts one for each element it makes, whatever its function; views and copies
count nothing. What no formula is known for gives None.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from clew import _C

__all__ = ["backward_flops", "flops"]

Shape = Sequence[int]
# Shapes of the inputs, None for one that was not given; of the outputs; the other arguments.
Formula = Callable[[Sequence[Shape], Sequence[Shape], Mapping[str, Any]], "int | None"]


def _product(first: int) -> Formula:
    """Of a product of inputs `first` and the one after it: their inner size for each element."""

    def formula(ins: Any, outs: Any, attrs: Any) -> int:
        return 2 * prod(outs[0]) * int(ins[first][-1])

    return formula


def _summed_batches(ins: Any, outs: Any, attrs: Any) -> int:
    return 2 * prod(ins[1]) * int(ins[2][-1])


def _inner(ins: Any, outs: Any, attrs: Any) -> int:
    return 2 * prod(outs[0]) * (int(ins[0][-1]) if ins[0] and ins[1] else 1)


def _convolution(ins: Any, outs: Any, attrs: Any) -> int:
    return 2 * prod(outs[0]) * prod(ins[1][1:])


def _transposed_convolution(ins: Any, outs: Any, attrs: Any) -> int:
    return 2 * prod(ins[0]) * prod(ins[1][1:])


def _any_convolution(ins: Any, outs: Any, attrs: Any) -> int | None:
    if "transposed" not in attrs:
        return None
    rule = _transposed_convolution if attrs["transposed"] else _convolution
    return rule(ins, outs, attrs)


def _convolution_weight(ins: Any, outs: Any, attrs: Any) -> int:
    return 2 * prod(ins[0]) * prod(outs[0][1:])


def _attention_sizes(query: Shape, key: Shape, value: Shape) -> tuple[int, int, int]:
    """Scores of all heads, and the widths of keys and values."""
    return prod(query[:-1]) * int(key[-2]), int(query[-1]), int(value[-1])


def _attention(ins: Any, outs: Any, attrs: Any) -> int:
    scores, width, value_width = _attention_sizes(*ins[:3])
    return 2 * scores * (width + value_width)


def _attention_backward(ins: Any, outs: Any, attrs: Any) -> int:
    # The scores once more, and the gradients of scores, values, queries and keys.
    scores, width, value_width = _attention_sizes(*ins[1:4])
    return 2 * scores * (3 * width + 2 * value_width)


# Arithmetic of one hidden unit, by the number of gates: sums, activations, the new state.
_GATE_WORK = {4: 13, 3: 10, 1: 2}


def _gates(per_unit: int) -> Formula:
    return lambda ins, outs, attrs: per_unit * prod(outs[0])


def _recurrent_parts(w_hh: Shape, w_hr: Shape | None) -> tuple[int, int]:
    """Weights of the state's products, and the gates' arithmetic, for one row."""
    hidden = int(w_hr[1] if w_hr is not None else w_hh[1])
    weights = prod(w_hh) + (prod(w_hr) if w_hr is not None else 0)
    return weights, _GATE_WORK[int(w_hh[0]) // hidden] * hidden


def _recurrent(ins: Any, outs: Any, attrs: Any) -> int:
    weights, gates = _recurrent_parts(ins[4], ins[7] if len(ins) > 7 else None)
    return prod(ins[0][:-1]) * (2 * (prod(ins[3]) + weights) + gates)


def _recurrent_backward(ins: Any, outs: Any, attrs: Any) -> int:
    # Through the states; the products that make the weights' gradients are ops of their own.
    weights, gates = _recurrent_parts(ins[5], ins[6])
    return prod(ins[7][:-1]) * (2 * weights + 2 * gates)


def _per_input(times: int, which: int = 0) -> Formula:
    return lambda ins, outs, attrs: times * prod(ins[which])


def _norm(ins: Any, outs: Any, attrs: Any) -> int:
    # Mean, variance, scaled difference; weight and bias where there are some.
    return (6 + sum(s is not None for s in ins[1:3])) * prod(ins[0])


def _rms_norm(ins: Any, outs: Any, attrs: Any) -> int:
    # Squares and their sum, the quotient, the weight.
    return (3 + (len(ins) > 1 and ins[1] is not None)) * prod(ins[0])


def _sampling(ins: Any, outs: Any, attrs: Any) -> int:
    # A product and a sum for each channel and each place of a point.
    return 2 * ins[0][1] * prod(ins[1])


def _norm_backward(ins: Any, outs: Any, attrs: Any) -> int:
    weighted = len(ins) > 4 and ins[4] is not None
    return (9 + weighted) * prod(ins[1])


def _pool(per: Callable[[Any, Any], Shape]) -> Formula:
    """Of pooling: the window for each place, in `per(ins, outs)`, that it is laid on."""

    def formula(ins: Any, outs: Any, attrs: Any) -> int | None:
        window = attrs.get("kernel_size")
        if window is None:
            return None
        places = per(ins, outs)
        rank = len(places) - 2 if len(places) > 2 else 1
        points = prod(window) if isinstance(window, Sequence) else int(window) ** rank
        return prod(places) * points

    return formula


def _table(rules: dict[str, Formula]) -> dict[str, Formula]:
    return {name: rule for names, rule in rules.items() for name in names.split()}


# What matrix products cost: these are the ops that PyTorch's FlopCounterMode counts.
PRODUCTS = _table(
    {
        "matmul mm bmm mv dot vdot": _product(0),
        "linear": lambda ins, outs, attrs: 2 * prod(outs[0]) * int(ins[1][-1]),
        "addmm addmv baddbmm": _product(1),
        "addbmm": _summed_batches,
        "inner": _inner,
        "_conv conv1d conv2d conv3d": _convolution,
        "_conv_input conv_transpose1d conv_transpose2d conv_transpose3d": _transposed_convolution,
        "convolution": _any_convolution,
        "_conv_weight": _convolution_weight,
        "_attention scaled_dot_product_attention": _attention,
        "_attention_backward": _attention_backward,
        "_recurrent": _recurrent,
        "_recurrent_backward": _recurrent_backward,
    }
)
_OTHERS = _table(
    {
        "_lstm_gates": _gates(13),
        "_lstm_gates_backward": lambda ins, outs, attrs: 26 * prod(outs[1]),
        "_gru_gates": _gates(10),
        "_gru_gates_backward": lambda ins, outs, attrs: 20 * prod(outs[2]),
        "_sparse_csr_mm": lambda ins, outs, attrs: 2 * prod(ins[1]) * int(ins[3][1]),
        "_sparse_csr_dots": lambda ins, outs, attrs: 2 * prod(ins[1]) * int(ins[2][1]),
        "outer ger": lambda ins, outs, attrs: prod(outs[0]),
        "softmax log_softmax": _per_input(5),
        "_softmax_backward _log_softmax_backward": _per_input(4),
        "logsumexp _cross_entropy": _per_input(4),
        "_nll_loss": _per_input(2, 1),
        "_mse_loss _smooth_l1_loss _huber_loss": _per_input(4),
        "_binary_cross_entropy _binary_cross_entropy_with_logits": _per_input(6),
        "_nll_loss_backward": _per_input(1, 1),
        "glu": lambda ins, outs, attrs: 5 * prod(outs[0]),
        "_embedding_bag": lambda ins, outs, attrs: 2 * int(ins[1][0]) * int(ins[0][1]),
        "_resample": lambda ins, outs, attrs: 2 * prod(outs[0]) * int(ins[1][1]),
        "_resample_backward": lambda ins, outs, attrs: 2 * prod(ins[0]) * int(ins[1][1]),
        "_cdist": lambda ins, outs, attrs: 3 * prod(outs[0]) * int(ins[0][-1]),
        "_cdist_backward": lambda ins, outs, attrs: 6 * prod(ins[0]) * int(ins[2][-1]),
        "_pdist": lambda ins, outs, attrs: 3 * prod(outs[0]) * int(ins[0][-1]),
        "_pdist_backward": lambda ins, outs, attrs: 6 * prod(ins[0]) * int(ins[2][-1]),
        "_ctc_loss": lambda ins, outs, attrs: 12 * prod(outs[1]),
        "_ctc_loss_backward": _per_input(16, 6),
        "_native_norm _native_batch_norm": _norm,
        "_rms_norm": _rms_norm,
        "_native_norm_backward _native_batch_norm_backward": _norm_backward,
        "_native_norm_weight_backward _native_batch_norm_weight_backward": _per_input(5, 1),
        "sum mean prod nansum max min amax amin any all argmax argmin count_nonzero": _per_input(1),
        "cumsum cumprod cummax cummin _reverse_cumsum": _per_input(1),
        "linalg.vector_norm vector_norm": _per_input(2),
        "logcumsumexp": _per_input(3),
        "var std var_mean std_mean": _per_input(4),
        "_max_pool1d _max_pool2d _max_pool3d _avg_pool1d avg_pool1d avg_pool2d avg_pool3d": _pool(
            lambda ins, outs: outs[0]
        ),
        "_avg_pool_backward": _pool(lambda ins, outs: ins[0]),
        "_adaptive_avg_pool_backward": lambda ins, outs, attrs: prod(outs[0]),
        "_adaptive_max_pool1d _adaptive_max_pool2d _adaptive_max_pool3d": _per_input(1),
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d": _per_input(1),
        "_masked_dropout _dropout_backward": _per_input(2),
        # Additions into places that several elements may share.
        "_gather_weighted _gather_dots _scatter_weighted": _sampling,
        "_pool_scatter fold _unfold_backward _embedding_backward": _per_input(1),
        "scatter_add scatter_reduce": _per_input(1, -1),
    }
)
# Elements are moved or looked at, not computed with.
_MOVES = frozenset(
    """
    _cat _constant_pad _contiguous _diagonal_backward _embedding _getitem_backward _index
    _index_put _pool_gather _restride _select_backward _slice_backward _to_dtype _where clone
    _sparse_csr_mirror complex flip gather scatter stack tril triu unfold view view_as_complex
    view_as_real
    """.split()
)


@functools.cache
def _kinds() -> dict[str, str]:
    """The native ops' kinds, also under their names without the module."""
    known = _C._operation_kinds
    return {**{name.rsplit(".", 1)[-1]: kind for name, kind in known.items()}, **known}


def _known_name(name: str) -> str:
    """The name in the tables: without module, and without the _ of an in-place form."""
    short = name.rsplit(".", 1)[-1]
    if short in PRODUCTS or short in _OTHERS or not short.endswith("_"):
        return short
    return short[:-1]


def flops(
    op_name: str,
    input_shapes: Sequence[Shape | None],
    output_shapes: Sequence[Shape],
    attributes: Mapping[str, Any] | None = None,
) -> int | None:
    """The floating-point operations of one call.

    Args:
        op_name: the op's name ("linear", "nn.functional.linear", "mul_").
        input_shapes: of its tensor arguments, in the signature's order; None where one is absent.
        output_shapes: of its results.
        attributes: its other arguments by name; pooling and `convolution` need them.

    Returns: the count, 0 for views and copies, or None where no formula is known or the formula
    needs an argument that is not there. Ops that consist of others (`layer_norm`) give None: their
    parts count.

    >>> from clew._ops.flops import flops
    >>> flops("linear", [(8, 32), (64, 32), (64,)], [(8, 64)])
    32768
    """
    name = _known_name(op_name)
    formula = PRODUCTS.get(name) or _OTHERS.get(name)
    if formula is not None:
        try:
            return formula(input_shapes, output_shapes, attributes or {})  # type: ignore[arg-type]
        except (IndexError, TypeError, KeyError):
            return None  # shapes that no call of this op has
    if name in _MOVES:
        return 0
    kind = _kinds().get(name)
    if kind == "elementwise":
        return prod(output_shapes[0]) if output_shapes else None
    return 0 if kind == "view" else None


def _needed(needs: Sequence[bool] | None, which: Sequence[int]) -> int:
    return len(which) if needs is None else sum(bool(needs[i]) for i in which if i < len(needs))


# The two factors among the inputs: the gradient of each is one product of the same size.
_FACTORS = {
    "addmm": (1, 2),
    "addmv": (1, 2),
    "baddbmm": (1, 2),
    "addbmm": (1, 2),
}
# Their gradient is passed on as it is.
_PASS_ON = frozenset("add sub subtract rsub positive clone sum mean _to_dtype _contiguous".split())


def backward_flops(
    op_name: str,
    input_shapes: Sequence[Shape | None],
    output_shapes: Sequence[Shape],
    attributes: Mapping[str, Any] | None = None,
    needs: Sequence[bool] | None = None,
) -> int | None:
    """The floating-point operations of one call's gradient rule.

    Args:
        op_name: the op's name.
        input_shapes: of the forward call.
        output_shapes: of the forward call.
        attributes: of the forward call.
        needs: for each input, whether its gradient is wanted; all of them when not given.

    Returns: the count, or None where no formula is known.

    >>> from clew._ops.flops import backward_flops
    >>> backward_flops("linear", [(8, 32), (64, 32), (64,)], [(8, 64)])
    65536
    """
    name = _known_name(op_name)
    ins = list(input_shapes)
    if name in ("_attention", "scaled_dot_product_attention"):
        return flops("_attention_backward", [None, *ins[:3]], ins[:3], attributes)  # type: ignore
    if name == "_recurrent":
        # Every weight is used twice: for its own gradient and for what lies before it.
        forward = flops(name, ins, output_shapes, attributes)
        return None if forward is None else 2 * forward
    if name in PRODUCTS:
        forward = flops(name, ins, output_shapes, attributes)
        wanted = _needed(needs, _FACTORS.get(name, (0, 1)))
        return None if forward is None else wanted * forward
    if name in _PASS_ON:
        return 0
    shape = ins[0] if ins else None
    if shape is None:
        return None
    if name in ("softmax", "log_softmax"):
        return 4 * prod(shape)
    if name == "_cross_entropy":
        return 3 * prod(shape)
    if name in ("_native_norm", "_native_batch_norm"):
        weighted = len(ins) > 1 and ins[1] is not None
        return (9 + 6 * weighted) * prod(shape)
    if name == "_rms_norm":
        weighted = len(ins) > 1 and ins[1] is not None
        return (7 + 3 * weighted) * prod(shape)
    if name in _MOVES:
        return 0
    kind = _kinds().get(name)
    if kind == "elementwise":
        return _needed(needs, range(len(ins))) * prod(output_shapes[0])
    return 0 if kind == "view" else None
