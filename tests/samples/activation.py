"""Activations and their fused gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from samples import FLOATS, FLOATS_32_64, E, Op, S, also, sigmoid


def act(name: str, f: Callable[..., Any], *calls: dict[str, Any], **more: Any) -> Op:
    """An activation, at numbers away from multiples of 0.1, once for each set of keywords."""

    def samples(r: Any) -> list[S]:
        found = [S(r.distinct((5, 8)) * 2), S(r.normal(())), S(r.normal((0, 3)))]
        return found + [S(r.distinct((4, 9)) * 2, **call) for call in calls]

    return Op(name, f, samples, dtypes=FLOATS, **more)


def backward(name: str, slope: Callable[..., Any], *args: Any) -> Op:
    def samples(r: Any) -> list[S]:
        return [
            S(r.normal((4, 9)), r.distinct((4, 9)) * 2, *args),
            S(r.normal(()), r.normal(()), *args),
        ]

    return Op(name, lambda g, x, *rest: g * slope(x, *rest), samples, dtypes=FLOATS_32_64)


def relu(x: Any, inplace: bool = False) -> Any:
    return np.maximum(x, 0)


def gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * sp.ndtr(x)


def gelu_slope(x: Any) -> Any:
    return sp.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def gelu_tanh_slope(x: Any) -> Any:
    k = np.sqrt(2 / np.pi)
    t = np.tanh(k * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x)


def silu(x: Any, inplace: bool = False) -> Any:
    return x * sigmoid(x)


def silu_slope(x: Any) -> Any:
    return sigmoid(x) * (1 + x * (1 - sigmoid(x)))


def mish(x: Any, inplace: bool = False) -> Any:
    return x * np.tanh(np.logaddexp(0, x))


def mish_slope(x: Any) -> Any:
    t = np.tanh(np.logaddexp(0, x))
    return t + x * sigmoid(x) * (1 - t * t)


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return np.where(beta * x > threshold, x, np.logaddexp(0, beta * x) / beta)


def elu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def celu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


def selu(x: Any, inplace: bool = False) -> Any:
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def scaled_elu(x: Any, alpha: float, scale: float, inner: float) -> Any:
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * inner))


def scaled_elu_slope(x: Any, alpha: float, scale: float, inner: float) -> Any:
    return scale * np.where(x > 0, 1, alpha * inner * np.exp(np.minimum(x, 0) * inner))


def leaky_relu(x: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return np.where(x > 0, x, negative_slope * x)


def prelu(x: Any, weight: Any) -> Any:
    if weight.ndim == 1 and weight.size > 1:
        weight = weight.reshape((1, -1) + (1,) * (x.ndim - 2))
    return np.where(x > 0, x, weight * x)


def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    return np.clip(x, min_val, max_val)


def hardsigmoid(x: Any, inplace: bool = False) -> Any:
    return np.clip(x + 3, 0, 6) / 6


def hardswish(x: Any, inplace: bool = False) -> Any:
    return x * hardsigmoid(x)


def hardswish_slope(x: Any) -> Any:
    return np.where(x <= -3, 0, np.where(x >= 3, 1, x / 3 + 0.5))


def softshrink(x: Any, lambd: float = 0.5) -> Any:
    return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)


def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    return np.where(np.abs(x) > lambd, x, 0)


def threshold(x: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    return np.where(x > threshold, x, value)


def glu(x: Any, dim: int = -1) -> Any:
    a, b = np.split(x, 2, axis=dim)
    return a * sigmoid(b)


def threshold_samples(r: Any) -> list[S]:
    return [S(r.distinct((4, 9)), 0.25, 7.0), S(r.normal(()), 0, 1)]


PRELU = Op(
    "prelu",
    prelu,
    lambda r: [
        S(r.distinct((3, 4)), r.uniform((1,))),
        S(r.distinct((2, 3, 2)), r.uniform((3,))),
        S(r.distinct((5,)), r.uniform(())),
    ],
    errors=[
        E(S(np.ones((2, 3)), np.ones(4)), RuntimeError, "4 and 3"),
        E(S(np.ones((2, 3)), np.ones((3, 1))), RuntimeError, "1-dimensional"),
    ],
)

PLAIN_PRELU = Op(
    "_prelu",
    lambda x, weight: np.where(x > 0, x, weight * x),
    lambda r: [
        S(r.distinct((3, 4)), r.uniform(())),
        S(r.distinct((2, 3, 2)), r.uniform((3, 1))),
    ],
)

OPS = [
    PLAIN_PRELU,
    act("relu", relu),
    act("nn.functional.relu", relu, {"inplace": False}, inplace=False),
    backward("_relu_backward", lambda y: y > 0),
    act(
        "nn.functional.gelu",
        gelu,
        {"approximate": "tanh"},
        errors=[E(S(np.ones(2), approximate="x"), RuntimeError, "'none' or 'tanh'")],
    ),
    act("_gelu", gelu),
    act("_gelu_tanh", lambda x: gelu(x, "tanh")),
    backward("_gelu_backward", gelu_slope),
    backward("_gelu_tanh_backward", gelu_tanh_slope),
    act("nn.functional.silu", silu),
    backward("_silu_backward", silu_slope),
    act("nn.functional.mish", mish),
    backward("_mish_backward", mish_slope),
    act("nn.functional.softplus", softplus, {"beta": 2.0}, {"threshold": 0.31}),
    backward(
        "_softplus_backward",
        lambda x, beta, top: np.where(beta * x > top, 1, sigmoid(beta * x)),
        2.0,
        1.5,
    ),
    act("nn.functional.logsigmoid", lambda x: -np.logaddexp(0, -x)),
    backward("_logsigmoid_backward", lambda x: sigmoid(-x)),
    act("nn.functional.softsign", lambda x: x / (1 + np.abs(x))),
    act("nn.functional.tanhshrink", lambda x: x - np.tanh(x)),
    act("nn.functional.elu", elu, {"alpha": 0.7}),
    *also(
        act(
            "celu",
            celu,
            {"alpha": 0.7},
            errors=[E(S(np.ones(2), 0.0), RuntimeError, "must not be 0")],
        ),
        "nn.functional.celu",
    ),
    *also(act("selu", selu), "nn.functional.selu"),
    Op("_elu", scaled_elu, lambda r: [S(r.distinct((4, 9)), 0.7, 1.3, 2.0)]),
    backward("_elu_backward", scaled_elu_slope, 0.7, 1.3, 2.0),
    act("nn.functional.leaky_relu", leaky_relu, {"negative_slope": 0.3}),
    backward("_leaky_relu_backward", lambda x, slope: np.where(x > 0, 1, slope), 0.3),
    *also(PRELU, "nn.functional.prelu"),
    act("nn.functional.hardtanh", hardtanh, {"min_val": -0.55, "max_val": 0.75}),
    backward("_hardtanh_backward", lambda x, low, high: (x > low) & (x < high), -0.55, 0.75),
    act("nn.functional.relu6", lambda x: np.clip(x, 0, 6)),
    act("nn.functional.hardsigmoid", hardsigmoid),
    backward("_hardsigmoid_backward", lambda x: (np.abs(x) < 3) / 6),
    act("nn.functional.hardswish", hardswish),
    backward("_hardswish_backward", hardswish_slope),
    act(
        "nn.functional.softshrink",
        softshrink,
        {"lambd": 0.75},
        errors=[E(S(np.ones(2), -1.0), RuntimeError, "greater or equal")],
    ),
    Op("_softshrink", softshrink, lambda r: [S(r.distinct((4, 9)), 0.75)]),
    *also(act("hardshrink", hardshrink, {"lambd": 0.75}), "nn.functional.hardshrink"),
    backward("_shrink_backward", lambda x, lambd: np.abs(x) > lambd, 0.75),
    *also(Op("threshold", threshold, threshold_samples), "nn.functional.threshold"),
    backward("_threshold_backward", lambda x, bound: x > bound, 0.25),
    Op(
        "_gate",
        lambda a, b: a * sigmoid(b),
        lambda r: [S(r.normal((3, 4)), r.normal((3, 4))), S(r.normal((2, 3)), r.normal((3,)))],
    ),
    Op(
        "_gate_slope",
        lambda g, a, b: g * a * sigmoid(b) * (1 - sigmoid(b)),
        lambda r: [S(r.normal((3, 4)), r.normal((3, 4)), r.normal((3, 4)))],
        grad=False,
    ),
    Op(
        "nn.functional.glu",
        glu,
        lambda r: [S(r.normal((3, 4))), S(r.normal((4, 3)), dim=0), S(r.normal((2, 0)))],
        errors=[
            E(S(np.ones(3)), RuntimeError, "even"),
            E(S(np.ones(2), 3), IndexError, "range"),
            E(S(np.asarray(1.0)), RuntimeError, "at least one dimension"),
        ],
    ),
    act("nn.functional.tanh", np.tanh),
]
