"""One call of a function with distributed tensors: its operands, and running it on parts."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import clew
from clew._base.overriding import DisableTorchFunctionSubclass
from clew._C import Tensor
from clew.distributed.tensor._api import DTensor, part_of, wrap
from clew.distributed.tensor._redistribute import new_summand, redistribute_local, sum_gradients
from clew.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

Way = tuple[Placement, ...]  # along the dims of the mesh
# Whether plain tensors are taken to be the same on all processes: see implicit_replication().
replicates_plain: contextvars.ContextVar[bool] = contextvars.ContextVar("plain", default=False)
# Parameters of the functions whose operands are told apart by their place.
_PARAMETERS = {
    name: names.split()
    for name, names in {
        "linear": "input weight bias",
        "embedding": "input weight padding_idx max_norm norm_type scale_grad_by_freq sparse",
        "layer_norm": "input normalized_shape weight bias eps",
        "rms_norm": "input normalized_shape weight eps",
        "scaled_dot_product_attention": "query key value attn_mask dropout_p is_causal",
        "addmm": "input mat1 mat2",
        "batch_norm": "input running_mean running_var weight bias training momentum eps",
        **dict.fromkeys("matmul sub div true_divide".split(), "input other"),
        **dict.fromkeys("mm bmm".split(), "input mat2"),
    }.items()
}
_WITH_IN_PLACE = set("add sub mul truediv matmul pow floordiv mod div".split())


class Call:
    """One call: its operands, and what is needed to run it on parts.

    Args:
        func: the function.
        args: its arguments.
        kwargs: its named arguments.
    """

    def __init__(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
        self.func, self.name = func, name_of(func)
        self.args, self.kwargs = _in_order(args, kwargs, _PARAMETERS.get(self.name, ()))
        self.operands: list[Any] = []
        self.plain = self.moved = False
        if self.kwargs.get("out") is not None:
            raise NotImplementedError(f"DTensor: {self.name}: out must be None")
        grads, numbers = clew.is_grad_enabled(), []

        def look(x: Any) -> Any:
            if isinstance(x, DTensor):
                self.operands.append(x)
            elif isinstance(x, (Tensor, np.ndarray)):
                if x.ndim > 0:
                    self.plain = True
                elif grads and isinstance(x, Tensor) and x.requires_grad:
                    numbers.append(x)
            return x

        _each(look, self.args, self.kwargs)
        self.mesh = self.operands[0]._mesh
        if numbers or (self.plain and replicates_plain.get()):
            self._take_in_plain()
        for x in self.operands[1:]:
            if x._mesh != self.mesh:
                raise NotImplementedError(f"DTensor: {self.name} of tensors on two meshes")

    def _take_in_plain(self) -> None:
        """Makes plain tensors distributed: numbers, whose gradients are sums over processes, and
        all of them within `implicit_replication`.
        """
        every, same = replicates_plain.get(), [Replicate()] * self.mesh.ndim

        def distributed(x: Any) -> Any:
            if isinstance(x, np.ndarray) and every:
                x = clew.as_tensor(x)
            taken = isinstance(x, Tensor) and not isinstance(x, DTensor)
            if taken and (every if x.ndim else x.requires_grad):
                x = DTensor.from_local(x, self.mesh, same)
            if isinstance(x, DTensor):
                self.operands.append(x)
            return x

        self.operands, self.plain = [], self.plain and not every
        self.args, self.kwargs = _each(distributed, self.args, self.kwargs)

    def cut_in_order(self) -> None:
        """Moves operands that the dims of the mesh do not cut in their own order."""
        ways = [[Shard(p.dim) if isinstance(p, Shard) else p for p in x._placements]
                for x in self.operands]  # fmt: skip
        if all(list(x._placements) == way for x, way in zip(self.operands, ways)):
            return
        self.operands = [x.redistribute(placements=way) for x, way in zip(self.operands, ways)]
        left = iter(self.operands)
        self.args, self.kwargs = _each(
            lambda x: next(left) if isinstance(x, DTensor) else x, self.args, self.kwargs
        )

    def refuse_plain(self) -> None:
        """Raises where a plain tensor stands beside distributed ones."""
        if self.plain:
            raise RuntimeError(
                f"DTensor: {self.name}: got plain tensors beside distributed ones; make them "
                "distributed by distribute_tensor() or DTensor.from_local(), or say by "
                "implicit_replication() that every process has the same"
            )

    def refuse_copy(self) -> None:
        """Raises where an operation in place would not reach the tensor that was viewed."""
        if self.operands[0]._copied:
            raise NotImplementedError(
                f"DTensor: {self.name} in place of a view for which elements came from other "
                "processes would not change the tensor that was viewed; redistribute() that "
                "tensor before it is viewed, or use the operation that is not in place"
            )

    def replicated(self) -> Any:
        """Every process computes the whole, whose sizes only the elements may tell."""
        same = (Replicate(),) * self.mesh.ndim
        made = self.with_operands(self.parts([same] * len(self.operands), same))
        return self.wrapped(made, made, same)

    def argument(self, at: int, name: str, default: Any = None) -> Any:
        """An argument that may be given by place or by name."""
        return self.args[at] if at < len(self.args) else self.kwargs.get(name, default)

    def only(self, *names: str) -> bool:
        """Whether every named argument is one of these."""
        return self.kwargs.keys() <= set(names)

    def with_operands(self, values: Sequence[Any]) -> Any:
        """func's result with other values in the operands' places."""
        left = iter(values)
        args, kwargs = _each(
            lambda x: next(left) if isinstance(x, DTensor) else x, self.args, self.kwargs
        )
        with DisableTorchFunctionSubclass():
            return self.func(*args, **kwargs)

    def whole(self) -> Any:
        """The result for the wholes, without elements."""
        with clew.no_grad():
            return self.with_operands(
                [clew.empty(x._sizes, dtype=x.dtype, device="meta") for x in self.operands]
            )

    def parts(self, wanted: Sequence[Way], out: Way) -> list[Any]:
        """Each operand's part, lying as wanted."""
        made = []
        for x, way in zip(self.operands, wanted):
            self.moved = self.moved or x._placements != way
            local = redistribute_local(part_of(x), x._sizes, self.mesh, x._placements, way)
            groups = [
                self.mesh.get_group(i)
                for i in range(self.mesh.ndim)
                if isinstance(way[i], Replicate) and not isinstance(out[i], Replicate)
            ]
            made.append(sum_gradients(local, groups))
        return made

    def run(self, wanted: Sequence[Way], out: Way, sizes: Any = None) -> Any:
        """Runs it on parts.

        Args:
            wanted: how each operand must lie.
            out: how results lie.
            sizes: of the whole result; found out if None.
        """
        whole = self.whole() if sizes is None else None
        made = self.with_operands(self.parts(wanted, out))
        return self.wrapped(new_summand(made, self.summing(wanted, out)), whole, out, sizes)

    def summing(self, wanted: Sequence[Way], out: Way) -> list[Any]:
        """The groups whose processes each make a summand of the result of their own shards."""
        return [
            self.mesh.get_group(i)
            for i in range(self.mesh.ndim)
            if isinstance(out[i], Partial) and any(isinstance(way[i], Shard) for way in wanted)
        ]

    def fixed(self, *operands: Any) -> bool:
        """Whether none of these takes a gradient, so that one of them may stand beside a summand.

        A summand's gradient is whole and that of what stands beside it would be a sum, so their
        derivatives, in which both appear, could not lie in one way.
        """
        return not (clew.is_grad_enabled() and any(x.requires_grad for x in operands))

    def wrapped(self, made: Any, whole: Any, out: Way, sizes: Any = None) -> Any:
        """Results as distributed tensors."""
        if isinstance(made, Tensor):
            return wrap(made, self.mesh, out, whole.shape if sizes is None else sizes)
        if isinstance(made, tuple) and hasattr(made, "_fields"):
            return type(made)(*(self.wrapped(m, w, out) for m, w in zip(made, whole)))
        if isinstance(made, (list, tuple)):
            return type(made)(self.wrapped(m, w, out) for m, w in zip(made, whole))
        return made

    def each(self, rule: Callable[[int], tuple[list[Placement], Placement]], **how: Any) -> Any:
        """Runs it with what a rule says for each dim of the mesh."""
        self.refuse_plain()
        columns = [rule(i) for i in range(self.mesh.ndim)]
        wanted = [tuple(c[0][k] for c in columns) for k in range(len(self.operands))]
        return self.run(wanted, tuple(c[1] for c in columns), **how)


def _in_order(
    args: Any, kwargs: dict[str, Any], names: Sequence[str]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with those that were given by name in their places, as far as these are known."""
    if not kwargs or not names:
        return tuple(args), kwargs
    placed, rest = list(args), dict(kwargs)
    for name in names[len(placed) :]:
        if name not in rest:
            break
        placed.append(rest.pop(name))
    return tuple(placed), rest


def _each(change: Callable[[Any], Any], args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Arguments with what stands in them, and in lists in them, changed; always in one order."""

    def changed(x: Any) -> Any:
        if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
            made = [changed(v) for v in x]
            return x if all(m is v for m, v in zip(made, x)) else type(x)(made)
        return change(x)

    return [changed(a) for a in args], {k: changed(v) for k, v in kwargs.items()}


def name_of(func: Any) -> str:
    """A function's plain name: `add` of `Tensor.add`, `__add__` and `Tensor.add_`'s `add_`."""
    name = getattr(func, "__name__", "")
    if name == "apply":
        return getattr(getattr(func, "__self__", None), "__name__", name)
    if name == "__get__":
        owner = getattr(func, "__self__", None)
        name = getattr(getattr(owner, "fget", owner), "__name__", name)
        return name.removeprefix("_").removesuffix("_property")
    if name in ("__bool__", "__float__", "__int__", "__index__", "__contains__", "__array__"):
        return name
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
        if name in ("radd", "rsub", "rmul"):
            name = name[1:]
        elif name[:1] == "i" and name[1:] in _WITH_IN_PLACE:
            name = name[1:] + "_"
    return name.removeprefix("_")
