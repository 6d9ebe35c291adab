"""How checkpoints keep the results of some operations, which backward need not compute again.

Two modes see the operations of the checkpointed function: one those of its first run, which asks a
rule what to do with each, and one those of its second run. There an operation whose results were
kept does not run: its results are given out, and what it saves for backward is saved again: inputs
as they are now, results and whatever else as they were kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew._C import Tensor
from clew._torch.utils._python_dispatch import TorchDispatchMode
from clew.autograd import Function
from clew.ops import aten
from clew.utils._pytree import tree_flatten, tree_unflatten
from clew.utils._second_runs import watched

__all__ = ["runs_of"]


class _Again(Function):
    """An operation that does not run again: it saves tensors and gives out others."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, saved: list[Tensor], *outs: Tensor) -> Any:
        ctx.save_for_backward(*saved)
        return tuple(t.detach() for t in outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("internal error in clew, please report it: _Again.backward")


def _tensors(tree: Any) -> list[Tensor]:
    return [t for t in tree_flatten(tree)[0] if isinstance(t, Tensor)]


class _Call:
    """An operation of the first run, and what was kept of it.

    Attributes:
        function: the operation.
        outs: its results, cut off from the graph, with their versions and whether they require
            grad; None where it runs again.
        saved: what it saved for backward: the place of an input among its tensors, or a tensor.
    """

    outs: list[Any] | None = None

    def __init__(self, function: Any) -> None:
        self.function = function
        self.saved: list[int | Tensor] = []

    def keep(self, args: Any, output: Any, saved: list[Tensor], state: Tensor | None) -> None:
        """Keeps the results, unless they lie in the memory of an input: views, and what was
        written in place, are made again.
        """
        given = _tensors(args)
        made, self.structure = tree_flatten(output)
        results = [t for t in made if isinstance(t, Tensor)]
        writes = self.function._schema.is_mutable
        if writes or self.function.is_view or any(t._is_view() for t in results):
            return
        if any(t is g for t in results for g in given):
            return
        self.state = state  # the random source's after it, if it drew
        self.outs = [
            (t.detach(), t._version, t.requires_grad) if isinstance(t, Tensor) else t for t in made
        ]
        for t in saved:
            at = next((i for i, g in enumerate(given) if g is t or _same(g, t)), None)
            self.saved.append(t.detach() if at is None else at)

    def give(self, args: Any, may_be_written: bool) -> Any:
        """The results that were kept: the operation has saved what it saves. They are let go."""
        assert self.outs is not None
        outs, self.outs = self.outs, None
        places, self.saved = self.saved, []
        kept = [o for o in outs if isinstance(o, tuple)]
        if not may_be_written and any(t._version != version for t, version, _ in kept):
            raise RuntimeError(
                f"checkpoint: a result of {self.function} that was kept has been written in place "
                "since; recompute it instead, write into a clone() of it, or pass "
                "allow_cache_entry_mutation=True if its value is meant"
            )
        given = _tensors(args)
        saved = [given[s] if isinstance(s, int) else s for s in places]
        recorded = [t for t, _, needs in kept if needs]
        again: Any = ()
        if recorded or saved:
            anchor = clew.empty(0, requires_grad=True)
            again = _Again.apply(anchor, saved, *recorded)
        if self.state is not None:
            clew.set_rng_state(self.state)
        by_record = iter(again)
        leaves = [
            o if not isinstance(o, tuple) else next(by_record) if o[2] else o[0] for o in outs
        ]
        return tree_unflatten(leaves, self.structure)


def _same(a: Tensor, b: Tensor) -> bool:
    return type(a) is type(b) is Tensor and a.dtype is b.dtype and a.is_set_to(b)


# What checkpoints themselves call, more often in a second run.
_IGNORED = frozenset([aten.detach.default])


class _FirstRun(TorchDispatchMode):
    """Asks the rule about each operation."""

    def __init__(self, keeps: Callable[..., bool], calls: list[_Call]) -> None:
        super().__init__()
        self.keeps, self.calls = keeps, calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _IGNORED:
            return func(*args, **kwargs)
        state = clew.get_rng_state()
        around = watched.saved
        saved = watched.saved = []
        try:
            output = func(*args, **kwargs)
        finally:
            watched.saved = around
        if around is not None:  # another checkpoint keeps results, too
            around += saved
        call = _Call(func)
        self.calls.append(call)
        if self.keeps(output, func, args, kwargs):
            after = clew.get_rng_state()
            drew = not clew.equal(state, after)
            call.keep((args, kwargs), output, saved, after if drew else None)
        return output


class _SecondRun(TorchDispatchMode):
    """Gives out what was kept."""

    def __init__(self, calls: list[_Call], may_be_written: bool) -> None:
        super().__init__()
        self.calls, self.may_be_written, self.at = calls, may_be_written, 0

    def __enter__(self) -> Any:
        self.at = 0
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _IGNORED:
            return func(*args, **kwargs)
        at, self.at = self.at, self.at + 1
        if at >= len(self.calls) or self.calls[at].function is not func:
            first = self.calls[at].function if at < len(self.calls) else "the end"
            raise RuntimeError(
                f"checkpoint: the function must do the same when it is run again for backward; "
                f"where {first} was at first, {func} is now"
            )
        call = self.calls[at]
        if call.outs is None:
            return func(*args, **kwargs)
        return call.give((args, kwargs), self.may_be_written)


def runs_of(keeps: Callable[..., bool], may_be_written: bool) -> tuple[Any, Any]:
    """The modes of a first and a second run.

    Args:
        keeps: takes a result, the operation, its arguments and its named ones; says whether the
            result is kept.
        may_be_written: give out results that were written in place.
    """
    calls: list[_Call] = []
    return _FirstRun(keeps, calls), _SecondRun(calls, may_be_written)
