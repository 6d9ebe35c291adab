"""Products, powers and the exponential of matrices."""

from __future__ import annotations

from collections.abc import Callable

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_int, numpy_names
from clew._base.autocast import autocasting, lower
from clew._base.overriding import asks_classes, modes_are_on
from clew._C import Tensor
from clew._ops.primitive import Context, primitive, write_out

from ._common import check_inexact, check_tensor, eye_like, show

matmul: Callable[..., Tensor] = _C.functions["matmul"]

_NEXT = _C.tensor([1, 2, 0], device="cpu")  # of three components, which comes next
_FEW = 256  # elements


@asks_classes
@numpy_names
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The inner product sum(conj(x) * y) along ``dim``.

    Args:
        x: floating point or complex.
        y: of the same dtype; both are broadcast.
        dim: the dim that is summed over.
        out: a tensor that receives the result.

    Returns:
        the broadcast shape without dim.

    Example:
        >>> clew.linalg.vecdot(clew.ones(3), clew.ones(3))
        tensor(3.)
    """
    name = "linalg.vecdot"
    if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
        check_tensor(name, "x", x)
        check_tensor(name, "y", y)
    check_inexact(name, x, low=True)
    if autocasting() and out is None:
        x, y = lower(x, y)
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"{name}: Expected x and y to have the same dtype; got {show(x)} and {show(y)}"
        )
    # A number counts as a vector of one element.
    ndim = min(x.ndim, y.ndim) or 1
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"{name}: Dimension out of range; got dim {dim} for {show(x)} and {show(y)}"
        )
    if x.ndim and y.ndim and x.shape[dim] != y.shape[dim]:
        raise RuntimeError(
            f"{name}: Expected x and y to have the same size in dim {dim}; got {show(x)} and "
            f"{show(y)}"
        )
    return write_out(name, (x.conj() * y).sum(dim), out)


@asks_classes
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of the matrices in the dims dim1 and dim2, as a view.

    Args:
        A: at least two dims, (*, m, n) by default.
        offset: above the diagonal, when positive.
        dim1: the rows.
        dim2: the columns.

    Returns:
        (*, k): the shape of A without the two, and the diagonal's length last.

    Example:
        >>> clew.linalg.diagonal(clew.ones(4, 2, 3)).shape
        clew.Size([4, 2])
    """
    check_tensor("linalg.diagonal", "A", A)
    return A.diagonal(offset, dim1, dim2)


@asks_classes
@numpy_names
def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of 3-vectors along ``dim``.

    Args:
        input: floating point, integer or complex, of size 3 in dim.
        other: of as many dims; both are broadcast.
        dim: the dim of the vectors.
        out: a tensor that receives the result.

    Returns:
        the broadcast shape.

    Example:
        >>> clew.linalg.cross(clew.tensor([1.0, 0.0, 0.0]), clew.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.])
    """
    return cross_product(input, other, dim, out)


def cross_product(input: Tensor, other: Tensor, dim: int, out: Tensor | None) -> Tensor:
    """What cross() gives, for functions that have asked already."""
    name = "linalg.cross"
    if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        check_tensor(name, "input", input)
        check_tensor(name, "other", other)
    ndim = input.ndim
    if ndim != other.ndim:
        raise RuntimeError(
            f"{name}: inputs must have the same number of dimensions; got {show(input)} and "
            f"{show(other)}"
        )
    if not -ndim <= dim < ndim:
        raise IndexError(f"{name}: Dimension out of range; got dim {dim} for {show(input)}")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"{name}: inputs dimension {dim} must have length 3; got {input.shape[dim]} and "
            f"{other.shape[dim]}"
        )
    if _C._plain(input, other) and input.numel() <= _FEW and not modes_are_on():
        # Half as many operations; of many elements they would copy too much.
        after = input.index_select(dim, _NEXT) * other
        before = input * other.index_select(dim, _NEXT)
        return write_out(name, (before - after).index_select(dim, _NEXT), out)
    a, b = input.unbind(dim), other.unbind(dim)
    product = _C.functions["stack"](
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
        dim % ndim,
    )
    return write_out(name, product, out)


@asks_classes
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Matrices of the powers x^0 ... x^(N-1) of vectors' elements.

    Args:
        x: (*, n).
        N: how many powers, by default n.

    Returns:
        (*, n, N).

    Example:
        >>> clew.linalg.vander(clew.tensor([1, 2, 3]))
        tensor([[1, 1, 1],
                [1, 2, 4],
                [1, 3, 9]])
    """
    check_tensor("linalg.vander", "x", x)
    if x.dtype in (_dtypes.bool, _dtypes.float16, _dtypes.bfloat16):
        raise RuntimeError(
            "linalg.vander: supports floating point, complex, and integer tensors, not bool and "
            f"low precision; got {show(x)}"
        )
    if x.ndim == 0:
        x = x.reshape(1)
    if N is None:
        N = x.shape[-1]
    N = need_int("linalg.vander", "N", N)
    if N < 2:
        raise RuntimeError(f"linalg.vander: N must be greater than 1; got {N}")
    return powers(x, N)


def powers(x: Tensor, n: int) -> Tensor:
    """x^0 ... x^(n-1) in a new last dim; of small integers in int64."""
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_dtypes.int64)
    one = x.new_ones((*x.shape, min(n, 1)))
    if n <= 1:
        return one
    return _C.functions["cat"]([one, x.unsqueeze(-1).expand(*x.shape, n - 1).cumprod(-1)], -1)


@asks_classes
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """The n-th power of square matrices.

    Args:
        input: (*, m, m).
        n: an integer; negative ones take powers of the inverse.
        out: a tensor that receives the result.

    Returns:
        (*, m, m).

    Example:
        >>> clew.linalg.matrix_power(clew.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    name = "linalg.matrix_power"
    check_tensor(name, "A", input)
    n = need_int(name, "n", n)
    _check_square(name, input)
    if n < 0:
        from ._solve import inv

        input, n = inv(input), -n
    if n == 0:
        one = eye_like(input)
        # Recorded where the input is, with a gradient of 0; its infinities and NaN do not get in.
        made = (
            _C.ops.where(_C.tensor(False), input, one)
            if input.requires_grad
            else one.expand(input.shape).clone()
        )
        return write_out(name, made, out)
    if n == 3:  # from the left, as PyTorch: where numbers overflow the order tells
        return write_out(name, input @ input @ input, out)
    result = None
    power = input
    while n:
        if n & 1:
            result = power if result is None else result @ power
        n >>= 1
        if n:
            power = power @ power
    assert result is not None
    return write_out(name, result.clone() if result is input else result, out)


def _check_square(name: str, a: Tensor) -> None:
    if a.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor A must have at least 2 dimensions; got {show(a)}"
        )
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {a.shape[-2]} by "
            f"{a.shape[-1]} matrices; got {show(a)}"
        )


def _exp_gradient(c: Context, g: Tensor) -> Tensor:
    # exp([[X, G], [0, X]]) holds the derivative of exp at X along G in its corner.
    x = c.inputs[0].mH
    n = x.shape[-1]
    cat = _C.functions["cat"]
    top = cat([x, g], -1)
    bottom = cat([x.new_zeros(x.shape), x], -1)
    return _exp(cat([top, bottom], -2))[..., :n, n:]


_exp = primitive(
    "MatrixExp",
    shapes=lambda a: [(a.shape, a.dtype)],
    kernel=None,
    gradient=_exp_gradient,
    native=lambda a: (_C.ops._matrix_exp(a),),
)


@asks_classes
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices, the sum of A^k / k!.

    Args:
        input: (*, n, n).

    Returns:
        (*, n, n); differentiable to any order.

    Example:
        >>> clew.linalg.matrix_exp(clew.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])
    """
    check_tensor("linalg.matrix_exp", "A", input)
    _check_square("linalg.matrix_exp", input)
    check_inexact("linalg.matrix_exp", input, low=True)
    if input.dtype in (_dtypes.float16, _dtypes.bfloat16):
        return _exp(input.to(_dtypes.float32)).to(input.dtype)
    return _exp(input)
