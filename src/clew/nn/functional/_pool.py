"""Pooling: max pooling with and without indices, its inverse, adaptive and power pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import clew
from clew._base.arguments import need_tensors, whole
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes

from ._core import _table, avg_pool1d, avg_pool2d, avg_pool3d, private


def _tuple(value: Any, n: int) -> tuple[Any, ...]:
    if isinstance(value, int | float) or value is None or whole(value) is not None:
        return (value,) * n
    value = tuple(value)
    return value * n if len(value) == 1 else value


def _describe(fn: Any, n: int, name: str) -> None:
    """Names a function of n dims, and fills the holes in its docstring.

    Args:
        fn: the function.
        n: 1, 2 or 3.
        name: its public name.
    """
    fn.__name__ = fn.__qualname__ = name
    if fn.__doc__:  # python -OO leaves none
        fn.__doc__ = fn.__doc__.format_map(_HOLES[n])


# What a family's docstrings differ in. Their examples pool `count` numbers, in `shape`, to two.
_HOLES = {
    1: {
        "n": "1",
        "space": "L",
        "last": "the last dim",
        "out": "L_out",
        "count": "4",
        "shape": "1, 1, 4",
        "two": "2",
        "best": "[1.0, 3.0]",
        "places": "[1, 3]",
        "means": "[0.5, 2.5]",
        "sums": "[1.0, 5.0]",
    },
    2: {
        "n": "2",
        "space": "H, W",
        "last": "the last 2 dims",
        "out": "H_out, W_out",
        "count": "8",
        "shape": "1, 1, 2, 4",
        "two": "(1, 2)",
        "best": "[5.0, 7.0]",
        "places": "[5, 7]",
        "means": "[2.5, 4.5]",
        "sums": "[10.0, 18.0]",
    },
    3: {
        "n": "3",
        "space": "D, H, W",
        "last": "the last 3 dims",
        "out": "D_out, H_out, W_out",
        "count": "16",
        "shape": "1, 1, 2, 2, 4",
        "two": "(1, 1, 2)",
        "best": "[13.0, 15.0]",
        "places": "[13, 15]",
        "means": "[6.5, 8.5]",
        "sums": "[52.0, 68.0]",
    },
}


def _max_pool(n: int) -> Any:
    with_indices = private(f"_max_pool{n}d")

    def max_pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """Greatest value of each window over {last}.

        A dim has floor((size + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1 windows.

        Args:
            input: (N, C, {space}) or (C, {space}).
            kernel_size: the window's size, an int or one for each dim.
            stride: the distance of windows, an int or one for each dim; None is kernel_size.
            padding: how many elements of minus infinity lie at each end, an int or one for each
                dim; at most half of kernel_size.
            dilation: the distance of a window's elements, an int or one for each dim.
            ceil_mode: round the size up, so that windows may begin within and end outside.
            return_indices: also return where the values lie.

        Returns:
            (N, C, {out}) or (C, {out});
            with return_indices a pair of them, the second the int64 places within {last} taken
            as one.

        Example:
            >>> x = clew.arange({count}.0).reshape({shape})
            >>> clew.nn.functional.max_pool{n}d(x, 2).flatten().tolist()
            {best}
        """
        if stride is None or (isinstance(stride, (list, tuple)) and not stride):
            stride = kernel_size
        values, indices = with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        return (values, indices) if return_indices else values

    def max_pool_with_indices(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """max_pool{n}d that always returns (values, indices).

        Args:
            input: (N, C, {space}) or (C, {space}).
            kernel_size: the window's size, an int or one for each dim.
            stride: the distance of windows, an int or one for each dim; None is kernel_size.
            padding: how many elements of minus infinity lie at each end, an int or one for each
                dim; at most half of kernel_size.
            dilation: the distance of a window's elements, an int or one for each dim.
            ceil_mode: round the size up, so that windows may begin within and end outside.
            return_indices: not used.

        Returns:
            (values, indices), each (N, C, {out}) or (C, {out});
            indices are int64 places within {last} taken as one.

        Example:
            >>> x = clew.arange({count}.0).reshape({shape})
            >>> y, at = clew.nn.functional.max_pool{n}d_with_indices(x, 2)
            >>> at.flatten().tolist()
            {places}
        """
        return max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    _describe(max_pool, n, f"max_pool{n}d")
    _describe(max_pool_with_indices, n, f"max_pool{n}d_with_indices")
    return max_pool, max_pool_with_indices


max_pool1d, max_pool1d_with_indices = map(asks_classes, _max_pool(1))
max_pool2d, max_pool2d_with_indices = map(asks_classes, _max_pool(2))
max_pool3d, max_pool3d_with_indices = (asks_classes(in_float32(pool)) for pool in _max_pool(3))


def _adaptive_sizes(input: Any, output_size: Any, n: int, name: str) -> list[int]:
    try:
        if type(output_size) is int and n < input.dim() < n + 3:
            return [output_size] * n
    except AttributeError:
        need_tensors(name, input=input)
        raise
    if n > 1 and isinstance(output_size, (tuple, list)) and input.dim() <= len(output_size):
        raise ValueError(f"{name}: Input dimension should be at least {len(output_size) + 1}")
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"{name}: Expected {n + 1}D or {n + 2}D input; got {tuple(input.shape)}")
    sizes = _tuple(output_size, n)
    if len(sizes) != n:
        raise RuntimeError(f"{name}: output_size must have {n} elements; got {len(sizes)}")
    return [int(d) if s is None else s for s, d in zip(sizes, input.shape[-n:], strict=True)]


def _adaptive_avg(n: int) -> Any:
    known = _table[f"nn.functional.adaptive_avg_pool{n}d"]
    name = f"adaptive_avg_pool{n}d"

    def adaptive_avg_pool(input: Any, output_size: Any) -> Any:
        """Means over {last} of as many windows as asked for.

        Window i of a dim covers floor(i size / output_size) up to, without,
        ceil((i + 1) size / output_size).

        Args:
            input: (N, C, {space}) or (C, {space}), floating point.
            output_size: the size wanted, an int or one for each dim; None in it keeps a dim's size.

        Returns:
            (N, C, {out}) or (C, {out}), with the sizes asked for.

        Example:
            >>> x = clew.arange({count}.0).reshape({shape})
            >>> clew.nn.functional.adaptive_avg_pool{n}d(x, {two}).flatten().tolist()
            {means}
        """
        return known(input, _adaptive_sizes(input, output_size, n, name))

    _describe(adaptive_avg_pool, n, name)
    return adaptive_avg_pool


adaptive_avg_pool1d = asks_classes(_adaptive_avg(1))
adaptive_avg_pool2d = asks_classes(_adaptive_avg(2))
adaptive_avg_pool3d = asks_classes(_adaptive_avg(3))


def _adaptive_max(n: int) -> Any:
    known = private(f"_adaptive_max_pool{n}d")
    name = f"adaptive_max_pool{n}d"

    def adaptive_max_pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        """Greatest values over {last} of as many windows as asked for.

        Window i of a dim covers floor(i size / output_size) up to, without,
        ceil((i + 1) size / output_size).

        Args:
            input: (N, C, {space}) or (C, {space}).
            output_size: the size wanted, an int or one for each dim; None in it keeps a dim's size.
            return_indices: also return where the values lie.

        Returns:
            (N, C, {out}) or (C, {out}),
            with the sizes asked for; with return_indices a pair of them, the second the int64
            places within {last} taken as one.

        Example:
            >>> x = clew.arange({count}.0).reshape({shape})
            >>> clew.nn.functional.adaptive_max_pool{n}d(x, {two}).flatten().tolist()
            {best}
        """
        sizes = _adaptive_sizes(input, output_size, n, name)
        values, indices = known(input, sizes)
        return (values, indices) if return_indices else values

    def adaptive_max_pool_with_indices(
        input: Any, output_size: Any, return_indices: bool = False
    ) -> Any:
        """adaptive_max_pool{n}d that always returns (values, indices).

        Args:
            input: (N, C, {space}) or (C, {space}).
            output_size: the size wanted, an int or one for each dim; None in it keeps a dim's size.
            return_indices: not used.

        Returns:
            (values, indices), each (N, C, {out}) or (C, {out});
            indices are int64 places within {last} taken as one.

        Example:
            >>> x = clew.arange({count}.0).reshape({shape})
            >>> y, at = clew.nn.functional.adaptive_max_pool{n}d_with_indices(x, {two})
            >>> at.flatten().tolist()
            {places}
        """
        return adaptive_max_pool(input, output_size, True)

    _describe(adaptive_max_pool, n, name)
    _describe(adaptive_max_pool_with_indices, n, name + "_with_indices")
    return adaptive_max_pool, adaptive_max_pool_with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = map(asks_classes, _adaptive_max(1))
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = map(asks_classes, _adaptive_max(2))
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = (
    asks_classes(in_float32(pool)) for pool in _adaptive_max(3)
)


def unpooled_sizes(
    input: Any,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_size: Any,
) -> list[int]:
    """The sizes that max_unpool gives: those asked for, or what undoes a pooling.

    Raises:
        ValueError: output_size is not within a step of that.
    """
    n = len(kernel_size)
    usual = [
        (size - 1) * s + k - 2 * p
        for size, s, k, p in zip(input.shape[-n:], stride, kernel_size, padding, strict=True)
    ]
    if output_size is None:
        return usual
    sizes = [int(s) for s in output_size]
    if len(sizes) == n + 2 or len(sizes) == n + 1:
        sizes = sizes[-n:]
    if len(sizes) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has "
            f"a length of '{len(output_size)}'"
        )
    for d, (got, want, s) in enumerate(zip(sizes, usual, stride, strict=True)):
        if not want - s < got < want + s:
            raise ValueError(
                f'invalid output_size "{sizes}" (dim {d} must be between {want - s} and {want + s})'
            )
    return sizes


def _unpool(
    input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any, n: int
) -> Any:
    name = f"max_unpool{n}d"
    kernel = _tuple(kernel_size, n)
    steps = kernel if stride is None else _tuple(stride, n)
    pads = _tuple(padding, n)
    if input.shape != indices.shape:
        raise RuntimeError(
            f"{name}: indices must have input's shape {tuple(input.shape)}; got "
            f"{tuple(indices.shape)}"
        )
    sizes = unpooled_sizes(input, kernel, steps, pads, output_size)
    total = 1
    for s in sizes:
        total *= s
    lead = input.shape[:-n]
    flat_index = indices.flatten(-n)
    # Under vmap scatter refuses what is out of bounds.
    if flat_index.numel() and not clew._C._vmap_depth():
        high, low = flat_index.max().item(), flat_index.min().item()
        if low < 0 or high >= total:
            raise RuntimeError(
                f"{name}: found an invalid max index {high if high >= total else low} "
                f"for the output size {tuple(sizes)}"
            )
    zero = clew.zeros(*lead, total, dtype=input.dtype, device=input.device)
    made = zero.scatter(-1, flat_index, input.flatten(-n)).reshape(*lead, *sizes)
    if n == 2 and input.dim() == 4 and not input.is_contiguous():
        if input.is_contiguous(memory_format=clew.channels_last):
            return made.contiguous(memory_format=clew.channels_last)
    return made


@asks_classes
def max_unpool1d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> clew.Tensor:
    """Puts values back to where max_pool1d took them from; the rest is zero.

    Args:
        input: pooled values, (N, C, L) or (C, L).
        indices: max_pool1d's indices, int64, of input's shape.
        kernel_size: as in max_pool1d.
        stride: as in max_pool1d.
        padding: as in max_pool1d.
        output_size: the size wanted, (L_out) or a whole shape; None is the smallest that fits.

    Returns:
        the unpooled tensor, (N, C, L_out) or (C, L_out).

    Raises:
        RuntimeError: if an index lies outside the output.

    Example:
        >>> x = clew.tensor([[[1., 4., 3., 2.]]])
        >>> y, at = clew.nn.functional.max_pool1d(x, 2, return_indices=True)
        >>> clew.nn.functional.max_unpool1d(y, at, 2).tolist()
        [[[0.0, 4.0, 3.0, 0.0]]]
    """
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 1)


@asks_classes
@in_float32
def max_unpool2d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> clew.Tensor:
    """Puts values back to where max_pool2d took them from; the rest is zero.

    Args:
        input: pooled values, (N, C, H, W) or (C, H, W).
        indices: max_pool2d's indices, int64, of input's shape.
        kernel_size: as in max_pool2d.
        stride: as in max_pool2d.
        padding: as in max_pool2d.
        output_size: the size wanted, (H_out, W_out) or a whole shape; None is the smallest that
            fits.

    Returns:
        the unpooled tensor, (N, C, H_out, W_out) or (C, H_out, W_out).

    Raises:
        RuntimeError: if an index lies outside the output.

    Example:
        >>> x = clew.tensor([[[[1., 4.], [3., 2.]]]])
        >>> y, at = clew.nn.functional.max_pool2d(x, 2, return_indices=True)
        >>> clew.nn.functional.max_unpool2d(y, at, 2).tolist()
        [[[[0.0, 4.0], [0.0, 0.0]]]]
    """
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 2)


@asks_classes
@in_float32
def max_unpool3d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> clew.Tensor:
    """Puts values back to where max_pool3d took them from; the rest is zero.

    Args:
        input: pooled values, (N, C, D, H, W) or (C, D, H, W).
        indices: max_pool3d's indices, int64, of input's shape.
        kernel_size: as in max_pool3d.
        stride: as in max_pool3d.
        padding: as in max_pool3d.
        output_size: the size wanted, (D_out, H_out, W_out) or a whole shape; None is the smallest
            that fits.

    Returns:
        the unpooled tensor, (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out).

    Raises:
        RuntimeError: if an index lies outside the output.

    Example:
        >>> x = clew.tensor([[[[[1., 4.], [3., 2.]]]]])
        >>> y, at = clew.nn.functional.max_pool3d(x, (1, 2, 2), return_indices=True)
        >>> clew.nn.functional.max_unpool3d(y, at, (1, 2, 2)).tolist()
        [[[[[0.0, 4.0], [0.0, 0.0]]]]]
    """
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 3)


def _lp_pool(n: int, pool: Any, most: Any) -> Any:
    def lp_pool(
        input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Any:
        """p-norm of each window over {last}: sum(x^p)^(1/p).

        Args:
            input: (N, C, {space}) or (C, {space}), floating point.
            norm_type: p, not 0; inf takes the greatest size.
            kernel_size: the window's size, an int or one for each dim.
            stride: the distance of windows, an int or one for each dim; None is kernel_size.
            ceil_mode: round the size up, so that windows may begin within and end outside.

        Returns:
            (N, C, {out}) or (C, {out}); a dim has
            floor((size - kernel_size) / stride) + 1 windows.

        Example:
            >>> x = clew.arange({count}.0).reshape({shape})
            >>> clew.nn.functional.lp_pool{n}d(x, 1, 2).flatten().tolist()
            {sums}
        """
        count = 1
        for k in _tuple(kernel_size, n):
            count *= k
        if stride is None:
            stride = kernel_size
        if norm_type in (float("inf"), -float("inf")):
            sign = 1 if norm_type > 0 else -1
            return most(input.abs() * sign, kernel_size, stride, ceil_mode=ceil_mode) * sign
        mean = pool(input**norm_type, kernel_size, stride, 0, ceil_mode)
        return (mean.sign() * mean.abs().relu() * count) ** (1.0 / norm_type)

    _describe(lp_pool, n, f"lp_pool{n}d")
    return lp_pool


lp_pool1d = asks_classes(_lp_pool(1, avg_pool1d, max_pool1d))
lp_pool2d = asks_classes(_lp_pool(2, avg_pool2d, max_pool2d))
lp_pool3d = asks_classes(_lp_pool(3, avg_pool3d, max_pool3d))


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]
