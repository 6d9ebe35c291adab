"""An exported program as a module that runs and trains."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import clew
from clew import Tensor
from clew._base import lapack
from clew._base.provenance import user_level
from clew.export import _tree
from clew.export._code import NOT_GIVEN, compile_program
from clew.export._ir import Program
from clew.nn import Module

__all__ = ["ProgramModule", "homes_of"]

# A program calls the core's operations by name, past `clew.linalg`, which loads it otherwise.
lapack.load()


class OtherArguments(RuntimeError):
    """A program was called with tensors of another dtype, number of dims or fixed size."""


class _Holder(Module):
    """Stands for a submodule of the exported model: it only has its tensors."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Raises: parts of an exported program do not run alone."""
        raise NotImplementedError("a part of an exported program cannot be called")


def homes_of(root: Module, program: Program) -> dict[str, tuple[Any, str]]:
    """Puts the tensors that a program keeps into a module; says where each of them is."""
    homes: dict[str, tuple[Any, str]] = {}
    constants: dict[str, Tensor] = {}
    kept = [v.source for v in program.kept if v.source is not None]
    for kind, name in dict.fromkeys([*program.state, *kept]):
        tensor = program.tensors[name]
        if kind == "constant":
            constants[name] = tensor
            homes[name] = (constants, name)
            continue
        *path, last = name.split(".")
        at = root
        for part in path:
            if part not in at._modules:
                at.add_module(part, _Holder())
            at = at._modules[part]
        if kind == "param":
            at.register_parameter(last, tensor)
            homes[name] = (at._parameters, last)
        else:
            at.register_buffer(last, tensor, name not in program.transient)
            homes[name] = (at._buffers, last)
    root._program_constants = constants
    return homes


class ProgramModule(Module):
    """An exported program as a module: its parameters are the model's, it has gradients, and it
    needs no source.

    Args:
        program: what to run.
    """

    _told = False  # that eval() does not change the program

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._program = program
        self._homes = homes_of(self, program)
        self.training = program.training
        self._compile()

    def _compile(self) -> None:
        program = self._program
        checks, ties = _checks(program), _ties(program)
        spec = program.in_tree
        simple = spec[0] == "tuple" and all(s == ["leaf"] for s in spec[1][0][1])
        simple = simple and spec[1][1] == ["dict", [], []]
        tie = None
        if ties:
            tie = (
                (lambda args: _check_ties(ties, args, program.ranges)),
                _equal_places(ties, program),
            )
        run = compile_program(
            program, self._homes, lambda k, x: checks[k](x), tie,
            self._general if simple else None,
        )  # fmt: skip
        self._run = run
        self._count = len(program.inputs)
        if simple:
            self.forward = run  # type: ignore[method-assign]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program.

        Args:
            args: as the program's inputs were nested when it was exported.
            kwargs: likewise.

        Raises:
            RuntimeError: an argument has another shape or dtype than the program was exported for.
        """
        return self._general(args, kwargs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._run(*self._leaves(tuple(a for a in args if a is not NOT_GIVEN), kwargs))

    def _leaves(self, args: Any, kwargs: Any) -> list[Any]:
        """The program's inputs, of arguments as they were nested."""
        leaves = self._unnested(args, kwargs)
        if self._program.numbers:
            for k, (v, x) in enumerate(zip(self._program.inputs, leaves)):
                if type(x) in (bool, int, float) and v.kind == "tensor" and not v.sizes:
                    if type(x) is float and not v.dtype.is_floating_point:
                        raise TypeError(f"exported program: {v.name} must be whole; got {x!r}")
                    leaves[k] = _scalar(x, v.dtype)
        return leaves

    def _unnested(self, args: Any, kwargs: Any) -> list[Any]:
        spec = self._program.in_tree
        names = self._program.input_names
        count, keys = len(spec[1][0][1]), spec[1][1][1]
        given = list(args)
        named = dict(kwargs)
        for name in names[len(given) : count]:
            if name in named:
                given.append(named.pop(name))
        extra = given[count:]
        if extra:
            given = given[:count]
            if len(extra) > len(keys):
                raise TypeError(
                    f"exported program: it takes {count + len(keys)} arguments; "
                    f"got {len(args) + len(kwargs)}"
                )
            for k, x in zip(keys, extra):
                named[k] = x
        leaves: list[Any] = []
        ordered = {k: named[k] for k in keys if k in named}
        ordered |= {k: v for k, v in named.items() if k not in ordered}
        _tree.match(spec, (tuple(given), ordered), leaves, "the arguments")
        return leaves

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        made = super()._apply(fn, recurse)
        self._retype(fn)
        return made

    def _retype(self, fn: Any) -> None:
        """Parameters were converted: the inputs are of other dtypes, too."""
        program = self._program
        nodes = list(program.walk())
        values = [*program.inputs, *program.kept, *(o for n in nodes for o in n.outputs)]
        values += [p for n in nodes for b in n.blocks for p in b.params]
        kinds = {v.dtype for v in values if v.kind == "tensor" and v.dtype.is_floating_point}
        found = {d: fn(clew.empty(0, dtype=d)).dtype for d in kinds}
        self.current()
        if all(a is b for a, b in found.items()):
            return
        for v in values:
            v.dtype = found.get(v.dtype, v.dtype)
        self._compile()

    def load_state_dict(
        self, state_dict: Any, strict: bool = True, assign: bool = False
    ) -> Any:  # fmt: skip
        """Loads parameters and buffers.

        Args:
            state_dict: as for Module.load_state_dict.
            strict: likewise.
            assign: likewise; the tensors stay the program's own, and get the others' memory.
        """
        if not assign:
            return super().load_state_dict(state_dict, strict)
        named = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        given = {n: t for n, t in state_dict.items() if n in named}
        if any(t.dtype is not named[n].dtype for n, t in given.items()):
            raise RuntimeError(
                "load_state_dict: the tensors are of other dtypes than the program's; convert the "
                "module with to() before"
            )
        missing = super().load_state_dict(state_dict, strict)
        for n, t in given.items():
            named[n].data = t.detach()
        return missing

    def current(self) -> Program:
        """The program, with the tensors that the module has now."""
        for name, (table, key) in self._homes.items():
            if table.get(key) is not None:
                self._program.tensors[name] = table[key]
        return self._program

    def train(self, mode: bool = True) -> Any:
        """Sets `training`, which does not change what was recorded.

        Args:
            mode: training mode or evaluation mode.
        """
        if not mode and self._program.training and not self._told:
            self._told = True
            trained = {n.op for n in self._program.walk() if _MODES.search(n.op)}
            if trained:
                warnings.warn(
                    f"exported program: it was recorded in training mode, and eval() leaves "
                    f"{' and '.join(sorted(trained))} as it was recorded; call eval() on the "
                    f"model, and export it then",
                    stacklevel=user_level(),
                )
        return super().train(mode)

    def code(self) -> str:
        """The program as text."""
        from clew.export._listing import listing

        return listing(self._program)

    def extra_repr(self) -> str:
        return f"{sum(1 for _ in self._program.walk())} calls"

    def __reduce__(self) -> Any:
        from clew.export._file import to_bytes

        return _restored, (to_bytes(self.current()),)

    def __deepcopy__(self, memo: Any) -> Any:
        function, args = self.__reduce__()
        return function(*args)


def _scalar(number: Any, dtype: Any) -> Tensor:
    import clew

    return clew.tensor(number, dtype=dtype)


def _restored(data: bytes) -> ProgramModule:
    from clew.export._file import from_bytes

    return ProgramModule(from_bytes(data)[0])


def _checks(program: Program) -> list[Callable[[Any], None]]:
    names = input_labels(program)
    return [
        _tensor_check(v, n) if v.kind == "tensor" else _number_check(v, n)
        for v, n in zip(program.inputs, names)
    ]


_MODES = re.compile(r"dropout|batch_norm")  # operations that training mode changes
_LABEL = re.compile(r"^(?:(\d+)\*)?([A-Za-z_]\w*)(?: ?([+-]) ?(\d+))?$")


def _ties(program: Program) -> list[tuple[str, list[tuple[int, int, int, int]]]]:
    """Sizes to compare: of each name, the places (input, dim, scale, shift) where it stands, when
    there are several or it has bounds."""
    places: dict[str, list[tuple[int, int, int, int]]] = {}
    for i, labels in enumerate(program.dims):
        for d, label in labels.items():
            found = _LABEL.match(label)
            if found is not None:
                shift = int(found[4] or 0) * (-1 if found[3] == "-" else 1)
                places.setdefault(found[2], []).append((i, d, int(found[1] or 1), shift))
    ranges = program.ranges
    free = (0, None)
    return [
        (n, p)
        for n, p in places.items()
        if len(p) > 1 or tuple(ranges.get(n, free)) != free or p[0][2] != 1
    ]


def _equal_places(
    ties: list[tuple[str, list[tuple[int, int, int, int]]]], program: Program
) -> list[tuple[tuple[int, int], tuple[int, int]]] | None:
    """Pairs of places (input, dim) that must be equal, and nothing else must hold; None where more
    must hold."""
    pairs = []
    for name, places in ties:
        if tuple(program.ranges.get(name, (0, None))) != (0, None):
            return None
        if any(scale != 1 or shift for _, _, scale, shift in places):
            return None
        if any(d >= len(program.inputs[i].sizes) for i, d, _, _ in places):
            return None
        pairs += [((places[0][0], places[0][1]), (i, d)) for i, d, _, _ in places[1:]]
    return pairs or None


def _check_ties(ties: Any, args: Any, ranges: Any) -> None:
    for name, places in ties:
        value = None
        for i, d, scale, shift in places:
            if d >= args[i].dim():
                return  # the program refuses it by its shape
            size = args[i].shape[d] - shift
            now, left = divmod(size, scale)
            low, high = ranges.get(name, (0, None))
            if left or now < low or (high is not None and now > high):
                raise RuntimeError(
                    f"exported program: input {i} has size {size + shift} in dim {d}, which is "
                    f"{name} times {scale} plus {shift}, with {name} from {low} to "
                    f"{'any' if high is None else high}"
                )
            if value is not None and now != value:
                raise RuntimeError(
                    f"exported program: {name} is {value} in one input and {now} in dim {d} of "
                    f"input {i}"
                )
            value = now


def input_labels(program: Program) -> list[str]:
    """A name for each input."""
    return [v.name or f"input {i}" for i, v in enumerate(program.inputs)]


def _tensor_check(value: Any, name: str) -> Callable[[Any], None]:
    dtype, sizes = value.dtype, tuple(value.sizes)
    fixed = [(d, n) for d, n in enumerate(sizes) if n is not None]
    count = len(sizes)

    def check(x: Any) -> None:
        if not isinstance(x, Tensor):
            raise TypeError(f"exported program: {name} must be a tensor; got {type(x).__name__}")
        shape = x.shape
        if x.dtype != dtype or len(shape) != count:
            raise OtherArguments(
                f"exported program: {name} must be {value.type}; got {x.dtype.name}{list(shape)}"
            )
        for d, n in fixed:
            if shape[d] != n:
                raise OtherArguments(
                    f"exported program: {name} has size {shape[d]} in dim {d}, and the program was "
                    f"exported for {n}; name the dim in dynamic_shapes to let it vary"
                )

    return check


def _number_check(value: Any, name: str) -> Callable[[Any], None]:
    def check(x: Any) -> None:
        if type(x).__name__ != value.kind:
            raise TypeError(f"exported program: {name} must be {value.kind}; got {x!r}")

    return check


def run_names(function: Any) -> list[str]:
    """The names of a function's positional parameters."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return _parameters(function, kinds)


def rest_name(function: Any) -> str | None:
    """The name of a function's ``*args``; None where it has none."""
    return next(iter(_parameters(function, (inspect.Parameter.VAR_POSITIONAL,))), None)


def _parameters(function: Any, kinds: tuple[Any, ...]) -> list[str]:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in kinds]


def parameters_of(model: Module) -> Iterator[tuple[str, str, Tensor]]:
    """("param" or "buffer", name, tensor) of a model, each tensor once."""
    for name, p in model.named_parameters():
        yield "param", name, p
    for name, b in model.named_buffers():
        yield "buffer", name, b
