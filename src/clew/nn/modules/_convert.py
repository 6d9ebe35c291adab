"""The methods of Module that convert its parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import clew
from clew.__future__ import (
    get_overwrite_module_params_on_conversion,
    get_swap_module_params_on_conversion,
)
from clew._tensor.swapping import swap_tensors

from ..parameter import Buffer, Parameter, is_lazy

T = TypeVar("T", bound="Conversions")


def _cast_floating(module: Any, dtype: Any) -> Any:
    return module._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)


def _converted(fn: Callable[[Any], Any], tensor: Any) -> Any:
    """What fn makes of a parameter or buffer; one that waits for its shape goes on waiting."""
    new = fn(tensor)
    if not is_lazy(tensor) or is_lazy(new):
        return new
    extra = {"persistent": tensor.persistent} if isinstance(tensor, Buffer) else {}
    return type(tensor)(tensor.requires_grad, new.device, new.dtype, **extra)


class Conversions:
    """A base of Module: to(), float(), cpu() and their relatives."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    children: Callable[[], Any]

    def _apply(self: T, fn: Callable[[Any], Any], recurse: bool = True) -> T:
        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            with clew.no_grad():
                new = _converted(fn, param)
            grad = param.grad
            swaps = get_swap_module_params_on_conversion() and not is_lazy(new)
            if swaps:
                self._swap(name, param, Parameter(new, param.requires_grad))
                kept = param
            elif new.device == param.device and not get_overwrite_module_params_on_conversion():
                param.data = new
                kept = param
            else:
                kept = new if is_lazy(new) else Parameter(new, param.requires_grad)
                self._parameters[name] = kept
            if grad is not None:
                with clew.no_grad():
                    new_grad = fn(grad)
                new_grad.requires_grad_(grad.requires_grad)
                if swaps:
                    self._swap(f"{name}.grad", grad, new_grad)
                    new_grad = grad
                kept.grad = new_grad
        for name, buf in self._buffers.items():
            if buf is not None:
                self._buffers[name] = _converted(fn, buf)
        return self

    def _swap(self, name: str, tensor: Any, new: Any) -> None:
        """Gives a parameter, or its gradient, what it was converted to."""
        grad = tensor.grad
        try:
            tensor.grad = None  # not of the new parameter's dtype
            swap_tensors(tensor, new)
        except Exception as error:
            tensor.grad = grad
            raise RuntimeError(
                f"_apply(): Couldn't swap {type(self).__name__}.{name}: {error}"
            ) from error

    def apply(self: T, fn: Callable[[Any], object]) -> T:
        """Calls fn on every module below and on the module itself, children first.

        Args:
            fn: a function of a module.

        Returns:
            the module.
        """
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Moves or converts all parameters and buffers: to(device), to(dtype), to(tensor), or both.

        Args:
            args: a device, a dtype, or a tensor to take both from, then non_blocking.
            kwargs: device, dtype, non_blocking, memory_format by name.

        Returns:
            the module itself.
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        def convert(t: Any) -> Any:
            wanted = dtype if t.is_floating_point() or t.is_complex() else None
            extra = {}
            if memory_format is not None and t.dim() in (4, 5):
                extra["memory_format"] = memory_format
            return t.to(
                device=t.device if device is None else device,
                dtype=t.dtype if wanted is None else wanted,
                non_blocking=non_blocking,
                **extra,
            )

        return self._apply(convert)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Moves the module to a device without copying values.

        Args:
            device: where to.
            recurse: the children too.

        Returns:
            the module itself.
        """
        return self._apply(lambda t: clew.empty_like(t, device=device), recurse)

    def cpu(self: T) -> T:
        """Moves the module to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: T, device: Any = None) -> T:
        """Refused: clew computes on the CPU.

        Args:
            device: the wanted device.
        """
        raise RuntimeError("cuda: this build of clew computes on the CPU only")

    def type(self: T, dst_type: Any) -> T:
        """Casts all parameters and buffers.

        Args:
            dst_type: a dtype.

        Returns:
            the module itself.
        """
        return self._apply(lambda t: t.type(dst_type))

    def float(self: T) -> T:
        """Casts floating point parameters and buffers to float32."""
        return _cast_floating(self, clew.float32)

    def double(self: T) -> T:
        """Casts floating point parameters and buffers to float64."""
        return _cast_floating(self, clew.float64)

    def half(self: T) -> T:
        """Casts floating point parameters and buffers to float16."""
        return _cast_floating(self, clew.float16)

    def bfloat16(self: T) -> T:
        """Casts floating point parameters and buffers to bfloat16."""
        return _cast_floating(self, clew.bfloat16)

    def share_memory(self: T) -> T:
        """Moves all parameters and buffers into memory that other processes can map.

        Returns:
            the module itself.
        """
        return self._apply(lambda t: t.share_memory_())

    def _replicate_for_data_parallel(self: T) -> T:
        """A copy without parameters, whose buffers and modules are the same: what PyTorch's
        DataParallel gives each device. Libraries override it.
        """
        replica: Any = type(self).__new__(type(self))
        state = self.__dict__
        replica.__dict__ = {
            **state,
            "_parameters": {},
            "_buffers": state["_buffers"].copy(),
            "_modules": state["_modules"].copy(),
            "_is_replica": True,
        }
        return replica

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Has the operations of this module's calls wait for each other, see :func:`clew.compile`.

        Args:
            args, kwargs: the options of :func:`clew.compile`.
        """
        from clew._program.options import check_options

        check_options(*args, **kwargs)
        if not kwargs.get("disable"):
            self.__dict__["_deferred"] = self.__dict__["_hooked"] = True


def _need_place(value: Any, right: bool) -> None:
    if not right:
        raise TypeError(
            f"to: {value!r} stands in the wrong place; write to(device, dtype, non_blocking), "
            "to(dtype, non_blocking), to(tensor, non_blocking), or name the arguments"
        )


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    device = kwargs.pop("device", None)
    dtype = kwargs.pop("dtype", None)
    non_blocking = kwargs.pop("non_blocking", False)
    memory_format = kwargs.pop("memory_format", None)
    tensor = kwargs.pop("tensor", None)
    if kwargs:
        raise TypeError(f"to: got an unexpected keyword argument '{next(iter(kwargs))}'")
    if tensor is not None:
        args = (tensor, *args)
    # Where a dtype and non_blocking may stand: after a device, or first and second.
    first = args[0] if args else None
    moved = first is None or (
        isinstance(first, str | int | clew.device) and not isinstance(first, bool)
    )
    for at, value in enumerate(args):
        if isinstance(value, clew.Tensor) and at == 0:
            device, dtype = value.device, value.dtype
        elif isinstance(value, clew.dtype) or value is float or value is complex:
            _need_place(value, at == moved)
            dtype = value
        elif isinstance(value, bool):
            _need_place(value, at == 1 + moved)
            non_blocking = value
        elif isinstance(value, str | int | clew.device):
            _need_place(value, at == 0)
            device = value
        elif value is not None:
            raise TypeError(
                f"to: expected a device, a dtype or a tensor; got {type(value).__name__}"
            )
    if device is not None and not isinstance(device, clew.device):
        device = clew.device(device)
    dtype = {float: clew.float64, complex: clew.complex128}.get(dtype, dtype)
    return device, dtype, non_blocking, memory_format
