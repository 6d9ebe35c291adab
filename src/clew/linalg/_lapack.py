"""LAPACK called directly, for large matrices.

NumPy's functions run a whole batch in one loop, which is what small matrices need. But they
compute in double precision whatever the dtype, and some of them leave the fastest routine out. So
matrices that are large enough for the computation to outweigh a call go to SciPy's bindings, one by
one. Those read columns where NumPy has rows: a matrix in rows is the transposed one in columns, and
where a factorization of the transposed matrix will do, nothing is moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew import _C
from clew._primitive import scipy

# From this many elements on a matrix is large. Loading SciPy's bindings takes as long as a few
# hundred calls with a matrix of this size save.
_LARGE = 128 * 128
# From this many elements on clew's copy, which runs on all threads, makes columns of rows.
_LARGE_COPY = 1 << 18
_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}


def routines(a: np.ndarray, *names: str) -> list[Any] | None:
    """LAPACK's (or BLAS's) routines for the dtype of matrices ``a``; None when those are small, or
    SciPy is not installed: NumPy does it then.

    Args:
        a: (*, m, n).
        names: without the letter of the dtype; "un" stands for "or" of a real dtype, "he" for "sy".
    """
    if a.shape[-1] * a.shape[-2] < _LARGE or a.size == 0 or a.dtype.char not in _PREFIX:
        return None
    try:
        libraries = scipy("linalg.lapack", "linalg"), scipy("linalg.blas", "linalg")
    except ImportError:
        return None
    real = a.dtype.kind == "f"
    found = []
    for name in names:
        if real and name[:2] in ("un", "he"):
            name = {"un": "or", "he": "sy"}[name[:2]] + name[2:]
        name = _PREFIX[a.dtype.char] + name
        found.append(getattr(libraries[0], name, None) or getattr(libraries[1], name))
    return found


def each(run: Callable[..., tuple[Any, ...]], *arrays: np.ndarray) -> tuple[Any, ...]:
    """What ``run`` gives for each matrix of a batch (of at least one), stacked.

    Args:
        run: of matrices, to a tuple of arrays.
        arrays: (*, m, n), with the same batch dims.
    """
    batch = arrays[0].shape[:-2]
    if not batch:
        return run(*arrays)
    stacks: list[np.ndarray] = []
    for index in np.ndindex(*batch):
        made = run(*(a[index] for a in arrays))
        if not stacks:
            stacks = [np.empty((*batch, *np.shape(m)), np.asarray(m).dtype) for m in made]
        for stack, m in zip(stacks, made):
            stack[index] = m
    return tuple(stacks)


def columns(a: np.ndarray) -> np.ndarray:
    """A copy of a matrix in LAPACK's order, which may be overwritten."""
    rows = a.flags.c_contiguous and not a.flags.f_contiguous
    if rows and a.size >= _LARGE_COPY and a.flags.writeable:
        return _C.from_numpy(a).mT.contiguous().numpy().T
    return np.array(a, order="F")


def check(info: int) -> None:
    """Raises NumPy's LinAlgError unless a routine succeeded."""
    if info:
        raise np.linalg.LinAlgError
