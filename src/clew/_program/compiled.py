"""Functions and modules whose operations wait: ``clew.compile``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Any

from clew import _C
from clew._program import options as _options
from clew._program.region import LEAST, deferred
from clew._program.report import Report, last_report
from clew.nn.modules.module import Module

__all__ = ["OptimizedModule", "compile"]


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Makes a function or module run its operations together instead of one after the other.

    Each call runs the Python code as it is, inside :class:`clew.deferred`. Nothing is traced, so
    there are no graph breaks, nothing is compiled again for another shape or branch, and nothing
    goes stale. Results and gradients have the same bits as without it.

    Args:
        model: a function, a method or a module; without one a decorator is returned.
        fullgraph: accepted: no graph ever breaks.
        dynamic: accepted: every shape is as good as every other.
        backend: accepted by name ("inductor", "eager", "aot_eager", "cudagraphs", "clew"): there is
            one way to run. Under `clew run` also a function of one's own, which is given a graph of
            the operations and example inputs.
        mode: accepted: one of "default", "reduce-overhead", "max-autotune" and
            "max-autotune-no-cudagraphs".
        options: settings of PyTorch's compiler, of which clew has none: empty or None.
        disable: return the model as it is.
    Returns:
        a callable with the function's name and signature; of a module an :class:`OptimizedModule`.
    Raises:
        TypeError: the model cannot be called.
        ValueError: an unknown mode or option.
        NotImplementedError: a backend that is not one of the above.

    >>> @clew.compile
    ... def loss(x):
    ...     return (x.sin() ** 2).mean()
    >>> loss(clew.zeros(3))
    tensor(0.)
    """
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
    if inspect.isgeneratorfunction(function):
        return lambda *args, **kwargs: _generator(function(*args, **kwargs))
    if inspect.iscoroutinefunction(function):

        async def run(*args: Any, **kwargs: Any) -> Any:
            return await _Stepped(function(*args, **kwargs))

        return run
    if inspect.isasyncgenfunction(function):
        return lambda *args, **kwargs: _async_generator(function(*args, **kwargs))
    return _C.Deferring(function, LEAST)


def _generator(inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Each step is a region of its own: between two steps nothing waits."""
    step: Callable[[], Any] = functools.partial(next, inner)
    try:
        while True:
            try:
                with deferred():
                    given = step()
            except StopIteration as end:
                return end.value
            try:
                step = functools.partial(inner.send, (yield given))
            except GeneratorExit:
                raise
            except BaseException as error:
                step = functools.partial(inner.throw, error)
    finally:
        inner.close()


class _Stepped:
    """A coroutine whose steps are regions."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __await__(self) -> Generator[Any, Any, Any]:
        return _generator(self._inner.__await__())


async def _async_generator(inner: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    given: Any = None
    try:
        while True:
            try:
                value = await _Stepped(inner.asend(given))
            except StopAsyncIteration:
                return
            given = yield value
    finally:
        await inner.aclose()


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
        return {"_orig_mod": self._orig_mod}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_orig_mod"])  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._orig_mod)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]  # type: ignore[index]
