"""Names of the module `torch` that clew itself has no use for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import clew
from clew import _C, Tensor
from clew._torch._higher_order_ops.control_flow import cond as cond
from clew._torch.absent import _GPU, absent
from clew.futures import Future as Future
from clew.jit import ScriptModule as ScriptModule
from clew.jit import fork as fork
from clew.jit import wait as wait

Stream = absent("", "Stream", _GPU)
Event = absent("", "Event", _GPU)
_SYMBOLS = "sizes are numbers here; nothing is symbolic"
SymInt = absent("", "SymInt", _SYMBOLS)
SymFloat = absent("", "SymFloat", _SYMBOLS)
SymBool = absent("", "SymBool", _SYMBOLS)
has_mps = has_cuda = has_cudnn = False
has_mkldnn = True


class _Layout(clew.layout):
    """The name of a layout that no tensor here has."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"clew.{self._name}"

    def __reduce__(self) -> Any:
        return _Layout, (self._name,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Layout) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)


sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, _mkldnn = map(
    _Layout, "sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc _mkldnn".split()
)


def _assert(condition: Any, message: str) -> None:
    """Raises where a condition does not hold."""
    if type(condition) is not Tensor and hasattr(condition, "__torch_function__"):
        from clew._overriding import handle_torch_function, has_torch_function

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


def _check_is_size(i: int, message: Any = None, *, max: int | None = None) -> None:
    """Raises where a number is negative."""
    _check(i >= 0, message)


def _shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes as a tensor."""
    return clew.tensor(list(x.shape))


def _sample_dirichlet(concentration: Tensor, generator: Any = None) -> Tensor:
    """Draws of Dirichlet distributions."""
    return clew.distributions.Dirichlet(concentration).sample()


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
        return str(obj.type()).replace("clew", "torch", 1)
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
