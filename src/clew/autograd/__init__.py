"""Automatic differentiation: backward, grad, custom functions, gradient checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew._C import Tensor

from . import graph
from ._backward import _tensor_backward as _tensor_backward  # for the core
from ._backward import backward, grad
from .function import Function
from .grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _AnyTensor(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    @property
    def _execution_engine(cls) -> Any:
        from clew.autograd import _ends

        _ends.watch()
        return _ends.engine


class Variable(metaclass=_AnyTensor):
    """PyTorch's old name of a tensor: calling it gives one that shares memory with ``data``.

    Args:
        data: a tensor.
        requires_grad: whether the result is a leaf that gets a gradient.
        volatile: without effect; see :class:`no_grad`.

    >>> clew.autograd.Variable(clew.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(  # type: ignore[misc]
        cls, data: Tensor, requires_grad: bool = False, volatile: bool = False
    ) -> Tensor:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: data must be a tensor; got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


backward.__module__ = grad.__module__ = __name__  # where they are to be found

# Seldom asked for: imported at their first use.
if TYPE_CHECKING:
    from . import anomaly_mode as anomaly_mode
    from . import forward_ad as forward_ad
    from . import functional as functional
    from . import profiler as profiler
    from . import profiler_util as profiler_util
    from . import variable as variable
    from .anomaly_mode import detect_anomaly as detect_anomaly
    from .anomaly_mode import set_detect_anomaly as set_detect_anomaly

_LATER = ("anomaly_mode", "functional", "forward_ad", "profiler", "profiler_util", "variable")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *__all__} - {"Any", "TYPE_CHECKING", "annotations"})


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        if name in _LATER:
            import importlib

            return importlib.import_module(f"clew.autograd.{name}")
        if name in ("detect_anomaly", "set_detect_anomaly"):
            from clew.autograd import anomaly_mode

            return getattr(anomaly_mode, name)
        from clew._namespace import missing_name

        raise missing_name(__name__, name, __dir__())
