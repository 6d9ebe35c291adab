"""Modules that have a program: how it is made, run, stored and read again."""

from __future__ import annotations

import builtins
import io
import types
import warnings
import weakref
from typing import Any

from clew._scripted import Example, ScriptFunction, graph_of, source
from clew.jit._retraced import Source
from clew.nn import Module


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

    __module__ = "clew.jit"

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

    __module__ = "clew.jit"


class _Loaded(RecursiveScriptModule):
    """A module that runs a stored program."""

    __module__ = "clew.jit"

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
        source = traced_from.get(self)
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
traced_from: weakref.WeakKeyDictionary[Any, Source] = weakref.WeakKeyDictionary()


class TopLevelTracedModule(_Loaded):
    """A module that runs the program of its example; `trace` returns one.

    Args:
        program: an ExportedProgram.

    Example:
        >>> net = clew.jit.trace(clew.nn.Linear(2, 1), clew.ones(1, 2))
        >>> type(net) is clew.jit.TopLevelTracedModule
        True
    """

    __module__ = "clew.jit"


class _TracedFunction(TopLevelTracedModule, ScriptFunction):
    """What `trace` makes of a function; a module, too."""

    __module__ = "clew.jit"

    _clew_wraps = False

    @property
    def name(self) -> str:
        """What the function is called."""
        return self.original_name


def is_tracing() -> bool:
    """Whether `trace` or `clew.export` is recording a program.

    >>> clew.jit.is_tracing()
    False
    """
    from clew.export._symbols import _recorder

    return bool(_recorder)


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


# Pickles and messages name them by where programs find them.
for public in (_see, _unpickled, is_tracing, load, save):
    public.__module__ = "clew.jit"
