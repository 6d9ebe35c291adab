"""What PyTorch's dispatcher sees of functions that make tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import clew
from clew import Tensor

__all__ = ["RULES"]

Send = Callable[..., Any]


def _listed(args: Sequence[Any]) -> list[int]:
    """Sizes that come one by one or as a sequence."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        return list(args[0])
    return list(args)


def _options(kwargs: dict[str, Any], more: Sequence[str] = ()) -> dict[str, Any]:
    """The named arguments that an operation gets: those that were given, and the device."""
    kept = ("dtype", "layout", "memory_format", *more)
    options = {k: kwargs[k] for k in kept if kwargs.get(k) is not None}
    device = kwargs.get("device")
    options["device"] = clew.get_default_device() if device is None else clew.device(device)
    options["pin_memory"] = bool(kwargs.get("pin_memory", False))
    return options


def _finished(made: Any, kwargs: dict[str, Any]) -> Any:
    """The result, which requires grad where that was asked for: the dispatcher is not told."""
    if kwargs.get("requires_grad") and isinstance(made, Tensor):
        made.requires_grad_()
    return made


def _sized(name: str, overload: str = "default") -> Callable[..., Any]:
    """A function of sizes, one by one or as a sequence."""

    def rule(send: Send, *args: Any, **kwargs: Any) -> Any:
        sizes = _listed((kwargs.pop("size"),) if "size" in kwargs else args)
        drawn = kwargs.get("generator") is not None
        options = _options(kwargs, ("generator",))
        made = send(name, "generator" if drawn else overload, sizes, **options)
        return _finished(made, kwargs)

    return rule


def _full(send: Send, size: Any, fill_value: Any, **kwargs: Any) -> Any:
    made = send("full", "default", _listed((size,)), fill_value, **_options(kwargs))
    return _finished(made, kwargs)


def _eye(send: Send, n: int, m: int | None = None, **kwargs: Any) -> Any:
    sizes = (n,) if m is None else (n, m)
    made = send("eye", "default" if m is None else "m", *sizes, **_options(kwargs))
    return _finished(made, kwargs)


def _arange(send: Send, *args: Any, **kwargs: Any) -> Any:
    for name in ("start", "end", "step"):
        if name in kwargs:
            args = (*args, kwargs.pop(name))
    overload = ("default", "start", "start_step")[len(args) - 1]
    return _finished(send("arange", overload, *args, **_options(kwargs)), kwargs)


def _spaced(name: str) -> Callable[..., Any]:
    def rule(send: Send, start: Any, end: Any, steps: int, *base: Any, **kwargs: Any) -> Any:
        if "base" in kwargs:
            base = (kwargs.pop("base"),)
        made = send(name, "default", start, end, steps, *base, **_options(kwargs))
        return _finished(made, kwargs)

    return rule


def _randint(send: Send, *args: Any, **kwargs: Any) -> Any:
    for name in ("low", "high", "size"):
        if name in kwargs:
            args = (*args, kwargs.pop(name))
    *bounds, size = args
    overload = "low" if len(bounds) == 2 else "default"
    if kwargs.get("generator") is not None:
        overload = "low_generator" if len(bounds) == 2 else "generator"
    made = send("randint", overload, *bounds, list(size), **_options(kwargs, ("generator",)))
    return _finished(made, kwargs)


def _randperm(send: Send, n: int, **kwargs: Any) -> Any:
    overload = "default" if kwargs.get("generator") is None else "generator"
    made = send("randperm", overload, n, **_options(kwargs, ("generator",)))
    return _finished(made, kwargs)


def _strided(send: Send, size: Any, stride: Any, **kwargs: Any) -> Any:
    made = send("empty_strided", "default", list(size), list(stride), **_options(kwargs))
    return _finished(made, kwargs)


def _corner(name: str) -> Callable[..., Any]:
    def rule(send: Send, row: int, col: int, offset: int = 0, **kwargs: Any) -> Any:
        place = (row, col, offset) if offset else (row, col)
        return send(name, "default", *place, **_options(kwargs))

    return rule


def _scalar(send: Send, s: Any, **kwargs: Any) -> Any:
    return _finished(send("scalar_tensor", "default", s, **_options(kwargs)), kwargs)


def _lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Values of the program become a tensor; the dispatcher is shown the tensor."""

    def rule(send: Send, data: Any, *args: Any, **kwargs: Any) -> Any:
        made = function(data, *args, **{**kwargs, "requires_grad": False})
        return _finished(send("lift_fresh", "default", made), kwargs)

    return rule


def _as_tensor(function: Callable[..., Any]) -> Callable[..., Any]:
    def rule(send: Send, data: Any, *args: Any, **kwargs: Any) -> Any:
        made = function(data, *args, **kwargs)
        return made if made is data else send("lift_fresh", "default", made)

    return rule


def _plain(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arguments arrive as they are given."""

    def rule(send: Send, *args: Any, **kwargs: Any) -> Any:
        given = {k: v for k, v in kwargs.items() if v is not None} | _options(kwargs)
        given.pop("requires_grad", None)
        return _finished(send(name, "default", *args, _function=function, **given), kwargs)

    return rule


def _polar(send: Send, abs: Tensor, angle: Tensor) -> Any:
    return send("polar", "default", abs, angle)


def _normal(send: Send, mean: Any, std: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
    drawn = {"generator": kwargs["generator"]} if kwargs.get("generator") is not None else {}
    if size is not None:
        options = {**_options(kwargs), **drawn}
        return _finished(send("normal", "float_float", mean, std, list(size), **options), kwargs)
    kinds = ["Tensor" if isinstance(v, Tensor) else "float" for v in (mean, std)]
    spread = () if not isinstance(std, Tensor) and std == 1 else (std,)
    return send("normal", "_".join(kinds), mean, *spread, **drawn)


def _empty_permuted(send: Send, size: Any, physical_layout: Any, **kwargs: Any) -> Any:
    given = list(size), list(physical_layout)
    return _finished(send("empty_permuted", "default", *given, **_options(kwargs)), kwargs)


_WINDOWS = "bartlett_window blackman_window hamming_window hann_window kaiser_window".split()

RULES: dict[str, Callable[..., Any]] = {
    **{name: _plain(name, getattr(clew, name)) for name in _WINDOWS},
    "fftfreq": _plain("fft_fftfreq", clew.fft.fftfreq),
    "rfftfreq": _plain("fft_rfftfreq", clew.fft.rfftfreq),
    "polar": _polar, "normal": _normal, "empty_permuted": _empty_permuted,
    **{name: _sized(name) for name in ("zeros", "ones", "rand", "randn")},
    "empty": _sized("empty", "memory_format"), "full": _full, "eye": _eye, "arange": _arange,
    "linspace": _spaced("linspace"), "logspace": _spaced("logspace"), "randint": _randint,
    "randperm": _randperm, "empty_strided": _strided, "scalar_tensor": _scalar,
    "tril_indices": _corner("tril_indices"), "triu_indices": _corner("triu_indices"),
    "tensor": _lifted(vars(clew._C)["tensor"]), "as_tensor": _as_tensor(vars(clew._C)["as_tensor"]),
    "asarray": _as_tensor(clew.asarray),
}  # fmt: skip
