"""Functions and modules whose operations wait: ``clew.compile``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from clew import _C
from clew._program import options as _options
from clew._program.region import LEAST, deferred
from clew._program.report import Report, last_report
from clew._program.steps import in_steps
from clew.nn.modules.module import Module

__all__ = ["OptimizedModule", "compile"]


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Makes a function or module run its operations together instead of one after the other.

    Each call runs the Python code as it is, inside :class:`clew.deferred`. Nothing is traced, so
    there are no graph breaks, nothing is compiled again for another shape or branch, and nothing
    goes stale. Results and gradients have the same bits as without it.

    Args:
        model: a function, a method or a module; without one a decorator is returned.
        fullgraph: accepted: no graph ever breaks.
        dynamic: accepted: every shape is as good as every other.
        backend: accepted by name ("inductor", the default, "eager", "aot_eager", "cudagraphs",
            "clew"): there is one way to run. Under `clew run` also a function of one's own, which
            is given a graph of the operations and example inputs.
        mode: accepted: one of "default", "reduce-overhead", "max-autotune" and
            "max-autotune-no-cudagraphs".
        options: settings of PyTorch's compiler, of which clew has none: empty or None.
        name: accepted: a label for a compiler's own tools.
        disable: return the model as it is.
        recompile_limit: accepted: nothing is compiled twice.
        isolate_recompiles: accepted: nothing is compiled twice.
        shapes_spec: accepted: every shape is as good as every other.

    Returns:
        a callable with the function's name and signature; of a module an :class:`OptimizedModule`.

    Raises:
        TypeError: the model cannot be called.
        RuntimeError: an unknown mode or option.
        NotImplementedError: a backend that is not one of the above.

    >>> @clew.compile
    ... def loss(x):
    ...     return (x.sin() ** 2).mean()
    >>> loss(clew.zeros(3))
    tensor(0.)
    """
    backend = "inductor" if backend is None else backend
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if _options.graph_maker is not None and not _options.own_backend(backend):
        made = _options.graph_maker(model, backend, mode=mode, options=options)
        return model if disable else made
    _options.check_options(backend=backend, mode=mode, options=options)
    if disable:
        return model
    if isinstance(model, OptimizedModule):
        return model
    if isinstance(model, Module):
        return OptimizedModule(model)
    if isinstance(model, _C.Deferring):
        return model
    if not callable(model):
        raise TypeError(
            f"compile: expected a function or module; got {type(model).__name__}. "
            "Pass the function itself, not its result"
        )
    return _like(_of_kind(model), model)


def _of_kind(function: Callable[..., Any]) -> Any:
    """A function, generator function or coroutine function whose operations wait."""
    made = in_steps(function, deferred)
    return _C.Deferring(function, LEAST) if made is None else made


def _like(made: Any, function: Any) -> Any:
    """``made`` with the function's name, documentation, signature and ``explain``."""
    for name in functools.WRAPPER_ASSIGNMENTS:
        if hasattr(function, name):
            setattr(made, name, getattr(function, name))
    if not isinstance(made, _C.Deferring):
        made.__wrapped__ = function
    made._torchdynamo_orig_callable = function
    made.explain = functools.partial(_explain, made)
    return made


def _explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
    """Calls the function and tells what became of its operations.

    Args:
        args, kwargs: what it is called with.
    Returns:
        the :class:`clew.compiler.Report`; its ``result`` is what the function returned.
    """
    return last_report(function(*args, **kwargs))


class OptimizedModule(Module):
    """A module whose calls are regions in which operations wait.

    It shares parameters, buffers and attributes with the module it was made of, which it keeps as
    ``_orig_mod``: names in its state dict begin with that.

    Args:
        mod: the module.
        dynamo_ctx: accepted.
    """

    _orig_mod: Module

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._orig_mod = mod
        self.__dict__["_call"] = _C.Deferring(mod, LEAST)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self._call(*args, **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Report:
        """Calls the module and tells what became of its operations.

        Args:
            args, kwargs: what it is called with.
        Returns:
            the :class:`clew.compiler.Report`; its ``result`` is what the module returned.
        """
        return _explain(self, *args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", {}):
            self._orig_mod.training = mode

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            modules = self.__dict__.get("_modules") or {}
            if name not in modules:
                raise AttributeError(name)
            return modules[name]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        made = "_orig_mod" in self.__dict__.get("_modules", {})
        if name in ("_orig_mod", "training") or not made:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_call"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__["_call"] = _C.Deferring(self._orig_mod, LEAST)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._orig_mod)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]  # type: ignore[index]
