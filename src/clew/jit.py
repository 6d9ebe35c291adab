"""TorchScript's names, in their roles: `trace` makes a program that `save` stores.

A traced module runs, trains and is stored without its source (`clew.export`); branches and loops
that data decides stay what they are. What `script` returns runs as Python; its program is made
when it is asked for, on the arguments of its first call. The other decorators return what they are
given.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import io
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from clew._retraced import Source, check
from clew._script_marks import (
    annotate,
    export,
    ignore,
    interface,
    isinstance,
    script_if_tracing,
    script_method,
    unused,
)
from clew._scripted import Example, ScriptFunction, graph_of, leaves_of, makers, source
from clew.nn import Module

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class TracerWarning(Warning):
    """What PyTorch's tracer warns of; here such a trace raises."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Does nothing: there are no such warnings."""


class CompilationUnit:
    """PyTorch's table of compiled functions; nothing is compiled here, so this one is empty.

    Example:
        >>> unit = clew.jit.CompilationUnit()
    """


def _same(fn: Any) -> Any:
    return fn


_overload = _overload_method = _script_if_tracing = _same


class Attribute(NamedTuple):
    """A value and the type that a compiler would take it for."""

    value: Any
    type: Any


class ScriptModule(Module):
    """A Module whose methods run as Python, and that has a program once it was called.

    What `script`, `trace` and `load` return is of this class too. `graph` and `save` record the
    program on the arguments of the first call; without a call, on an input as the first layer takes
    it, with a warning.

    Args:
        args, kwargs: passed on to Module.

    Example:
        >>> class Net(clew.jit.ScriptModule):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> Net()(clew.ones(1))
        tensor([2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not builtins.isinstance(self, RecursiveScriptModule):
            self.__dict__["_example"] = Example()
            self.__dict__["_first"] = self.register_forward_pre_hook(_see, with_kwargs=True)

    def _program(self) -> Any:
        """What is stored."""
        example = _guess(self.__dict__.get("_example") or Example(), self)
        return example.program_of(self, type(self).__name__)

    @property
    def graph(self) -> Any:
        """The program's calls."""
        return graph_of(self._program())

    @property
    def inlined_graph(self) -> Any:
        """The same: calls of other modules are calls of this program."""
        return self.graph

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """The program's calls, after one with these arguments.

        Args:
            args: of forward().
            kwargs: likewise.
        """
        self(*args, **kwargs)
        return self.graph

    @property
    def code(self) -> str:
        """The text of its forward()."""
        return source(type(self).forward)

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        """The text, and the constants: those that the text has."""
        return self.code, types.SimpleNamespace(const_mapping={})

    @property
    def original_name(self) -> str:
        """The name of the module's class."""
        return str(self.__dict__.get("_original_name") or type(self).__name__)

    @property
    def _c(self) -> _Inner:
        return _Inner(self)

    def save_to_buffer(self, _extra_files: Any = None) -> bytes:
        """What `save` writes.

        Args:
            _extra_files: further members of the file by name.
        """
        file = io.BytesIO()
        save(self, file, _extra_files)
        return file.getvalue()

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Stores the program of a traced module; see `save`.

        Args:
            f: a path or a binary file.
            _extra_files: further members of the file by name.
        """
        save(self, f, _extra_files)

    _save_for_lite_interpreter = save  # the same file: programs have one form


def _see(module: Any, args: Any, kwargs: Any) -> None:
    """The first call of a module is its example."""
    if not is_tracing():
        module.__dict__["_example"].see(args, kwargs)
        module.__dict__.pop("_first").remove()


def _guess(example: Example, module: Any) -> Example:
    """The example; where there is none, of what the first layer takes, with a warning."""
    from clew._base.provenance import user_level
    from clew.export._guessing import guessed

    if not example._asked:
        found = guessed(module)
        if found is not None:
            example.see((found,), {})
            warnings.warn(
                f"jit: {type(module).__name__} was not called before its program was needed, which "
                f"is now that of an input {found.dtype.name}{list(found.shape)}, as the first "
                f"layer takes it, with sizes that vary where they may; call it first to choose "
                f"another",
                stacklevel=user_level(),
            )
    return example


class _Inner:
    """What PyTorch keeps below a ScriptModule, as far as programs ask it for graphs."""

    def __init__(self, module: ScriptModule) -> None:
        self._module = module

    @property
    def _method_names_of(self) -> list[str]:
        return ["forward", *self._module.__dict__.get("_methods", [])]

    def _method_names(self) -> list[str]:
        """The methods that have a program."""
        return self._method_names_of

    def _get_method(self, name: str) -> Any:
        if name not in self._method_names_of:
            raise RuntimeError(f"Method '{name}' is not defined.")
        return self._module if name == "forward" else self._module.__dict__[name]

    def qualified_name(self) -> str:
        """The name of its type."""
        return f"__torch__.{self._module.original_name}"


class RecursiveScriptModule(ScriptModule):
    """A module that has a program; `script`, `trace` and `load` return one.

    Example:
        >>> from clew.jit import isinstance
        >>> net = clew.jit.trace(clew.nn.Linear(2, 1), clew.ones(1, 2))
        >>> isinstance(net, clew.jit.RecursiveScriptModule)
        True
    """


class _Loaded(RecursiveScriptModule):
    """A module that runs a stored program."""

    def _program(self) -> Any:
        return self

    def __init__(self, program: Any) -> None:
        from clew.export._module import ProgramModule
        from clew.export._program import ExportedProgram

        super().__init__()
        self.__dict__["_exported"] = program
        inner = ProgramModule(program._program)
        self.__dict__["_inner"] = inner
        # The program's own tables: what is trained or loaded here is what runs.
        for table in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[table] = getattr(inner, table)
        self.training = inner.training
        for name, method in program._methods.items():
            self._add_method(name, _Loaded(ExportedProgram(method)))

    def _add_method(self, name: str, method: Any) -> None:
        self.__dict__[name] = method
        self.__dict__.setdefault("_methods", []).append(name)
        own = dict(self.named_parameters()) | dict(self.named_buffers())
        for kind, path, tensor in method._exported._tensors():
            if kind == "constant" or path in own:
                continue
            *parts, last = path.split(".")
            at: Module = self
            for part in parts:
                if part not in at._modules:
                    at.add_module(part, Module())
                at = at._modules[part]
            register = at.register_parameter if kind == "param" else at.register_buffer
            register(last, tensor)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program.

        Args:
            args: as the example's arguments were nested.
            kwargs: the named ones.

        Returns:
            The program's results.
        """
        if self._exported._program.numbers:
            return self._inner._general(args, kwargs)
        source = _traced_from.get(self)
        forward = self._inner.forward
        return forward(*args, **kwargs) if source is None else source.call(self, args, kwargs)

    def train(self, mode: bool = True) -> Any:
        """Sets `training`, which does not change what was recorded.

        Args:
            mode: training mode or evaluation mode.
        """
        self._inner.train(mode)
        return super().train(mode)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        made = super()._apply(fn, recurse)
        for program in (self, *(self.__dict__[n] for n in self.__dict__.get("_methods", ()))):
            program._inner._retype(fn)
        return made

    def load_state_dict(
        self, state_dict: Any, strict: bool = True, assign: bool = False
    ) -> Any:  # fmt: skip
        """Loads parameters and buffers.

        Args:
            state_dict: as for Module.load_state_dict.
            strict: likewise.
            assign: likewise; the tensors stay the program's own, and get the others' memory.
        """
        if assign:
            return self._inner.load_state_dict(state_dict, strict, True)
        return super().load_state_dict(state_dict, strict)

    @property
    def code(self) -> str:
        """The program as text."""
        return str(self._exported)

    def __reduce__(self) -> Any:
        from clew.export._file import to_bytes

        whole = to_bytes(self._inner.current(), methods=self._exported._methods)
        return _unpickled, (type(self), whole)

    def __deepcopy__(self, memo: Any) -> Any:
        function, args = self.__reduce__()
        return function(*args)


def _unpickled(kind: Any, data: bytes) -> Any:
    from clew.export._file import from_bytes
    from clew.export._program import ExportedProgram

    program, _, methods = from_bytes(data)
    made = ExportedProgram(program)
    made._methods = methods
    return kind(made)


# By the traced module; a copy or one that was read from a file has nothing to be made from.
_traced_from: weakref.WeakKeyDictionary[Any, Source] = weakref.WeakKeyDictionary()


class TopLevelTracedModule(_Loaded):
    """A module that runs the program of its example; `trace` returns one.

    Args:
        program: an ExportedProgram.

    Example:
        >>> net = clew.jit.trace(clew.nn.Linear(2, 1), clew.ones(1, 2))
        >>> type(net) is clew.jit.TopLevelTracedModule
        True
    """


class _TracedFunction(TopLevelTracedModule, ScriptFunction):
    """What `trace` makes of a function; a module, too."""

    _clew_wraps = False

    @property
    def name(self) -> str:
        """What the function is called."""
        return self.original_name


class _Scripted(RecursiveScriptModule):
    """What `script` makes of a module: the same attributes, and a program once it was called."""

    _own: Any  # the module's class
    _kept: Example
    _calls: dict[str, Example]  # of methods that are exported, too

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module's own forward()."""
        if not (self._kept._asked or is_tracing()):
            self._kept.see(args, kwargs)
        return super().forward(*args, **kwargs)

    def _program(self) -> Any:
        plain = _plain(self)
        _guess(self._kept, plain)
        made = self._kept.program_of(plain, self.original_name)
        made.__dict__["_original_name"] = self.original_name
        for name, example in self._calls.items():
            if example.args is not None:
                method = example.program_of(_Method(plain, name), name)
                made._add_method(name, method)
                made._exported._methods[name] = method._exported._program
        return made

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        made = super()._apply(fn, recurse)
        for example in (self._kept, *self._calls.values()):
            example.convert(fn)
        return made

    @property
    def code(self) -> str:
        """The text of the module's forward()."""
        return source(type(_plain(self)).forward)

    def __reduce__(self) -> Any:
        return script, (_plain(self),)

    def __deepcopy__(self, memo: Any) -> Any:
        made = script(copy.deepcopy(_plain(self), memo))
        kind: Any = type(made)
        kind._kept.__set__(made, copy.copy(self._kept))
        kind._calls.__set__(made, {k: copy.copy(v) for k, v in self._calls.items()})
        return made


def _plain(module: Any) -> Any:
    """The module that was scripted: an object of its class with the same attributes."""
    made = object.__new__(module._own)
    made.__dict__ = module.__dict__
    return made


def _scripted(module: Any) -> Any:
    own = type(module)
    if own not in _kinds:
        table = {"__slots__": ("_kept", "_calls"), "_own": own, "__doc__": own.__doc__}
        table |= {n: _seen(n, f) for n, f in _exported(own).items()}
        table |= {"__module__": own.__module__, "__qualname__": own.__qualname__}
        _kinds[own] = type(own.__name__, (_Scripted, own), table)
    made: Any = object.__new__(_kinds[own])
    made.__dict__ = module.__dict__
    type(made)._kept.__set__(made, Example())
    type(made)._calls.__set__(made, {})
    return made


def _exported(kind: type) -> dict[str, Any]:
    """The methods of a class that `jit.export` marks."""
    every = {n: f for c in reversed(kind.__mro__) for n, f in vars(c).items()}
    return {n: f for n, f in every.items() if getattr(f, "_clew_exported", False)}


def _seen(name: str, function: Any) -> Any:
    """A method whose first call is its example."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            self._calls.setdefault(name, Example()).see(args, kwargs)
        return function(self, *args, **kwargs)

    return method


_kinds: dict[type, type] = {}


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """A function or a module that runs as Python, and has a program once it was called.

    Parameters, buffers and attributes are the module's own. The arguments of the first call are
    the example on which `save` and `graph` record the program. Classes and other objects are
    returned as they are; with example_inputs, the program is recorded at once.

    Args:
        obj: a function, a Module or a class.
        optimize: accepted; there is no compiler.
        example_inputs: a list of tuples of arguments, of which the first is taken.

    >>> @clew.jit.script
    ... def double(x):
    ...     return 2 * x
    >>> double(clew.ones(1))
    tensor([2.])
    """
    if example_inputs is not None:
        return trace(obj, next(iter(example_inputs)))
    if builtins.isinstance(obj, types.FunctionType):
        return ScriptFunction(obj)
    if builtins.isinstance(obj, Module) and not builtins.isinstance(obj, ScriptModule):
        return _scripted(obj)
    return obj


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
    _traced_from[made] = Source(func, _again)
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


makers["program"] = _program_of_script


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


def is_scripting() -> bool:
    """Whether the code runs compiled: always False, for it runs as Python.

    >>> clew.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """Whether `trace` or `clew.export` is recording a program.

    >>> clew.jit.is_tracing()
    False
    """
    from clew.export._symbols import _recorder

    return bool(_recorder)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Returns the module itself; PyTorch would make its parameters constants of a program.

    Args:
        mod: a module in evaluation mode.
        preserved_attrs: not used: all attributes stay.
        optimize_numerics: not used.

    Raises:
        RuntimeError: if the module is in training mode.

    >>> net = clew.nn.Linear(2, 1).eval()
    >>> clew.jit.freeze(net) is net
    True
    """
    if mod.training:
        raise RuntimeError("freeze: the module must be in evaluation mode; call .eval() first")
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """Returns the module itself: it runs as Python, and nothing is optimized.

    Args:
        mod: a module.
        other_methods: not used.

    >>> net = clew.nn.Linear(2, 1).eval()
    >>> clew.jit.optimize_for_inference(net) is net
    True
    """
    return mod


class _Done:
    """The result of a call that has happened."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """The result."""
        return self._value

    value = wait

    def done(self) -> bool:
        """True."""
        return True


def _unwrap_optional(x: Any) -> Any:
    """A value that is not None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function at once; `wait` returns its result.

    Args:
        func: the function.
        args: its arguments.
        kwargs: its named arguments.

    Returns:
        An object for `wait`. Unlike PyTorch's, the call has ended by then.

    >>> clew.jit.wait(clew.jit.fork(clew.add, clew.ones(1), 2))
    tensor([3.])
    """
    return _Done(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """The result of a `fork`.

    Args:
        future: what `fork` returned.

    >>> clew.jit.wait(clew.jit.fork(lambda x: 2 * x, clew.ones(1)))
    tensor([2.])
    """
    return future.wait()


_fork, _wait = fork, wait


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Stores the program of a traced module.

    Args:
        m: what `script`, `trace` or `load` returned.
        f: a path or a binary file.
        _extra_files: further members of the file by name, strings or bytes.

    Raises:
        RuntimeError: the module has no program.

    >>> net = clew.jit.trace(clew.nn.Linear(2, 1), clew.ones(1, 2))
    >>> clew.jit.save(net, "net.pt")
    >>> clew.jit.load("net.pt")(clew.ones(3, 2)).shape
    clew.Size([3, 1])
    """
    from clew.export import save as save_program

    if builtins.isinstance(m, ScriptFunction) and not builtins.isinstance(m, Module):
        m.save(f, _extra_files)
        return
    if not builtins.isinstance(m, ScriptModule):
        raise RuntimeError(
            f"jit.save: a {type(m).__name__} has no program, which needs an example: save "
            "clew.jit.trace(module, example_inputs), or what jit.script(module, "
            "example_inputs=[(x,)]) returns, or store m.state_dict()"
        )
    program = m._program()
    program._inner.current()
    name = program.__dict__.get("_original_name", "")
    if name.isidentifier():
        program._exported._program.name = name
    save_program(program._exported, f, extra_files=_extra_files)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, **kwargs: Any) -> Any:
    """A module that runs a stored program; its source is not needed.

    Args:
        f: a path or a binary file that `save` or `clew.export.save` wrote.
        map_location: the CPU, or None.
        _extra_files: a dict whose keys name further members; its values are replaced by theirs.

    Returns:
        A RecursiveScriptModule.

    Raises:
        ExportError: the file is damaged, or PyTorch's own, which is not read.

    >>> clew.jit.save(clew.jit.trace(clew.nn.ReLU(), clew.ones(2)), "relu.pt")
    >>> clew.jit.load("relu.pt")(clew.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    from clew.export import load as load_program

    if map_location is not None and "cpu" not in str(map_location):
        raise ValueError(f"jit.load: map_location must be the CPU; got {map_location!r}")
    program = load_program(f, extra_files=_extra_files)
    made = _Loaded(program)
    made.__dict__["_original_name"] = program._program.name or "Module"
    return made


def export_opnames(m: Any) -> list[str]:
    """The operations that a program calls, by TorchScript's names, in order.

    Args:
        m: what `script`, `trace` or `load` returned.

    >>> clew.jit.export_opnames(clew.jit.trace(clew.nn.ReLU(), clew.ones(2)))
    ['aten::relu']
    """
    if not builtins.isinstance(m, ScriptModule):
        raise TypeError(f"jit.export_opnames: expected a ScriptModule; got {type(m).__name__}")
    kinds = {n.kind() for n in m.graph.findAllNodes()}
    return sorted(k for k in kinds if not k.startswith("prim::"))


def is_script_module(obj: Any) -> bool:
    """Whether something is what `script`, `trace` or `load` return.

    Args:
        obj: anything.
    """
    return builtins.isinstance(obj, ScriptModule)


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Does nothing: there is nothing to fuse."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Does nothing: there are no compiled graphs."""


def onednn_fusion_enabled() -> bool:
    """False: there are no compiled graphs."""
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Changes nothing: programs run as they are.

    Args:
        should_optimize: accepted.
    """
    yield


_state = None


def _get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> tuple[Any, ...]:
    """Runs a module or a function, and gives the graph of that run and what came out.

    Args:
        f: what is called.
        args: its arguments.
        kwargs: its named arguments.
        strict: both ways are one here.
        return_inputs: whether to give the arguments, too, behind both.
    """
    from clew._trace_graph import trace_graph

    if _force_outplace or _return_inputs_states:
        raise NotImplementedError(
            "jit._get_trace_graph: _force_outplace and _return_inputs_states are not supported"
        )
    given = tuple(args) if builtins.isinstance(args, (tuple, list)) else (args,)
    graph, out = trace_graph(f, given, kwargs or {})
    return (graph, out, given) if return_inputs else (graph, out)
