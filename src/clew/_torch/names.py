"""Names of the module `torch` that clew itself has no use for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import clew
from clew import _C, Tensor
from clew._base import dtypes as _dtypes
from clew._torch._higher_order_ops.control_flow import cond as cond
from clew._torch.absent import _GPU, absent
from clew.futures import Future as Future
from clew.jit import ScriptModule as ScriptModule
from clew.jit import fork as fork
from clew.jit import wait as wait
from clew.storage import UntypedStorage as StorageBase  # noqa: F401

_QUANTIZED_TENSORS = "there are no quantized tensors here"
_make_per_tensor_quantized_tensor = absent(
    "", "_make_per_tensor_quantized_tensor", _QUANTIZED_TENSORS
)
legacy_contiguous_format = clew.contiguous_format
Stream = absent("", "Stream", _GPU)
Event = absent("", "Event", _GPU)
_SYMBOLS = "sizes are numbers here; nothing is symbolic"
SymInt = absent("", "SymInt", _SYMBOLS)
SymFloat = absent("", "SymFloat", _SYMBOLS)
SymBool = absent("", "SymBool", _SYMBOLS)
has_mps = has_cuda = has_cudnn = has_mkl = False
has_mkldnn = has_openmp = has_lapack = has_spectral = True  # factorizations and FFTs are clew's own


class _Layout(clew.layout):
    """The name of a layout that no tensor here has."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> Any:
        return _Layout, (self._name,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Layout) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)


_mkldnn = _Layout("_mkldnn")


def _scaled_mm(
    self: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of 8-bit floats times their scales, computed in float32; `use_fast_accum` asks
    for less than that.
    """
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.dtype not in _dtypes.STORED or matrix.is_complex():
            raise RuntimeError(
                f"_scaled_mm: {name} must be a tensor of 8-bit floats; got {matrix.dtype}"
            )
    out = (self.float() @ mat2.float()) * scale_a * scale_b
    if bias is not None:
        out = out + bias.float()
    if scale_result is not None:
        out = out * scale_result
    return out.to(self.dtype if out_dtype is None else out_dtype)


def _assert(condition: Any, message: str) -> None:
    """Raises where a condition does not hold."""
    if type(condition) is not Tensor and hasattr(condition, "__torch_function__"):
        from clew._base.overriding import handle_torch_function, has_torch_function

        if has_torch_function((condition,)):
            return handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message


def _assert_async(condition: Tensor, message: str = "Expected Tensor to be all true") -> None:
    """Raises where a tensor of one element is 0."""
    if not bool(condition):
        raise RuntimeError(message)


def _checker(error: type[Exception]) -> Callable[..., None]:
    def check(cond: Any, message: Any = None) -> None:
        """Raises where a condition does not hold."""
        if not cond:
            text = message() if callable(message) else message
            raise error(text if text is not None else "Expected cond to be True, but got False")

    return check


_check = _checker(RuntimeError)
_check_index = _checker(IndexError)
_check_value = _checker(ValueError)
_check_type = _checker(TypeError)
_check_not_implemented = _checker(NotImplementedError)


def _check_with(error_type: Any, cond: Any, message: Any) -> None:
    """Raises an exception of a type where a condition does not hold."""
    _checker(error_type)(cond, message)


def _check_tensor_all(cond: Tensor, message: Any = None) -> None:
    """Raises where an element is false."""
    _check(bool(cond.all()), message)


def _check_tensor_all_with(error_type: Any, cond: Tensor, message: Any = None) -> None:
    """Raises an exception of a type where an element is false."""
    _checker(error_type)(bool(cond.all()), message)


def _check_is_size(i: int, message: Any = None, *, max: int | None = None) -> None:
    """Raises where a number is negative."""
    _check(i >= 0, message)


def _shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes as a tensor."""
    return clew.tensor(list(x.shape))


def _caster(dtype: Any) -> Callable[..., Tensor]:
    def cast(self: Tensor, non_blocking: bool = False) -> Tensor:
        """The tensor in another dtype."""
        return self.to(dtype, non_blocking=non_blocking)

    return cast


_cast_Byte, _cast_Char, _cast_Short, _cast_Int, _cast_Long = map(
    _caster, (clew.uint8, clew.int8, clew.int16, clew.int32, clew.int64)
)
_cast_Half, _cast_Float, _cast_Double = map(_caster, (clew.float16, clew.float32, clew.float64))


def _removed(name: str, instead: str) -> Callable[..., NoReturn]:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"torch.{name} was removed from PyTorch; use {instead}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Raises: it was removed from PyTorch; use {instead}."
    return call


def set_vital(*args: Any) -> None:
    """Does nothing; PyTorch deprecated it."""
    import warnings

    from clew._base.provenance import user_level

    warnings.warn("set_vital is deprecated and does nothing", stacklevel=user_level())


eig = _removed("eig", "torch.linalg.eig")
lstsq = _removed("lstsq", "torch.linalg.lstsq, whose arguments are in the other order")
matrix_rank = _removed("matrix_rank", "torch.linalg.matrix_rank")
solve = _removed("solve", "torch.linalg.solve, whose arguments are in the other order")
symeig = _removed("symeig", "torch.linalg.eigh, or torch.linalg.eigvalsh without eigenvectors")


def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    """What values become when a function is applied to them as long as a condition holds.

    Args:
        cond_fn: takes the values, gives a bool or a tensor of one.
        body_fn: takes the values, gives as many.
        carried_inputs: the first values.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("while_loop: cond_fn and body_fn must be callable")
    values = tuple(carried_inputs)
    while True:
        holds = cond_fn(*values)
        if isinstance(holds, Tensor) and (holds.dtype is not clew.bool or holds.numel() != 1):
            raise RuntimeError(
                f"while_loop: cond_fn must give a bool; got {list(holds.shape)} of {holds.dtype}"
            )
        if not isinstance(holds, Tensor | bool):
            raise RuntimeError(f"while_loop: cond_fn must give a bool; got {type(holds).__name__}")
        if not holds:
            return values
        given = body_fn(*values)
        if not isinstance(given, tuple) or len(given) != len(values):
            raise RuntimeError(f"while_loop: body_fn must give a tuple of {len(values)} values")
        values = given


def _standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """Draws of gamma distributions of rate 1, which have derivatives by the concentration."""
    from clew.distributions._implicit import standard_gamma

    if generator is not None:
        raise NotImplementedError("_standard_gamma: draws come from the default generator")
    return standard_gamma(self)


def _grouped_mm(
    self: Tensor, mat2: Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Tensor:
    """One product for each group; see nn.functional.grouped_mm."""
    from clew._torch._more.nn_functional import grouped_mm

    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _sample_dirichlet(concentration: Tensor, generator: Any = None) -> Tensor:
    """Draws of Dirichlet distributions."""
    return clew.distributions.Dirichlet(concentration).sample()


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """Where each of `size` rows begins, and the last one ends, from the sorted rows of elements.

    Args:
        input: (elements) int32 or int64, which rise.
        size: how many rows there are.
        out_int32: for int32 instead of int64.
    """
    if input.dim() != 1 or input.dtype not in (clew.int32, clew.int64):
        raise RuntimeError(
            "_convert_indices_from_coo_to_csr: expected a vector of int32 or int64; got "
            f"{input.dim()} dims of {input.dtype}"
        )
    edges = clew.arange(size + 1, dtype=input.dtype, device=input.device)
    return clew.searchsorted(input.contiguous(), edges, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """(2, elements): the row and the column of each element of compressed rows.

    Args:
        crow_indices: where each row begins, and the last one ends.
        col_indices: the column of each element.
        out_int32: for int32 instead of int64.
        transpose: columns come first.
    """
    if crow_indices.dim() != 1 or col_indices.dim() != 1:
        raise NotImplementedError(
            "_convert_indices_from_csr_to_coo: batches are not offered; convert matrix by matrix"
        )
    counts = (crow_indices[1:] - crow_indices[:-1]).long()
    rows = clew.arange(len(counts), device=counts.device).repeat_interleave(counts)
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return clew.stack([part.to(clew.int32 if out_int32 else clew.int64) for part in pair])


def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, the first of which may be sparse: `mm` by an older name."""
    return clew.mm(input, mat2)


spmm = dsmm


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix as a sparse tensor that holds every element of
    the rows that have one.
    """
    if not input.is_sparse:
        raise RuntimeError(f"smm: expected a tensor of layout sparse_coo; got {input.layout}")
    coordinates: Any = input.coalesce()
    rows = coordinates.indices()[0].unique()
    product = clew.mm(coordinates, mat)
    columns = int(product.shape[1])
    index = clew.stack([rows.repeat_interleave(columns), clew.arange(columns).repeat(len(rows))])
    return clew.sparse_coo_tensor(
        index, product.index_select(0, rows).flatten(), tuple(product.shape), is_coalesced=True
    )


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix as a sparse tensor of those rows of the first that
    have an element; its values are rows.
    """
    if not mat1.is_sparse:
        raise RuntimeError(f"hspmm: expected a tensor of layout sparse_coo; got {mat1.layout}")
    coordinates: Any = mat1.coalesce()
    rows = coordinates.indices()[0].unique()
    product = clew.mm(coordinates, mat2)
    return clew.sparse_coo_tensor(
        rows.unsqueeze(0), product.index_select(0, rows), tuple(product.shape), is_coalesced=True
    )


def get_device_module(device: Any = None) -> Any:
    """The module of a kind of device, such as clew.cuda; of the CPU if None."""
    kind = "cpu" if device is None else _C.device(device).type
    found = getattr(clew, kind, None)
    if found is None:
        raise RuntimeError(f"clew has no module for the device {kind!r}")
    return found


def is_vulkan_available() -> bool:
    """False."""
    return False


def is_distributed(input: Any) -> bool:
    """False."""
    return False


def _is_functional_tensor(t: Any) -> bool:
    """False."""
    return False


def sym_int(a: Any) -> int:
    """A number rounded towards zero."""
    return int(a)


def sym_float(a: Any) -> float:
    """A number as a float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """The opposite of a bool."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers."""
    return max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers."""
    return min(a, b)


def sym_sqrt(a: Any) -> float:
    """The root of a number."""
    return math.sqrt(a)


def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
    return sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """One of two values."""
    return t if b else f


def typename(obj: Any, /) -> str:
    """The name of an object's type, with its module."""
    kind = obj if isinstance(obj, type) else type(obj)
    if isinstance(obj, Tensor):
        return f"torch.{str(obj.type()).partition('.')[2]}"
    module = getattr(kind, "__module__", "") or ""
    plain = module in ("", "builtins", "__main__")
    return kind.__qualname__ if plain else f"{module}.{kind.__qualname__}"


class _Classes:
    """Classes that extensions would add: there are none."""

    loaded_libraries: frozenset[str] = frozenset()

    def load_library(self, path: Any) -> NoReturn:
        """Raises: such libraries are compiled for PyTorch."""
        raise OSError(f"classes.load_library: {path} is compiled for PyTorch")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(f"Class {name} is not registered: no extension was loaded")


classes = _Classes()
