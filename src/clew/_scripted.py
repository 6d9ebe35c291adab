"""What jit.script makes: functions and modules that run as Python and remember an example.

A program needs an example of the arguments. That of a script is its first call, so that
`script(model)`, a call and `save` work as they do in PyTorch.
"""

from __future__ import annotations

import inspect
import io
import textwrap
import types
from collections.abc import Callable
from typing import Any

from clew import Tensor

__all__ = ["Example", "ScriptFunction", "graph_of", "leaves_of", "makers", "source"]

makers: dict[str, Callable[..., Any]] = {}  # what jit makes programs with, once it is loaded
_MOST = 1 << 24  # bytes of an example that is kept


class Example:
    """The arguments of a first call."""

    def __init__(self) -> None:
        self.args: tuple[Any, ...] | None = None
        self.kwargs: dict[str, Any] = {}
        self._asked = False

    def see(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keeps the arguments, unless there are some or they are large."""
        if self._asked or any(
            type(t).__name__.startswith("Sym") for t in leaves_of((args, kwargs))
        ):
            return
        self._asked = True
        tensors = [t for t in leaves_of((args, kwargs)) if isinstance(t, Tensor)]
        if sum(t.numel() * t.element_size() for t in tensors) <= _MOST:
            self.args, self.kwargs = _copied(args), _copied(kwargs)

    def convert(self, fn: Callable[[Any], Any]) -> None:
        """The module was converted to another dtype: so are its arguments, from now on."""
        if self.args is not None:
            self.args, self.kwargs = _copied(self.args, fn), _copied(self.kwargs, fn)

    def program_of(self, called: Any, name: str) -> Any:
        """The program that something is on this example.

        Raises:
            RuntimeError: there is no example.
        """
        if self.args is None:
            raise RuntimeError(
                f"jit: {name} has no program, which needs an example of its arguments: call it "
                f"once (with less than 16 MB), give script() example_inputs=[(x,)], or use "
                f"jit.trace(); a state_dict() needs none"
            )
        return makers["program"](called, self.args, self.kwargs)


def graph_of(traced: Any) -> Any:
    """The calls of a program, with TorchScript's questions."""
    from clew.export._script_graph import ScriptGraph

    return ScriptGraph(traced._exported._program)


def leaves_of(x: Any) -> list[Any]:
    """What stands in tuples, lists and dicts."""
    if isinstance(x, dict):
        x = list(x.values())
    return [y for part in x for y in leaves_of(part)] if type(x) in (tuple, list) else [x]


def _copied(x: Any, fn: Callable[[Any], Any] | None = None) -> Any:
    if isinstance(x, Tensor):
        return (x if fn is None else fn(x)).detach().clone()
    if isinstance(x, dict):
        return {k: _copied(v, fn) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_copied(p, fn) for p in x))
    return type(x)(_copied(p, fn) for p in x) if type(x) in (tuple, list) else x


def source(function: Any) -> str:
    """The text of a function; empty where it cannot be read."""
    try:
        return textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    except (OSError, TypeError):
        return ""


class ScriptFunction:
    """A function that jit.script was given: it runs as Python and may be saved after a call.

    Args:
        function: what is called.
        example: its arguments, where they are known.

    Example:
        >>> from clew.jit import ScriptFunction
        >>> import clew
        >>> double = clew.jit.script(lambda x: 2 * x)
        >>> isinstance(double, ScriptFunction), double(clew.ones(1))
        (True, tensor([2.]))
    """

    _clew_wraps = True  # an export calls what is wrapped
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], example: Example | None = None) -> None:
        self.__wrapped__ = function
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, name, getattr(function, name, None))
        self._example = example or Example()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._example._asked:
            self._example.see(args, kwargs)
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __repr__(self) -> str:
        return f"<ScriptFunction {self.__qualname__}>"

    def __reduce__(self) -> Any:
        return self.__qualname__

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    @property
    def code(self) -> str:
        """The function's text."""
        return source(self.__wrapped__)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.__name__

    @property
    def graph(self) -> Any:
        """The calls of its program, which a first call gives."""
        return graph_of(self._example.program_of(self.__wrapped__, self.name))

    @property
    def inlined_graph(self) -> Any:
        """The same: calls of other functions are calls of this program."""
        return self.graph

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """The program's calls, after one with these arguments.

        Args:
            args: of the function.
            kwargs: likewise.
        """
        self(*args, **kwargs)
        return self.graph

    @property
    def schema(self) -> str:
        """The name with the arguments."""
        return f"{self.__name__}{inspect.signature(self.__wrapped__)}"

    @property
    def qualified_name(self) -> str:
        """The name with its place."""
        return f"__torch__.{self.__qualname__}"

    def save_to_buffer(self, _extra_files: Any = None) -> bytes:
        """What `save` writes.

        Args:
            _extra_files: further members of the file by name.
        """
        file = io.BytesIO()
        self.save(file, _extra_files)
        return file.getvalue()

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Stores its program, on the example of its first call.

        Args:
            f: a path or a binary file.
            _extra_files: further members of the file by name.
        """
        self._example.program_of(self.__wrapped__, self.name).save(f, _extra_files)
