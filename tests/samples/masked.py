"""Samples of masked reductions and softmaxes; the references work row by row with what the mask
leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import COMPLEX, FLOATS_32_64, INTS, E, Op, Rng, S


def masks(r: Rng, shape: Any) -> np.ndarray:
    """Something is true in every row and column."""
    m = r.bools(shape)
    for axis in range(len(shape)):
        at = [slice(None)] * len(shape)
        at[axis] = slice(0, 1)
        if len(shape) > 1:
            m[tuple(at)] = True
    if not m.any():
        m[...] = True
    return m


def axes_of(x: Any, dim: Any) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(x.ndim))
    return tuple(d % max(x.ndim, 1) for d in ((dim,) if isinstance(dim, int) else dim))[: x.ndim]


def by_rows(f: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that calls f with the vector of the chosen elements for each result."""

    def reference(
        x: Any, dim: Any = None, *args: Any, keepdim: bool = False, mask: Any = None, **options: Any
    ) -> Any:
        chosen = np.ones(x.shape, bool) if mask is None else np.broadcast_to(mask, x.shape)
        axes = axes_of(x, dim)
        kept = [d for d in range(x.ndim) if d not in axes]
        rows = np.transpose(x, [*kept, *axes]).reshape([x.shape[d] for d in kept] + [-1])
        flags = np.transpose(chosen, [*kept, *axes]).reshape(rows.shape)
        out = [f(rows[at][flags[at]], *args, **options) for at in np.ndindex(rows.shape[:-1])]
        made = np.array(out).reshape(rows.shape[:-1])
        return np.expand_dims(made, axes) if keepdim else made

    return reference


def along(f: Callable[..., Any], value: Any) -> Callable[..., Any]:
    """A reference of a function of rows, masked elements replaced by a value."""

    def reference(x: Any, dim: int, *, mask: Any = None) -> Any:
        return f(x if mask is None else np.where(mask, x, value), dim)

    return reference


def reductions(*extra: Any, complex_too: bool = True, one_dim: bool = False) -> Any:
    def samples(r: Rng) -> list[S]:
        made = [
            S(r.distinct((3, 4)), *extra, 1, mask=masks(r, (3, 4))),
            S(r.distinct((3, 4)), *extra, -1, keepdim=True, mask=masks(r, (4,))),
            S(r.distinct((2, 3)), *extra, 0),
        ]
        if not one_dim:
            made += [
                S(r.distinct((3, 4)), *extra, mask=masks(r, (3, 4))),
                S(r.distinct((2, 3, 2)), *extra, (0, 2), mask=masks(r, (2, 3, 1))),
                S(r.distinct(()), *extra, mask=np.array(True)),
            ]
        if complex_too:
            made.append(S(r.complex((2, 3)), *extra, 1, mask=masks(r, (2, 3))))
        return made

    return samples


def rows(r: Rng) -> list[S]:
    return [
        S(r.normal((3, 4)), 1, mask=masks(r, (3, 4))),
        S(r.normal((3, 4)), -2, mask=masks(r, (4,)) | True),
        S(r.normal((5,)), 0),
    ]


def lower_median(v: Any) -> Any:
    return np.sort(v)[(len(v) - 1) // 2]


def spread(root: bool) -> Any:
    def f(v: Any, unbiased: Any = None, *, correction: Any = None) -> Any:
        ddof = correction if correction is not None else 0 if unbiased is False else 1
        return np.std(v, ddof=ddof) if root else np.var(v, ddof=ddof)

    return by_rows(f)


def spreads(r: Rng) -> list[S]:
    m = np.array([[True, True, False, True], [True, False, True, True]])
    return [
        S(r.normal((2, 4)), 1, mask=m),
        S(r.normal((2, 4)), None, False, mask=m),
        S(r.normal((2, 4)), correction=2, mask=m, keepdim=True),
        S(r.normal((2, 4)), 1),
        S(r.complex((2, 4)), 1, mask=m),
    ]


def norm(x: Any, ord: Any = 2.0, dim: Any = None, **options: Any) -> Any:
    return by_rows(lambda v: np.linalg.norm(v, ord))(x, dim, **options)


def normalize(x: Any, ord: Any, dim: int, *, eps: float = 1e-12, mask: Any = None) -> Any:
    x = x if mask is None else np.where(mask, x, 0)
    return x / np.maximum(np.linalg.norm(x, ord, dim, keepdims=True), eps)


def softmax(x: Any, dim: int) -> Any:
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def logaddexp(x: Any, y: Any, *, input_mask: Any = None, other_mask: Any = None) -> Any:
    x = x if input_mask is None else np.where(input_mask, x, -np.inf)
    y = y if other_mask is None else np.where(other_mask, y, -np.inf)
    return np.logaddexp(x, y)


def op(name: str, reference: Any, samples: Any, **options: Any) -> Op:
    return Op(
        f"masked.{name}",
        reference,
        samples,
        **{
            "out": False,
            "errors": [
                E(S(np.ones((2,)), 0, mask=3), TypeError, "must be Tensor"),
                E(S(np.ones((2,)), 0, mask=np.ones((2, 2))), IndexError, "mask"),
                *options.pop("more", []),
            ],
            **options,
        },
    )


def dims_error(value: Any) -> list[E]:
    return [
        E(S(value, 2), IndexError, "out of range"),
        E(S(value, (0, 0)), RuntimeError, "multiple times"),
    ]


BOTH = FLOATS_32_64 + COMPLEX
X = np.ones((2, 2))

OPS = [
    op("sum", by_rows(np.sum), reductions(), dtypes=BOTH, integers=INTS, more=dims_error(X)),
    op("prod", by_rows(np.prod), reductions(), dtypes=BOTH, integers=INTS, more=dims_error(X)),
    op(
        "amax",
        by_rows(np.max),
        reductions(complex_too=False),
        integers=INTS,
        more=dims_error(X),
    ),
    op(
        "amin",
        by_rows(np.min),
        reductions(complex_too=False),
        integers=INTS,
        more=dims_error(X),
    ),
    op(
        "argmax",
        lambda x, dim=None, keepdim=False, mask=None: (
            np.where(mask, x, -np.inf).argmax(dim, keepdims=keepdim).astype(float)
        ),
        lambda r: [
            S(r.distinct((3, 4)), 1, mask=masks(r, (3, 4))),
            S(r.distinct((4,)), mask=masks(r, (4,))),
        ],
        grad=False,
    ),
    op(
        "argmin",
        lambda x, dim=None, keepdim=False, mask=None: (
            np.where(mask, x, np.inf).argmin(dim, keepdims=keepdim).astype(float)
        ),
        lambda r: [
            S(r.distinct((3, 4)), 0, keepdim=True, mask=masks(r, (3, 4))),
            S(r.distinct((4,)), mask=masks(r, (4,))),
        ],
        grad=False,
    ),
    op("cumsum", along(np.cumsum, 0), rows),
    op("cumprod", along(np.cumprod, 1), rows),
    op("mean", by_rows(np.mean), reductions(), dtypes=BOTH, more=dims_error(X)),
    op(
        "median",
        by_rows(lower_median),
        reductions(complex_too=False, one_dim=True),
        integers=INTS,
        more=[E(S(np.array([1, 2]), 0, mask=np.array([False, False])), ValueError, "fully masked")],
    ),
    op(
        "logsumexp",
        by_rows(lambda v: np.log(np.exp(v).sum())),
        reductions(complex_too=False),
        more=dims_error(X),
    ),
    Op(
        "masked.logaddexp",
        logaddexp,
        lambda r: [
            S(r.normal((3, 4)), r.normal((4,))),
            S(r.normal((3, 4)), r.normal((3, 4)), input_mask=masks(r, (3, 4))),
        ],
        out=False,
        second=False,
        why="where one side is -inf the second derivative is 0 times inf",
    ),
    op(
        "norm",
        norm,
        lambda r: [
            S(r.normal((3, 4)), 2.0, 1, mask=masks(r, (3, 4))),
            S(r.normal((3, 4)), 3, (0, 1), keepdim=True, mask=masks(r, (3, 4))),
            S(r.distinct((3, 4)), np.inf, 0, mask=masks(r, (3, 4))),
            S(r.distinct((3, 4)), -np.inf, 0, mask=masks(r, (3, 4))),
            S(r.normal((4,))),
        ],
    ),
    op(
        "normalize",
        normalize,
        lambda r: [
            S(r.normal((3, 4)), 2.0, 1, mask=masks(r, (3, 4))),
            S(r.normal((3, 4)), 1, 0, eps=0.1),
        ],
        errors=[],
    ),
    op("var", spread(False), spreads, dtypes=BOTH),
    op("std", spread(True), spreads, dtypes=BOTH),
    op("softmax", along(softmax, -np.inf), rows),
    op(
        "log_softmax",
        along(lambda x, dim: np.log(softmax(x, dim)), -np.inf),
        lambda r: [S(r.normal((3, 4)), 1), S(r.normal((5,)), 0)],
    ),
    op("softmin", along(lambda x, dim: softmax(-x, dim), np.inf), rows),
]
