"""How a module is divided: by the columns or rows of its weights, or by its input's sequence
(Shoeybi et al., Megatron-LM, 2019; Korthikanti et al., Reducing Activation Recomputation, 2022).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from clew import nn
from clew._C import Tensor
from clew.distributed.tensor._api import DTensor, replicate_rest, set_parameter
from clew.distributed.tensor.placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


class ParallelStyle(ABC):
    """How `parallelize_module` divides a module; its subclasses are the styles.

    Example:
        >>> from clew.distributed.tensor.parallel import ColwiseParallel, ParallelStyle
        >>> isinstance(ColwiseParallel(), ParallelStyle)
        True
    """

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Any, device_mesh: Any) -> Any: ...


def _placed(x: Any, mesh: Any, layout: Placement | None, wanted: Placement | None) -> Any:
    """A plain tensor that lies in a way, or a distributed one, as it is wanted."""
    if layout is None or not isinstance(x, Tensor):
        return x
    d = x if isinstance(x, DTensor) else DTensor.from_local(x, mesh, [layout])
    if wanted is not None and d.placements != (wanted,):
        ndim = d.ndim
        if not (isinstance(wanted, Shard) and d.placements == (Shard(wanted.dim % ndim),)):
            d = d.redistribute(placements=[wanted])
    return d


def _one_dimensional(mesh: Any, what: str) -> None:
    if mesh.ndim != 1:
        raise ValueError(f"{what}: the mesh must have one dim; got {mesh.ndim}; choose one by name")


class _Divided(ParallelStyle):
    """Of a module with a weight: the first input and the output."""

    def __init__(
        self, input_layout: Placement, wanted: Placement, output: Placement, use_local_output: bool
    ) -> None:
        self.input_layouts, self.desired_input_layouts = (input_layout,), (wanted,)
        self.output_layouts, self.use_local_output = (output,), use_local_output

    def _divide(self, module: Any, mesh: Any) -> None:
        raise NotImplementedError

    def _wanted(self, module: Any) -> Placement:
        return self.desired_input_layouts[0]

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        _one_dimensional(device_mesh, type(self).__name__)
        self._divide(module, device_mesh)
        wanted = self._wanted(module)

        def before(m: Any, args: Any) -> Any:
            return (_placed(args[0], device_mesh, self.input_layouts[0], wanted), *args[1:])

        def after(m: Any, args: Any, output: Any) -> Any:
            made = _placed(output, device_mesh, self.output_layouts[0], self.output_layouts[0])
            return made.to_local() if self.use_local_output else made

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module


class ColwiseParallel(_Divided):
    """Each process has some of a Linear's outputs, or of an Embedding's features.

    Args:
        input_layouts: how the input lies; replicated if None.
        output_layouts: how the output is to lie; cut along the last dim if None.
        use_local_output: give each process its part as a plain tensor.

    Example:
        >>> from clew.distributed.tensor.parallel import ColwiseParallel
        >>> from clew.distributed.tensor import init_device_mesh
        >>> from clew.distributed.tensor.parallel import parallelize_module
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> layer = parallelize_module(nn.Linear(4, 2), mesh, ColwiseParallel())
        >>> layer.weight.placements
        (Shard(dim=0),)
        >>> clew.distributed.destroy_process_group()
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Replicate(), Replicate(), output_layouts or Shard(-1), use_local_output
        )

    def _divide(self, module: Any, mesh: Any) -> None:
        if isinstance(module, nn.Linear):
            for name, p in list(module._parameters.items()):
                if p is not None:
                    set_parameter(module, name, p, mesh, [Shard(0)], self.src_data_rank)
        elif isinstance(module, nn.Embedding):
            set_parameter(module, "weight", module.weight, mesh, [Shard(1)], self.src_data_rank)
        else:
            raise NotImplementedError(
                f"ColwiseParallel: only Linear and Embedding; got {type(module).__name__}"
            )


class RowwiseParallel(_Divided):
    """Each process has some of a Linear's inputs, or of an Embedding's rows.

    Args:
        input_layouts: how the input lies; if None cut along the last dim, of an Embedding
            replicated.
        output_layouts: how the output is to lie; replicated if None.
        use_local_output: give each process its part as a plain tensor.

    Example:
        >>> from clew.distributed.tensor.parallel import RowwiseParallel
        >>> from clew.distributed.tensor import init_device_mesh
        >>> from clew.distributed.tensor.parallel import parallelize_module
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> layer = parallelize_module(nn.Linear(4, 2), mesh, RowwiseParallel())
        >>> layer.weight.placements, layer.bias.placements
        ((Shard(dim=1),), (Replicate(),))
        >>> clew.distributed.destroy_process_group()
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Shard(-1), Shard(-1), output_layouts or Replicate(), use_local_output
        )

    def _wanted(self, module: Any) -> Placement:
        return Replicate() if isinstance(module, nn.Embedding) else Shard(-1)

    def _divide(self, module: Any, mesh: Any) -> None:
        if isinstance(module, nn.Linear):
            set_parameter(module, "weight", module.weight, mesh, [Shard(1)], self.src_data_rank)
            if module.bias is not None:
                set_parameter(module, "bias", module.bias, mesh, [Replicate()], self.src_data_rank)
        elif isinstance(module, nn.Embedding):
            set_parameter(module, "weight", module.weight, mesh, [Shard(0)], self.src_data_rank)
        else:
            raise NotImplementedError(
                f"RowwiseParallel: only Linear and Embedding; got {type(module).__name__}"
            )


class SequenceParallel(_Divided):
    """Parameters are replicated; each process computes for a part of the sequence.

    Args:
        sequence_dim: the input's dim that is cut.
        use_local_output: give each process its part as a plain tensor.

    Example:
        >>> from clew.distributed.tensor.parallel import SequenceParallel
        >>> from clew.distributed.tensor import init_device_mesh
        >>> from clew.distributed.tensor.parallel import parallelize_module
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> norm = parallelize_module(nn.LayerNorm(4), mesh, SequenceParallel())
        >>> norm(clew.ones(2, 3, 4)).placements
        (Shard(dim=1),)
        >>> clew.distributed.destroy_process_group()
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        cut = Shard(sequence_dim)
        super().__init__(cut, cut, cut, use_local_output)

    def _divide(self, module: Any, mesh: Any) -> None:
        replicate_rest(module, mesh)


def _several(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, Placement) or given is None else tuple(given)


class PrepareModuleInput(ParallelStyle):
    """Changes how a module's inputs lie.

    Args:
        input_layouts: how each input lies; None where it is no tensor.
        desired_input_layouts: how each is to lie.
        input_kwarg_layouts: the same of named inputs.
        desired_input_kwarg_layouts: the same of named inputs.
        use_local_output: give the module plain tensors.

    Example:
        >>> from clew.distributed.tensor.parallel import PrepareModuleInput
        >>> from clew.distributed.tensor import Replicate, Shard
        >>> from clew.distributed.tensor import init_device_mesh
        >>> from clew.distributed.tensor.parallel import parallelize_module
        >>> style = PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate())
        >>> part = parallelize_module(nn.ReLU(), init_device_mesh("cpu", (1,)), style)
        >>> part(clew.ones(2)).placements
        (Replicate(),)
        >>> clew.distributed.destroy_process_group()
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: Any = None,
        desired_input_kwarg_layouts: Any = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = None if input_layouts is None else _several(input_layouts)
        self.desired_input_layouts = (
            None if desired_input_layouts is None else _several(desired_input_layouts)
        )
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None and (
            self.desired_input_layouts is None
            or len(self.input_layouts) != len(self.desired_input_layouts)
        ):
            raise ValueError(
                "PrepareModuleInput: input_layouts and desired_input_layouts must be equally long"
            )

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        _one_dimensional(device_mesh, type(self).__name__)

        def one(x: Any, layout: Any, wanted: Any) -> Any:
            made = _placed(x, device_mesh, layout, wanted)
            return made.to_local() if self.use_local_output and isinstance(made, DTensor) else made

        def before(m: Any, args: Any, kwargs: Any) -> Any:
            if self.input_layouts is not None:
                if len(args) != len(self.input_layouts):
                    raise ValueError(
                        f"PrepareModuleInput: {len(self.input_layouts)} layouts for {len(args)} "
                        "inputs"
                    )
                assert self.desired_input_layouts is not None
                args = tuple(map(one, args, self.input_layouts, self.desired_input_layouts))
            for name, layout in self.input_kwarg_layouts.items():
                if name in kwargs:
                    wanted = self.desired_input_kwarg_layouts.get(name)
                    kwargs[name] = one(kwargs[name], layout, wanted)
            return args, kwargs

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Changes how a module's outputs lie.

    Args:
        output_layouts: how each output lies; None where it is no tensor.
        desired_output_layouts: how each is to lie.
        use_local_output: give plain tensors.

    Example:
        >>> from clew.distributed.tensor.parallel import PrepareModuleOutput
        >>> from clew.distributed.tensor import Replicate, Shard
        >>> from clew.distributed.tensor import init_device_mesh
        >>> from clew.distributed.tensor.parallel import parallelize_module
        >>> style = PrepareModuleOutput(
        ...     output_layouts=Shard(0), desired_output_layouts=Replicate(), use_local_output=False
        ... )
        >>> part = parallelize_module(nn.ReLU(), init_device_mesh("cpu", (1,)), style)
        >>> part(clew.ones(2)).placements
        (Replicate(),)
        >>> clew.distributed.destroy_process_group()
    """

    def __init__(
        self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True
    ) -> None:
        self.output_layouts = _several(output_layouts)
        self.desired_output_layouts = _several(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise ValueError(
                "PrepareModuleOutput: output_layouts and desired_output_layouts differ in length"
            )

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        _one_dimensional(device_mesh, type(self).__name__)

        def after(m: Any, args: Any, output: Any) -> Any:
            outputs = output if isinstance(output, tuple) else (output,)
            if len(outputs) != len(self.output_layouts):
                raise ValueError(
                    f"PrepareModuleOutput: {len(self.output_layouts)} layouts for {len(outputs)} "
                    "outputs"
                )
            made = []
            for x, layout, wanted in zip(outputs, self.output_layouts, self.desired_output_layouts):
                y = _placed(x, device_mesh, layout, wanted)
                local = self.use_local_output and isinstance(y, DTensor)
                made.append(y.to_local() if local else y)
            return tuple(made) if isinstance(output, tuple) else made[0]

        module.register_forward_hook(after)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` together.

    Args:
        input_layouts: how each input lies.
        desired_input_layouts: how each is to lie.
        input_kwarg_layouts: the same of named inputs.
        desired_input_kwarg_layouts: the same of named inputs.
        use_local_input: give the module plain tensors.
        output_layouts: how each output lies.
        desired_output_layouts: how each is to lie.
        use_local_output: give plain tensors.

    Example:
        >>> from clew.distributed.tensor.parallel import PrepareModuleInputOutput
        >>> from clew.distributed.tensor import Replicate, Shard
        >>> from clew.distributed.tensor import init_device_mesh
        >>> from clew.distributed.tensor.parallel import parallelize_module
        >>> style = PrepareModuleInputOutput(
        ...     input_layouts=Shard(0),
        ...     desired_input_layouts=Replicate(),
        ...     output_layouts=Replicate(),
        ...     desired_output_layouts=Shard(0),
        ... )
        >>> part = parallelize_module(nn.ReLU(), init_device_mesh("cpu", (1,)), style)
        >>> part(clew.ones(2))
        tensor([1., 1.])
        >>> clew.distributed.destroy_process_group()
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: Any = None,
        desired_input_kwarg_layouts: Any = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        self.prepare_module_input._apply(module, device_mesh)
        self.prepare_module_output._apply(module, device_mesh)
        return module
