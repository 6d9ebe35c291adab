"""The types that the table of operations does not know: native methods, creation, attributes."""

from __future__ import annotations

# The names of dtypes (bool, int ...) hide Python's types in both stubs.
PREAMBLE = """import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, overload

import numpy as _np
import numpy.typing as _npt

_bool = builtins.bool
_int = builtins.int
_float = builtins.float
_str = builtins.str
Number: TypeAlias = _bool | _int | _float | builtins.complex
"""

CLASSES = """
from clew._base.dtypes import layout as _layout, memory_format as _memory_format

class dtype:
    is_floating_point: _bool
    is_complex: _bool
    is_signed: _bool
    itemsize: _int
    name: _str
    def to_complex(self) -> dtype: ...
    def to_real(self) -> dtype: ...

class device:
    type: _str
    index: _int | None
    def __init__(self, type: _str | device | _int, index: _int | None = ...) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(self, *args: Any) -> None: ...

class Size(builtins.tuple[_int, ...]):
    def numel(self) -> _int: ...

_dtype: TypeAlias = dtype
_device: TypeAlias = device
_DeviceLike: TypeAlias = _str | device | _int
_Self = TypeVar("_Self", bound=Tensor)

class OutOfMemoryError(RuntimeError, MemoryError): ...

class GradMode: ...

class ModuleBase:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Asking:
    __wrapped__: Any
    def __init__(self, function: Any, ask: Any) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Deferring:
    __wrapped__: Any
    def __init__(self, function: Any, least: _int) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Node:
    @property
    def next_functions(self) -> builtins.tuple[builtins.tuple[Any, _int], ...]: ...
    @property
    def metadata(self) -> dict[Any, Any]: ...
    @property
    def variable(self) -> Tensor: ...
    @property
    def saved_tensors(self) -> builtins.tuple[Tensor, ...]: ...
    @property
    def _input_metadata(self) -> list[Any]: ...
    def name(self) -> _str: ...
    register_hook: Any
    register_prehook: Any
    location: Any
    module: Any
    module_type: Any
    @property
    def _place(self) -> builtins.tuple[Any, ...] | None: ...
    @property
    def _callers(self) -> list[builtins.tuple[Any, ...]]: ...
    @property
    def _cut(self) -> builtins.tuple[Any, ...] | None: ...
    def __call__(self, *grads: Any) -> Any: ...
    def _hooks_dict(self, pre: _bool) -> Any: ...
    def _sequence_nr(self) -> _int: ...
    def _release_saved(self) -> None: ...

class Generator:
    def __init__(self, device: _DeviceLike = ...) -> None: ...
    device: _device
    def clone_state(self) -> Generator: ...
    def get_state(self) -> Tensor: ...
    def initial_seed(self) -> _int: ...
    def manual_seed(self, seed: _int) -> Generator: ...
    def seed(self) -> _int: ...
    def set_state(self, new_state: Tensor) -> Generator: ...

"""

# Attributes of Tensor; what is not here is a bool.
ATTRIBUTES = {
    "shape": "Size",
    "dtype": "_dtype",
    "device": "_device",
    "layout": "_layout",
    "ndim": "_int",
    "grad": "Tensor | None",
    "_grad": "Tensor | None",
    "grad_fn": "Any",
    "data": "Tensor",
    "_version": "_int",
    "_base": "Tensor | None",
    "output_nr": "_int",
    "itemsize": "_int",
    "nbytes": "_int",
}
# PyTorch lets a program assign these.
WRITABLE = ("data", "grad", "_grad", "requires_grad", "real", "imag")

_SIZE = "*size: _int | Sequence[_int]"
_NEW = (
    "dtype: _dtype | None = ..., device: _DeviceLike | None = ..., requires_grad: _bool = ..., "
    "layout: _layout | None = ..., pin_memory: _bool | None = ..."
)
_DRAW = "*, generator: Generator | None = ..."
# Parameters and result of each native method of Tensor; several lines are overloads.
METHODS: dict[str, str] = {
    "_make_subclass": "cls: builtins.type[_Self], data: Tensor, require_grad: _bool = ... -> _Self",
    "as_subclass": "self, cls: builtins.type[_Self] -> _Self",
    "backward": (
        "self, gradient: Tensor | None = ..., retain_graph: _bool | None = ..., "
        "create_graph: _bool = ..., inputs: Tensor | Sequence[Tensor] | None = ... -> None"
    ),
    "bernoulli_": f"self, p: Tensor | _float = ..., {_DRAW} -> Tensor",
    "cauchy_": f"self, median: _float = ..., sigma: _float = ..., {_DRAW} -> Tensor",
    "copy_": "self, src: Tensor, non_blocking: _bool = ... -> Tensor",
    "data_ptr": "self -> _int",
    "detach": "self -> Tensor",
    "detach_": "self -> Tensor",
    "dim": "self -> _int",
    "element_size": "self -> _int",
    "exponential_": f"self, lambd: _float = ..., {_DRAW} -> Tensor",
    "fill_": "self, value: Tensor | Number -> Tensor",
    "geometric_": f"self, p: _float, {_DRAW} -> Tensor",
    "is_complex": "self -> _bool",
    "is_conj": "self -> _bool",
    "is_floating_point": "self -> _bool",
    "is_inference": "self -> _bool",
    "is_signed": "self -> _bool",
    "item": "self -> _bool | _int | _float",
    "log_normal_": f"self, mean: _float = ..., std: _float = ..., {_DRAW} -> Tensor",
    "ndimension": "self -> _int",
    "nelement": "self -> _int",
    "new_empty": f"self, {_SIZE}, {_NEW} -> Tensor",
    "new_empty_strided": f"self, size: Sequence[_int], stride: Sequence[_int], *, {_NEW} -> Tensor",
    "new_full": f"self, size: Sequence[_int], fill_value: Number, *, {_NEW} -> Tensor",
    "new_ones": f"self, {_SIZE}, {_NEW} -> Tensor",
    "new_tensor": f"self, data: Any, *, {_NEW} -> Tensor",
    "new_zeros": f"self, {_SIZE}, {_NEW} -> Tensor",
    "normal_": f"self, mean: _float = ..., std: _float = ..., {_DRAW} -> Tensor",
    "numel": "self -> _int",
    "numpy": "self, *, force: _bool = ... -> _npt.NDArray[Any]",
    "random_": (
        f"self, {_DRAW} -> Tensor\n"
        f"self, to: _int, {_DRAW} -> Tensor\n"
        f"self, from_: _int, /, to: _int | None, {_DRAW} -> Tensor"
    ),
    "requires_grad_": "self: _Self, requires_grad: _bool = ... -> _Self",
    "resize_": f"self, {_SIZE}, memory_format: _memory_format | None = ... -> Tensor",
    "retain_grad": "self -> None",
    "size": "self, dim: None = ... -> Size\nself, dim: _int -> _int",
    "storage_offset": "self -> _int",
    "stride": "self, dim: None = ... -> builtins.tuple[_int, ...]\nself, dim: _int -> _int",
    "tolist": "self -> Any",
    "uniform_": f"self, from_: _float = ..., /, to: _float = ..., {_DRAW} -> Tensor",
    "zero_": "self -> Tensor",
    # Written in Python with *args, because a call has several forms.
    "to": (
        "self, dtype: _dtype, non_blocking: _bool = ..., copy: _bool = ..., *, "
        "memory_format: _memory_format | None = ... -> Tensor\n"
        "self, device: _DeviceLike | None = ..., dtype: _dtype | None = ..., "
        "non_blocking: _bool = ..., copy: _bool = ..., *, "
        "memory_format: _memory_format | None = ... -> Tensor\n"
        "self, other: Tensor, non_blocking: _bool = ..., copy: _bool = ..., *, "
        "memory_format: _memory_format | None = ... -> Tensor"
    ),
    "type": (
        "self, dtype: None = ..., non_blocking: _bool = ... -> _str\n"
        "self, dtype: _str | _dtype | builtins.type, non_blocking: _bool = ... -> Tensor"
    ),
    "nonzero": (
        "self, *, as_tuple: Literal[False] = ... -> Tensor\n"
        "self, *, as_tuple: Literal[True] -> builtins.tuple[Tensor, ...]"
    ),
    "transpose_": "self, dim0: _int, dim1: _int -> Tensor",
    "swapaxes_": "self, axis0: _int, axis1: _int -> Tensor",
    "swapdims_": "self, dim0: _int, dim1: _int -> Tensor",
    "squeeze_": "self, dim: _int | Sequence[_int] | None = ... -> Tensor",
    "unsqueeze_": "self, dim: _int -> Tensor",
    "t_": "self -> Tensor",
    "unsafe_chunk": "self, chunks: _int, dim: _int = ... -> builtins.tuple[Tensor, ...]",
    "unsafe_split": "self, split_size: _int, dim: _int = ... -> builtins.tuple[Tensor, ...]",
    "unsafe_split_with_sizes": (
        "self, split_sizes: Sequence[_int], dim: _int = ... -> builtins.tuple[Tensor, ...]"
    ),
    "as_strided_": (
        "self, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = ... "
        "-> Tensor"
    ),
    "index_reduce_": (
        "self, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, "
        "include_self: _bool = ... -> Tensor"
    ),
}

# Types of the parameters of creation functions, whose names come from their text signatures.
CREATION = {
    "size": "_int | Sequence[_int]",
    "stride": "Sequence[_int]",
    "out": "Tensor | None",
    "dtype": "_dtype | None",
    "layout": "_layout | None",
    "device": "_DeviceLike | None",
    "pin_memory": "_bool | None",
    "requires_grad": "_bool",
    "memory_format": "_memory_format | None",
    "generator": "Generator | None",
    "input": "Tensor",
    "fill_value": "Number",
    "n": "_int",
    "m": "_int | None",
    "start": "Number | Tensor",
    "end": "Number | Tensor",
    "step": "Number",
    "steps": "_int",
    "base": "_float",
    "low": "_int | Tensor",
    "high": "_int | Tensor | None",
    "s": "Number",
    "row": "_int",
    "col": "_int",
    "offset": "_int",
    "count": "_int",
    "copy": "_bool | None",
    "ndarray": "_npt.NDArray[Any]",
    "data": "Any",
    "buffer": "Any",
    "ext_tensor": "Any",
}
# Forms that one list of parameters cannot state: each is (parameters that go in front, dropped).
FORMS = {
    "arange": (
        ("end: Number", ("start", "end", "step")),
        ("start: Number, end: Number, step: Number = ...", ("start", "end", "step")),
    ),
    "range": (("start: Number, end: Number, step: Number = ...", ("start", "end", "step")),),
    "full": (("size: Sequence[_int], fill_value: Tensor | Number", ("size", "fill_value")),),
    "randint": (
        ("high: _int, size: Sequence[_int]", ("low", "high", "size")),
        ("low: _int, high: _int, size: Sequence[_int]", ("low", "high", "size")),
    ),
    "randint_like": (
        ("input: Tensor, high: _int", ("input", "low", "high")),
        ("input: Tensor, low: _int, high: _int", ("input", "low", "high")),
    ),
    "frombuffer": (("buffer: Any, *, dtype: _dtype", ("buffer", "dtype", "*")),),
    "empty_strided": (("size: Sequence[_int], stride: Sequence[_int]", ("size", "stride")),),
}
# Native functions that tell no signature.
FUNCTIONS = {
    "get_default_device": "() -> device",
    "get_default_dtype": "() -> dtype",
    "get_num_threads": "() -> _int",
    "set_num_threads": "(threads: _int, /) -> None",
    "empty_cache": "() -> None",
    "reset_peak_memory_stats": "() -> None",
    "is_grad_enabled": "() -> _bool",
    "is_inference_mode_enabled": "() -> _bool",
    "clear_autocast_cache": "() -> None",
    "autocast_increment_nesting": "() -> _int",
    "autocast_decrement_nesting": "() -> _int",
}

SPECIAL_METHODS = """\
    def __new__(cls: builtins.type[_Self], *args: Any, **kwargs: Any) -> _Self: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __len__(self) -> _int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __reversed__(self) -> Tensor: ...
    def __contains__(self, element: Any) -> _bool: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> _int: ...
    def __float__(self) -> _float: ...
    def __complex__(self) -> builtins.complex: ...
    def __index__(self) -> _int: ...
    def __hash__(self) -> _int: ...
    def __divmod__(self, other: Any) -> builtins.tuple[Tensor, Tensor]: ...
    def __deepcopy__(self, memo: Any) -> Tensor: ...
    def __array__(self, dtype: Any = ..., copy: _bool | None = ...) -> _npt.NDArray[Any]: ...
    def __array_namespace__(self, *, api_version: _str | None = ...) -> Any: ...
    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> builtins.tuple[_int, _int]: ...
    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = ..., kwargs: Any = ...
    ) -> Any: ...
"""
