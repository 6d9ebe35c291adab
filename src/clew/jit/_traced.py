"""`trace` and `trace_module`: the program of a module, a function or a script on an example."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import Any

from clew._scripted import leaves_of, makers
from clew.jit._modules import TopLevelTracedModule, _Loaded, _TracedFunction, traced_from
from clew.jit._retraced import Source, check
from clew.nn import Module


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """A module that runs the program which a function or a module is.

    Sizes may vary where the model lets them, and branches and loops that data decides are kept.

    Args:
        func: a function or a module.
        example_inputs: a tensor or a tuple of arguments.
        optimize: accepted; there is no compiler.
        check_trace: every program is compared with what it was made from.
        check_inputs: a list of further tuples of arguments to compare on.
        check_tolerance: of that comparison, relative.
        strict: both ways are one here.
        example_kwarg_inputs: a dict of named arguments.

    Raises:
        ExportError: something cannot be kept.

    >>> traced = clew.jit.trace(clew.nn.Linear(3, 2), clew.ones(4, 3))
    >>> traced(clew.ones(7, 3)).shape
    clew.Size([7, 2])
    """
    if builtins.isinstance(func, _Loaded):
        return func
    program = _recorded(func, example_inputs, example_kwarg_inputs)
    alone = builtins.isinstance(func, (types.FunctionType, types.BuiltinFunctionType))
    made = (_TracedFunction if alone else TopLevelTracedModule)(program)
    made.__dict__["_original_name"] = getattr(func, "__name__", type(func).__name__)
    traced_from[made] = Source(func, _again)
    if check_inputs:
        check(func, made, check_inputs, check_tolerance)
    return made


def _again(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The traced module of other arguments."""
    return TopLevelTracedModule(_recorded(func, args, kwargs or None))


def _program_of_script(called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The traced module of a script; numbers among its arguments are arguments of the program,
    too, as far as that can be kept."""
    from clew.export._errors import ExportError
    from clew.export._module import run_names

    if any(type(x) in (bool, int, float) for x in leaves_of((args, kwargs))):
        wrapped = _OfNumbers(called, args, kwargs)
        try:
            made = trace(wrapped, wrapped.args, example_kwarg_inputs=wrapped.kwargs or None)
        except (ExportError, RuntimeError, TypeError, ValueError, IndexError):
            pass  # a number that must be known, as one of a dim
        else:
            program = made._exported._program
            names = run_names(called.forward if builtins.isinstance(called, Module) else called)
            program.input_names = [*names, *program.input_names[len(names) :]]
            program.numbers = True
            made.__dict__["_original_name"] = getattr(called, "__name__", type(called).__name__)
            return made
    return trace(called, args, example_kwarg_inputs=kwargs or None)


def _recorded(func: Any, example_inputs: Any, named: Any) -> Any:
    from clew import Tensor
    from clew.export._export import record
    from clew.export._shapes import Dim

    if example_inputs is None and named is None:
        raise ValueError("jit.trace: example_inputs or example_kwarg_inputs is needed")
    given = example_inputs if builtins.isinstance(example_inputs, (tuple, list)) else None
    if given is None:
        given = () if example_inputs is None else (example_inputs,)

    def vary(x: Any) -> Any:
        if builtins.isinstance(x, Tensor):
            return dict.fromkeys(range(x.dim()), Dim.AUTO)
        if builtins.isinstance(x, dict):
            return {k: vary(v) for k, v in x.items()}
        return [vary(v) for v in x] if builtins.isinstance(x, (tuple, list)) else None

    shapes = tuple(vary(x) for x in (*given, *(named or {}).values()))
    return record(func, tuple(given), dict(named or {}), shapes)


def trace_module(
    mod: Any,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A module that runs the programs of several of a module's methods, which share its parameters.

    Args:
        mod: the module.
        inputs: {the method's name: its arguments}; "forward" must be there.
        optimize, check_trace: as for `trace`.
        check_inputs: a list of further such dicts to compare on.
        args: as for `trace`.
        kwargs: likewise.

    Returns:
        A TopLevelTracedModule with the other methods as attributes.

    Raises:
        ValueError: if there are no arguments of forward.

    >>> class Net(clew.nn.Linear):
    ...     def twice(self, x):
    ...         return 2 * self(x)
    >>> x = clew.ones(1, 3)
    >>> traced = clew.jit.trace_module(Net(3, 2), {"forward": x, "twice": x})
    >>> traced.twice(clew.ones(4, 3)).shape
    clew.Size([4, 2])
    """
    if "forward" not in inputs:
        raise ValueError("jit.trace_module: inputs must have arguments of 'forward'")

    def traced(what: Any, name: str) -> Any:
        checked = [more[name] for more in check_inputs or () if name in more]
        return trace(what, inputs[name], optimize, check_trace, checked, *args, **kwargs)

    made = traced(mod, "forward")
    for name in inputs:
        if name != "forward":
            method = traced(_Method(mod, name), name)
            made._add_method(name, method)
            made._exported._methods[name] = method._exported._program
    return made


class _OfNumbers(Module):
    """Something that takes tensors of no dims where it was called with numbers."""

    def __init__(self, called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__["_called"] = called
        if builtins.isinstance(called, Module):
            self.__dict__["_stands_for"] = called
            self.training = called.training
            for table in ("_parameters", "_buffers", "_modules"):
                self.__dict__[table] = called.__dict__[table]
        self.__dict__["_given"] = (args, kwargs)
        self.args, self.kwargs = _swapped((args, kwargs), (args, kwargs), _as_tensor)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it with numbers."""
        from clew.export._symbols import _recorder

        args, kwargs = _swapped(self._given, (args, kwargs), lambda n, x: x.item())
        if _recorder:  # its branches are kept
            return _recorder[-1].control.call(_plain_call(self._called), *args, **kwargs)
        return _plain_call(self._called)(*args, **kwargs)


def _plain_call(called: Any) -> Any:
    return called.forward if builtins.isinstance(called, Module) else called


def _as_tensor(number: Any, _: Any) -> Any:
    import clew

    return clew.tensor(number, dtype=clew.float64 if type(number) is float else None)


def _swapped(like: Any, tree: Any, change: Callable[[Any, Any], Any]) -> Any:
    """A tree with what stands where another has numbers changed."""
    if type(like) in (bool, int, float):
        return change(like, tree)
    if builtins.isinstance(like, dict):
        return {k: _swapped(like[k], v, change) if k in like else v for k, v in tree.items()}
    if type(like) in (tuple, list) and len(like) == len(tree):
        return type(like)(_swapped(a, b, change) for a, b in zip(like, tree))
    if builtins.isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(_swapped(a, b, change) for a, b in zip(like, tree)))
    return tree


class _Method(Module):
    """A method of a module as a module of the same parameters."""

    def __init__(self, module: Module, name: str) -> None:
        super().__init__()
        self.__dict__["_called"] = getattr(module, name)
        self.__dict__["_stands_for"] = module
        for table in ("_parameters", "_buffers", "_modules"):
            self.__dict__[table] = module.__dict__[table]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the method."""
        from clew.export._symbols import _recorder

        if _recorder:  # its branches are kept
            return _recorder[-1].control.call(self._called, *args, **kwargs)
        return self._called(*args, **kwargs)


makers["program"] = _program_of_script
for public in (trace, trace_module):
    public.__module__ = "clew.jit"
