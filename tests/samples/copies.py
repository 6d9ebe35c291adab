"""Samples of the view operations that copy: their references are those of the views."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import COMPLEX, FLOATS_32_64, E, Op, Rng, S, shape


def calls(*arguments: Any, size: Any = (2, 3, 4), complex_too: bool = True) -> Any:
    """One sample for each tuple of arguments, and a complex one of the first."""

    def samples(r: Rng) -> list[S]:
        made = [S(r.normal(size), *a) for a in arguments]
        return [*made, S(r.complex(size), *arguments[0])] if complex_too else made

    return samples


def op(name: str, reference: Any, samples: Any, **options: Any) -> Op:
    return Op(
        f"{name}_copy",
        reference,
        samples,
        **{
            "dtypes": FLOATS_32_64 + COMPLEX,
            "errors": [E(S("x", *([1] * options.pop("more", 0))), TypeError, "must be Tensor")],
            **options,
        },
    )


def slice_(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return shape.slice_(x, dim, start or 0, 2**62 if end is None else end, step)


def pieces(x: Any, sizes: Any, dim: int = 0) -> Any:
    return tuple(np.split(x, np.cumsum(sizes)[:-1], dim))


OPS = [
    op("alias", lambda x: x, calls(())),
    op(
        "as_strided",
        shape.as_strided,
        calls(((2, 2), (1, 2)), ((3, 2), (1, 1), 2), size=(12,)),
        more=2,
        why="strides matter: left out of the strided test with the random ones",
    ),
    op("detach", lambda x: x, calls(()), grad=False),
    op("diagonal", np.diagonal, calls((), (1,), (-1, 2, 0))),
    op("expand", np.broadcast_to, calls(((2, 3, 4),), ((5, 2, 3, 4),), size=(3, 1)), more=1),
    op("permute", np.transpose, calls(((2, 0, 1),), ((0, -1, 1),)), more=1),
    op(
        "select",
        lambda x, dim, index: np.take(x, index, dim),
        calls((1, 2), (-1, -4), (0, 0)),
        more=2,
    ),
    op("slice", slice_, calls((), (1, 1), (2, None, -1), (-1, 0, 4, 2))),
    op(
        "squeeze",
        lambda x, dim=None: np.squeeze(x, dim),
        calls((), (0,), ((0, 2),), size=(1, 3, 1)),
    ),
    op("t", np.transpose, calls((), size=(2, 3))),
    op("transpose", np.swapaxes, calls((0, 1), (-1, 0)), more=2),
    op("unfold", shape.unfold, calls((2, 2, 1), (1, 3, 2)), more=3),
    op("unsqueeze", np.expand_dims, calls((0,), (-1,), (2,)), more=1),
    op(
        "view_as_complex",
        lambda x: x[..., 0] + 1j * x[..., 1],
        calls((), size=(3, 2), complex_too=False),
        dtypes=("float64",),
    ),
    op(
        "view_as_real",
        lambda x: np.stack([x.real, x.imag], -1),
        lambda r: [S(r.complex((2, 3))), S(r.complex(()))],
        dtypes=COMPLEX,
    ),
    op("view", np.reshape, calls(((6, 4),), ((-1,),), ((2, 3, 2, 2),)), more=1),
    op("split", shape.split, calls((2,), (2, 1), (3, -1)), more=1),
    op("split_with_sizes", pieces, calls(([1, 1],), ([1, 2], 1), ([0, 4], -1)), more=1),
    op(
        "unbind",
        lambda x, dim=0: tuple(np.moveaxis(x, dim, 0)),
        calls((), (1,), (-1,)),
    ),
]
