"""ExportedProgram: what export() returns."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from typing import Any

from clew import Tensor
from clew.export._errors import ExportError
from clew.export._ir import Node, Program, Value
from clew.export._listing import listing
from clew.export._module import ProgramModule

__all__ = ["ExportGraphSignature", "ExportedProgram", "InputKind", "InputSpec", "OutputKind"]


class InputKind(enum.Enum):
    """Where an input of the program comes from."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()


class OutputKind(enum.Enum):
    """What a result of the program is."""

    USER_OUTPUT = enum.auto()


@dataclasses.dataclass
class InputSpec:
    """An input: kind, name in the listing, and name in the model."""

    kind: InputKind
    arg: str
    target: str | None


@dataclasses.dataclass
class OutputSpec:
    """A result: kind and name in the listing."""

    kind: OutputKind
    arg: str
    target: str | None = None


@dataclasses.dataclass
class ExportGraphSignature:
    """Which of the program's inputs are the user's, and which are parameters and buffers."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    @property
    def user_inputs(self) -> tuple[str, ...]:
        """Names of the arguments."""
        return tuple(s.arg for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[str, ...]:
        """Names of the results."""
        return tuple(s.arg for s in self.output_specs)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The model's names of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The model's names of the buffers."""
        return self._targets(InputKind.BUFFER)

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(s.target or "" for s in self.input_specs if s.kind is kind)

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """The model's name of each parameter in the listing."""
        return {s.arg: s.target or "" for s in self.input_specs if s.kind is InputKind.PARAMETER}

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """The model's name of each buffer in the listing."""
        return {s.arg: s.target or "" for s in self.input_specs if s.kind is InputKind.BUFFER}


class Graph:
    """The calls of a program, in order."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @property
    def nodes(self) -> list[Node]:
        """The calls of the program's outermost block; branches and loops have blocks."""
        return self._program.body.nodes

    def __str__(self) -> str:
        return listing(self._program)

    __repr__ = __str__


_KINDS = {
    "param": InputKind.PARAMETER,
    "buffer": InputKind.BUFFER,
    "constant": InputKind.CONSTANT_TENSOR,
}


class ExportedProgram:
    """A model as a program: calls of operations, branches and loops, with the tensors they need.

    Printed, it is a listing with the names and the lines of the source. ``module()`` runs it.
    `clew.export.export` makes it.

    Args:
        program: the calls.
        example: the arguments that it was recorded with.

    Attributes:
        graph: its calls.
        graph_signature: what its inputs and results are.
        example_inputs: the arguments that it was recorded with; None for one that was loaded.

    Example:
        >>> from clew.export import ExportedProgram
        >>> import clew
        >>> program = clew.export.export(clew.nn.ReLU(), (clew.ones(2),))
        >>> isinstance(program, ExportedProgram), program.module()(clew.tensor([-1.0, 2.0]))
        (True, tensor([0., 2.]))
    """

    def __init__(self, program: Program, example: Any = None) -> None:
        self._program = program
        self._examples: list[Any] = []
        self._methods: dict[str, Program] = {}  # of further methods, for jit
        self.example_inputs = example

    @property
    def graph(self) -> Graph:
        """The calls."""
        return Graph(self._program)

    @property
    def graph_module(self) -> ProgramModule:
        """The program as a module."""
        return ProgramModule(self._program)

    def module(self, check_guards: bool = True) -> ProgramModule:
        """A module that runs the program. Its parameters are the program's own: training it
        changes them here, too.

        Args:
            check_guards: must be true: conditions that the program relies on are always checked.
        """
        if not check_guards:
            raise ExportError("module: conditions are always checked; leave check_guards out")
        return ProgramModule(self._program)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("an ExportedProgram is not called itself; call program.module()(...)")

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """Inputs and results by name."""
        p = self._program
        inputs = []
        for v in p.kept:
            assert v.source is not None
            inputs.append(InputSpec(_KINDS[v.source[0]], v.name, v.source[1]))
        inputs += [InputSpec(InputKind.USER_INPUT, v.name, None) for v in p.inputs]
        outputs = [
            OutputSpec(OutputKind.USER_OUTPUT, r.name if isinstance(r, Value) else repr(r))
            for r in p.body.results
        ]
        return ExportGraphSignature(inputs, outputs)

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and buffers by the model's names."""
        skipped = self._program.transient
        return {n: t for kind, n, t in self._tensors() if kind != "constant" and n not in skipped}

    @property
    def constants(self) -> dict[str, Tensor]:
        """Tensors that are neither."""
        return {n: t for kind, n, t in self._tensors() if kind == "constant"}

    def _tensors(self) -> Iterator[tuple[str, str, Tensor]]:
        kept = [v.source for v in self._program.kept if v.source is not None]
        for kind, name in dict.fromkeys([*self._program.state, *kept]):
            yield kind, name, self._program.tensors[name]

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Names and parameters."""
        seen: dict[int, tuple[str, Tensor]] = {}
        for kind, n, t in self._tensors():
            if kind == "param":
                seen.setdefault(id(t), (n, t))
        return iter(seen.values())

    def parameters(self) -> Iterator[Tensor]:
        """The parameters."""
        return (t for _, t in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Names and buffers."""
        return ((n, t) for kind, n, t in self._tensors() if kind == "buffer")

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        return (t for _, t in self.named_buffers())

    @property
    def range_constraints(self) -> dict[str, tuple[int, int | None]]:
        """The least and the largest size of each size that may vary."""
        return dict(self._program.ranges)

    def __str__(self) -> str:
        return listing(self._program)

    def __repr__(self) -> str:
        count = sum(1 for _ in self._program.walk())
        return f"<ExportedProgram of {count} calls; print() shows them>"
