"""Marks and filters for a compiler that traces; functions run as they are here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import clew
from clew import Tensor
from clew.utils._pytree import tree_map


def nested_compile_region(
    fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """The function itself, or a decorator that returns it: nothing is compiled twice.

    Args:
        fn: a function; None for a decorator.
        options, max_reuse_entries, reuse_hash_fn: of a compiler.
    """
    return fn if fn is not None else lambda f: f


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors from one of NumPy's arrays.

    Args:
        fn: takes arrays where tensors are given; the arrays that it gives become tensors.
    """
    import numpy as np

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, kwargs))
        return tree_map(
            lambda x: clew.as_tensor(x) if isinstance(x, np.ndarray) else x, fn(*args, **kwargs)
        )

    return call


def _keeps_all(guard_entries: Sequence[Any]) -> list[bool]:
    """True for each: there are no guards to leave out."""
    return [True for _ in guard_entries]


keep_portable_guards_unsafe = keep_tensor_guards_unsafe = _keeps_all
skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe = _keeps_all
skip_guard_on_globals_unsafe = skip_all_guards_unsafe = _keeps_all
