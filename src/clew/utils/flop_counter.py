"""Counting the floating-point operations of matrix products, as PyTorch does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from clew._ops.flops import is_product
from clew.autograd._profiler_table import plain_table, scaled_flops
from clew.autograd.profiler import Recorder
from clew.autograd.profiler_util import FunctionEvent

__all__ = ["FlopCounterMode", "register_flop_formula"]

GLOBAL = "Global"
_formulas: dict[str, Callable[..., int]] = {}


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Makes a function the formula of operations that every FlopCounterMode counts.

    Args:
        targets: names of operations or operations (`clew.ops.aten.sinh`), one or a list.
        get_raw: refused when True: formulas see shapes, never the tensors.

    Returns: a decorator for a function of the input shapes and ``out_shape``.

    >>> from clew.utils.flop_counter import register_flop_formula
    >>> @register_flop_formula("sinh")
    ... def sinh_flops(x, out_shape):
    ...     return 10 * out_shape[0]
    """
    if get_raw:
        raise NotImplementedError("register_flop_formula: get_raw=True is not offered")

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            _formulas[_name_of(target)] = formula
        return formula

    return register


def _name_of(target: Any) -> str:
    """The name of an operation that is given by it or as one of `clew.ops.aten`."""
    if isinstance(target, str):
        return target
    name = getattr(getattr(target, "overloadpacket", target), "__name__", None)
    if name is None:
        raise TypeError(f"register_flop_formula: expected an operation or its name; got {target!r}")
    return str(name)


class FlopCounterMode:
    """Counts the floating-point operations of products, convolutions, attention and recurrent
    layers in its context, those of their gradients included; other operations are left out.

    Args:
        mods: PyTorch's old way to name the modules; makes no difference.
        depth: how many levels of modules the table shows; None for all.
        display: print the table at the end of the context.
        custom_mapping: formulas for more operations, by name or operation, called with the input
            shapes and ``out_shape``.

    Raises:
        RuntimeError: a profiler is recording.

    >>> from clew.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = clew.ones(2, 3) @ clew.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[str, Callable[..., int]] | None = None,
    ) -> None:
        self.depth = depth
        self.display = display
        more = {_name_of(target): formula for target, formula in (custom_mapping or {}).items()}
        self.custom_mapping = {**_formulas, **more}
        self.flop_counts: dict[str, dict[str, int]] = {}
        self._recorder: Recorder | None = None

    def __enter__(self) -> FlopCounterMode:
        recorder = Recorder(record_shapes=True, with_flops=True)
        recorder.start()
        self._recorder = recorder
        self.flop_counts = {}
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._recorder is not None
        recording, self._recorder = self._recorder.stop(), None
        counts: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        for event in recording.events:
            count = self._count(event)
            if count:
                for module in _modules(event):
                    counts[module][event.name] += count
        self.flop_counts = {module: dict(found) for module, found in counts.items()}
        if self.display:
            print(self.get_table())

    def _count(self, event: FunctionEvent) -> int:
        own = self.custom_mapping.get(event.name)
        if own is not None:
            outs = event.output_shapes
            return own(*event.input_shapes, out_shape=outs[0] if len(outs) == 1 else outs)
        # A gradient rule has a count only where it stands for a product's.
        if event.kind == "node" or is_product(event.name):
            return event.flops
        return 0

    def get_total_flops(self) -> int:
        """The operations of the whole context."""
        return sum(self.flop_counts.get(GLOBAL, {}).values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """The operations by module and by name; the module "Global" stands for everything."""
        return {module: dict(found) for module, found in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table.

        Args:
            depth: how many levels of modules; that of the object when not given.
        """
        depth = self.depth if depth is None else depth
        whole = self.get_total_flops()
        unit, size = scaled_flops(whole)
        rows = []
        for module in sorted(self.flop_counts, key=lambda name: (name != GLOBAL, name)):
            level = 0 if module == GLOBAL else module.count(".") + 1
            if depth is not None and level > depth:
                continue
            found = self.flop_counts[module]
            lines = [(module, sum(found.values())), *((f" - {k}", n) for k, n in found.items())]
            for name, count in lines:
                share = f"{count / whole:.2%}" if whole else "0%"
                rows.append([" " * level + name, f"{count / size:.3f}", share])
        return plain_table(["Module", unit, "% Total"], rows or [[GLOBAL, "0", "0%"]], [0])


def _modules(event: FunctionEvent) -> list[str]:
    """Everything that an event counts for: "Global", "Net", "Net.blocks", "Net.blocks.0" ..."""
    place = event.place
    if place is None or place.module is None:
        return [GLOBAL]
    parts = [place.root_type, *filter(None, place.module.split("."))]
    return [GLOBAL, *(".".join(parts[:n]) for n in range(1, len(parts) + 1))]
