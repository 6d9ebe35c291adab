"""What PyTorch's dispatcher sees of products, layers and losses."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import clew
from clew import Tensor
from clew._torch._aten import SELU
from clew._torch._lowering_shapes import contiguous, many, reshaped, same_layout, unseen

__all__ = ["RULES"]

Send = Callable[..., Any]

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _linear(send: Send, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    dims, out = len(x.shape), weight.shape[0]
    if bias is not None and dims != 2 and contiguous(x):
        flat = send("view", "default", x, [prod(x.shape[:-1]), x.shape[-1]])
        turned = send("t", "default", weight)
        got = send("addmm", "default", bias, flat, turned)
        return send("view", "default", got, [*x.shape[:-1], out])
    turned = send("t", "default", weight)
    if bias is not None and dims == 2:
        return send("addmm", "default", bias, x, turned)
    got = _matmul(send, x, turned)
    return got if bias is None else send("add", "Tensor", got, bias)


def _matmul(send: Send, x: Tensor, y: Tensor) -> Tensor:
    a, b = len(x.shape), len(y.shape)
    if (a, b) == (1, 1):
        return send("dot", "default", x, y)
    if (a, b) == (2, 1):
        return send("mv", "default", x, y)
    if (a, b) == (1, 2):
        row = send("mm", "default", send("unsqueeze", "default", x, 0), y)
        return send("squeeze_", "dim", row, 0)
    if (a, b) == (2, 2):
        return send("mm", "default", x, y)
    folded = [prod(x.shape[:-1]), x.shape[-1]] if a else []
    if a >= 3 and b in (1, 2) and (y.requires_grad or same_layout(x, folded)):
        flat = reshaped(send, x, folded)
        got = send("mv" if b == 1 else "mm", "default", flat, y)
        return send("_unsafe_view", "default", got, [*x.shape[:-1], *y.shape[1:]])
    if not a or not b:
        return send("matmul", "default", x, y)
    if b == 1:
        got = _matmul(send, x, send("unsqueeze", "default", y, 1))
        return send("squeeze", "dim", got, -1)
    if a == 1:
        got = _matmul(send, send("unsqueeze", "default", x, 0), y)
        return send("squeeze", "dim", got, -2)
    batch = list(clew.broadcast_shapes(x.shape[:-2], y.shape[:-2]))
    many = prod(batch)

    def flat_batch(t: Tensor) -> Tensor:
        wide = send("expand", "default", t, [*batch, *t.shape[-2:]])
        return reshaped(send, wide, [many, *t.shape[-2:]])

    left = flat_batch(x)
    got = send("bmm", "default", left, flat_batch(y))
    return send("_unsafe_view", "default", got, [*batch, x.shape[-2], y.shape[-1]])


def _outer(send: Send, x: Tensor, y: Tensor) -> Tensor:
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise RuntimeError(
            f"outer: both operands must have 1 dimension; got shapes {list(x.shape)} and "
            f"{list(y.shape)}"
        )
    column = send("view", "default", x, [x.shape[0], 1])
    return send("mul", "Tensor", column, y)


def _conv(n: int) -> Callable[..., Any]:
    def rule(
        send: Send,
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        widths = many(dilation, n)
        moves = padding == "same" and set(many(stride, n)) != {1}
        if moves or len(weight.shape) != n + 2 or len(input.shape) not in (n + 1, n + 2):
            wrong = input, weight, bias, stride, padding, dilation, groups
            return unseen(getattr(clew, f"conv{n}d"), *wrong)
        if padding == "valid":
            padding = 0
        elif padding == "same":
            both = [d * (k - 1) for d, k in zip(widths, weight.shape[2:])]
            if any(p % 2 for p in both):
                more = [q for p in reversed(both) for q in (0, p % 2)]
                input = send("constant_pad_nd", "default", input, more)
            padding = [p // 2 for p in both]
        single = len(input.shape) == n + 1
        if single:
            input = send("unsqueeze", "default", input, 0)
        sizes = many(stride, n), many(padding, n), widths
        out = send("convolution", "default", input, weight, bias, *sizes, False, [0] * n, groups)
        return send("squeeze", "dim", out, 0) if single else out

    return rule


def _conv_transpose(n: int) -> Callable[..., Any]:
    def rule(
        send: Send,
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        single = len(input.shape) == n + 1
        if single:
            input = send("unsqueeze", "default", input, 0)
        sizes = many(stride, n), many(padding, n), many(dilation, n)
        more = many(output_padding, n)
        out = send("convolution", "default", input, weight, bias, *sizes, True, more, groups)
        return send("squeeze", "dim", out, 0) if single else out

    return rule


def _attention(
    send: Send,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if len(query.shape) != 4 or enable_gqa or dropout_p:
        return send(
            "scaled_dot_product_attention", "default", query, key, value, attn_mask, dropout_p,
            is_causal, scale=scale, enable_gqa=enable_gqa,
        )  # fmt: skip
    more: dict[str, Any] = {} if attn_mask is None else {"attn_mask": attn_mask}
    if scale is not None:
        more["scale"] = scale
    name = "_scaled_dot_product_flash_attention_for_cpu"
    return send(name, "default", query, key, value, dropout_p, is_causal, **more)[0]


def _batch_norm(
    send: Send,
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    rest = (running_mean, running_var, training, momentum, eps)
    return send("native_batch_norm", "default", input, weight, bias, *rest)[0]


def _layer_norm(
    send: Send, input: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    return send("native_layer_norm", "default", input, list(shape), weight, bias, eps)[0]


def _group_norm(
    send: Send, input: Tensor, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    if len(input.shape) < 2:
        return unseen(clew.nn.functional.group_norm, input, groups, weight, bias, eps)
    n, channels = input.shape[:2]
    places = prod(input.shape[2:])
    sizes = (n, channels, places, groups, eps)
    return send("native_group_norm", "default", input, weight, bias, *sizes)[0]


def _softmax_of(name: str) -> Callable[..., Any]:
    def rule(send: Send, input: Tensor, dim: int, dtype: Any = None, **_: Any) -> Tensor:
        if dtype is not None and dtype != input.dtype:
            input = send("_to_copy", "default", input, dtype=dtype)
        return send(name, "default", input, dim, False)

    return rule


def _nll(
    send: Send, input: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str
) -> Any:
    given = (input, target, weight, _REDUCTIONS[reduction], ignore_index)
    return send("nll_loss_forward", "default", *given)


def _cross_entropy(
    send: Send,
    input: Tensor,
    target: Tensor,
    weight: Any,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Any:
    if smoothing or len(input.shape) != 2:
        given = (input, target, weight, ignore_index, reduction, smoothing)
        return send("_cross_entropy", "default", *given)
    logs = send("_log_softmax", "default", input, 1, False)
    loss, total = _nll(send, logs, target, weight, ignore_index, reduction)
    return loss, input.detach(), total  # what stands between serves the gradient alone


def _dropout(
    send: Send, input: Tensor, p: float = 0.5, train: bool = True, inplace: bool = False, **_: Any
) -> Tensor:
    train = _.get("training", train)
    if not train or p == 0 or not prod(input.shape):
        return input
    noise = send("empty_like", "default", input)
    noise = send("bernoulli_", "float", noise, 1 - p)
    noise = send("div_", "Scalar", noise, 1 - p)
    return send("mul_" if inplace else "mul", "Tensor", input, noise)


def _embedding(
    send: Send, weight: Tensor, indices: Tensor, padding_idx: int = -1, scale: bool = False,
    adjoint: bool = False,
) -> Tensor:  # fmt: skip
    if adjoint:
        return send("_embedding", "default", weight, indices, padding_idx, scale, adjoint)
    more = (padding_idx, scale) if scale else (padding_idx,) if padding_idx != -1 else ()
    return send("embedding", "default", weight, indices, *more)


def _adaptive_avg(n: int) -> Callable[..., Any]:
    def rule(send: Send, input: Tensor, output_size: Any) -> Tensor:
        size = many(output_size, n)
        if n != 1 and all(k == 1 for k in size):
            return send("mean", "dim", input, [-k for k in range(n, 0, -1)], True)
        return send(f"_adaptive_avg_pool{n}d", "default", input, size)

    return rule


def _max_pool(n: int) -> Callable[..., Any]:
    def rule(
        send: Send, input: Tensor, kernel: Any, stride: Any = None, padding: Any = 0,
        dilation: Any = 1, ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        sizes = [many(kernel, n), many(kernel if stride is None else stride, n)]
        more: list[Any] = [many(padding, n), many(dilation, n), ceil_mode]
        if not ceil_mode:  # what has its default at the end is left out
            more.pop()
            if set(more[1]) == {1}:
                more.pop()
                if set(more[0]) == {0}:
                    more.pop()
        return send(f"max_pool{n}d_with_indices", "default", input, *sizes, *more)

    return rule


def _avg_pool(
    send: Send, input: Tensor, kernel_size: Any, stride: Any = None, *args: Any, **kwargs: Any
) -> Tensor:
    n = len(input.shape) - 2
    sizes = [many(kernel_size, n), many(kernel_size if stride is None else stride, n)]
    return send("avg_pool2d", "default", input, *sizes, *args, **kwargs)


def _pad(send: Send, input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    pad = list(pad)
    if mode == "constant":
        return send("constant_pad_nd", "default", input, pad, *(() if value is None else (value,)))
    names = {"reflect": "reflection", "replicate": "replication"}
    if mode not in names:
        return send("pad", "default", input, pad, mode, value)
    return send(f"{names[mode]}_pad{len(pad) // 2}d", "default", input, pad)


def _relu(send: Send, input: Tensor, inplace: bool = False) -> Tensor:
    return send("relu_" if inplace else "relu", "default", input)


def _prelu(send: Send, input: Tensor, weight: Tensor) -> Tensor:
    dims = len(input.shape)
    channels = input.shape[1] if dims > 1 else 1
    slopes = prod(weight.shape)
    if len(weight.shape) > 1 or (slopes != 1 and (not dims or slopes != channels)):
        return unseen(clew.prelu, input, weight)
    if len(weight.shape) == 1 and dims != 1:
        ones = [1] * (dims - 2)
        size = [1, weight.shape[0], *ones][:dims]
        weight = send("view", "default", weight, size)
    return send("_prelu_kernel", "default", input, weight)


def _no_inplace(name: str) -> Callable[..., Any]:
    def rule(send: Send, input: Tensor, *args: Any, inplace: bool = False, **kwargs: Any) -> Tensor:
        if inplace or (args and args[-1] is True):
            return send(name + "_", "default", input, *(a for a in args if a is not True), **kwargs)
        return send(name, "default", input, *(a for a in args if a is not False), **kwargs)

    return rule


def _selu(send: Send, input: Tensor, inplace: bool = False) -> Tensor:
    return send("elu_" if inplace else "elu", "default", input, *SELU)


def _norm(send: Send, x: Tensor, p: Any = "fro", dim: Any = None, *a: Any, **kwargs: Any) -> Tensor:
    if p not in ("fro", 2, 2.0, None) or a or kwargs:
        return send("norm", "default", x, p, dim, *a, **kwargs)
    return send("linalg_vector_norm", "default", x, 2, *(() if dim is None else (dim,)))


def _mse(
    send: Send, x: Tensor, y: Tensor, edge: float, half: float, line: float, mean: bool
) -> Tensor:
    return send("mse_loss", "default", x, y, *(() if mean else (2,)))


def _smooth(
    send: Send, x: Tensor, y: Tensor, edge: float, half: float, line: float, mean: bool
) -> Tensor:
    """Half a square up to `edge`, then a line of slope 1."""
    reduction = () if mean else (2,)
    if (edge, half, line) == (1, 0.5, 1):
        return send("smooth_l1_loss", "default", x, y, *reduction)
    if line == 1:
        return send("smooth_l1_loss", "default", x, y, 1 if mean else 2, edge)
    return send("_smooth_l1_loss", "default", x, y, edge, half, line, mean)


def _huber(
    send: Send, x: Tensor, y: Tensor, edge: float, half: float, line: float, mean: bool
) -> Tensor:
    return send("huber_loss", "default", x, y, 1 if mean else 2, edge)


def _adaptive_max(send: Send, x: Tensor, size: Any) -> Any:
    return send("adaptive_max_pool2d", "default", x, many(size, 2))


RULES: dict[str, Callable[..., Any]] = {
    "linear": _linear, "matmul": _matmul, "outer": _outer,
    "conv1d": _conv(1), "conv2d": _conv(2), "conv3d": _conv(3),
    "conv_transpose1d": _conv_transpose(1), "conv_transpose2d": _conv_transpose(2),
    "conv_transpose3d": _conv_transpose(3), "scaled_dot_product_attention": _attention,
    "batch_norm": _batch_norm, "layer_norm": _layer_norm, "group_norm": _group_norm,
    "softmax": _softmax_of("_softmax"), "log_softmax": _softmax_of("_log_softmax"),
    "_nll_loss": _nll, "_cross_entropy": _cross_entropy, "_mse_loss": _mse,
    "dropout": _dropout, "_embedding": _embedding,
    "adaptive_avg_pool2d": _adaptive_avg(2), "adaptive_avg_pool3d": _adaptive_avg(3),
    "_max_pool2d": _max_pool(2), "_max_pool3d": _max_pool(3), "avg_pool2d": _avg_pool,
    "_adaptive_max_pool2d": _adaptive_max,
    "pad": _pad, "relu": _relu, "prelu": _prelu,
    "relu6": lambda send, x, inplace=False: send(
        "hardtanh_" if inplace else "hardtanh", "default", x, 0.0, 6.0
    ),
    "logsigmoid": lambda send, x: send("log_sigmoid_forward", "default", x)[0],
    "silu": _no_inplace("silu"), "elu": _no_inplace("elu"), "mish": _no_inplace("mish"),
    "hardswish": _no_inplace("hardswish"), "leaky_relu": _no_inplace("leaky_relu"),
    "hardsigmoid": _no_inplace("hardsigmoid"), "hardtanh": _no_inplace("hardtanh"),
    "threshold": _no_inplace("threshold"), "celu": _no_inplace("celu"), "selu": _selu,
    "norm": _norm, "_smooth_l1_loss": _smooth, "_huber_loss": _huber,
    "_binary_cross_entropy_with_logits": lambda send, x, y: send(
        "binary_cross_entropy_with_logits", "default", x, y, None, None, 0
    ),
    "_binary_cross_entropy": lambda send, x, y: send(
        "binary_cross_entropy", "default", x, y, None, 0
    ),
}  # fmt: skip
