"""Custom Functions inside vmap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from clew import _C
from clew._C import Tensor
from clew.autograd.grad_mode import no_grad


class VmapInfo(NamedTuple):
    """What a Function's own vmap is told."""

    batch_size: int
    randomness: str


def _levels(x: Any) -> int:
    return _C._levels(x) if isinstance(x, Tensor) else 0


def _bits(levels: int) -> list[int]:
    return [i for i in range(levels.bit_length()) if levels >> i & 1]


def apply(cls: Any, base: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a Function of which an argument is batched; ``base`` is Function itself."""
    if cls.vmap is not base.vmap:
        return _by_own_rule(cls, args)
    return _sample_by_rule(cls, base, args, kwargs)


def _by_own_rule(cls: Any, args: tuple[Any, ...]) -> Any:
    """The innermost level by the Function's ``vmap``, which may meet the others again."""
    level = max(_levels(a) for a in args).bit_length() - 1
    mapped = [bool(_levels(a) >> level & 1) for a in args]
    shown = [_C._remove_level(a, level) if m else a for a, m in zip(args, mapped)]
    info = VmapInfo(_C._vmap_sizes()[level], _C._vmap_randomness()[level])
    got = cls.vmap(info, tuple(0 if m else None for m in mapped), *shown)
    if not isinstance(got, tuple) or len(got) != 2:
        raise RuntimeError(f"{cls.__name__}.vmap: expected to return two items (output, out_dims)")
    output, out_dims = got
    many = isinstance(output, tuple)
    outputs = output if many else (output,)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outputs)
    hidden = tuple(
        o if d is None or not isinstance(o, Tensor) else _C._add_level(o, d, level)
        for o, d in zip(outputs, dims)
    )
    return hidden if many else hidden[0]


@contextmanager
def _levels_again(sizes: list[int]) -> Iterator[int]:
    """Opens levels of these sizes on top of whatever is open; gives the first one's number."""
    first = _C._vmap_depth()
    for size in sizes:
        _C._vmap_enter(size, "different")
    try:
        yield first
    finally:
        for _ in sizes:
            _C._vmap_exit()


@contextmanager
def _same_levels(order: list[int], sizes: list[int], serials: list[int]) -> Iterator[list[int]]:
    """The levels that something was made in, or as many others when those are over."""
    now = _C._vmap_serials()
    if all(i < len(now) and now[i] == s for i, s in zip(order, serials)):
        yield order
        return
    with _levels_again(sizes) as first:
        yield list(range(first, first + len(sizes)))


def hook_of_samples(t: Tensor, hook: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """A hook for the physical tensor of a hook for one sample."""
    order = _bits(_levels(t))
    sizes = [_C._vmap_sizes()[i] for i in order]
    serials = [_C._vmap_serials()[i] for i in order]

    def physical(grad: Tensor) -> Any:
        with _same_levels(order, sizes, serials) as now:
            levels = sum(1 << i for i in now)
            got = hook(_C._hide_levels(grad, levels))
            return _C._show_levels(got, levels) if isinstance(got, Tensor) else got

    return physical


def _sample_by_rule(cls: Any, base: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Forward and backward as they are written, on batched tensors; recorded as a Function of the
    physical ones.
    """
    own = [_levels(a) for a in args]
    union = 0
    for levels in own:
        union |= levels
    order = _bits(union)
    sizes = [_C._vmap_sizes()[i] for i in order]
    serials = [_C._vmap_serials()[i] for i in order]

    def moved(levels: int, now: list[int]) -> int:
        return sum(1 << now[order.index(i)] for i in _bits(levels))

    state: dict[str, Any] = {}

    def forward(ctx: Any, *physical: Any) -> Any:
        inner = cls._ctx_class()
        inner.needs_input_grad, inner._no_tensors = ctx.needs_input_grad, ctx._no_tensors
        logical = [_C._hide_levels(p, levels) if levels else p for p, levels in zip(physical, own)]
        with no_grad():
            if cls.setup_context is not base.setup_context:
                output = cls.forward(*logical, **kwargs)
                cls.setup_context(inner, tuple(logical), output)
            else:
                output = cls.forward(inner, *logical, **kwargs)
        if inner._dirty:
            raise RuntimeError(f"{cls.__name__}: mark_dirty is not supported inside vmap")
        outputs = output if isinstance(output, tuple) else (output,)
        fixed = {id(t) for t in inner._non_differentiable}
        state["many"] = isinstance(output, tuple)
        state["out"] = [_levels(o) for o in outputs]
        ctx.inner, ctx.out_levels = inner, state["out"]
        ctx.saved_levels = [_levels(t) for t in inner._to_save]
        shown = {}

        def show(t: Any) -> Any:
            if not isinstance(t, Tensor) or not _levels(t):
                return t
            for p, batched in zip(physical, logical):
                if batched is t:  # an input, saved as what it is
                    return p
            if id(t) not in shown:
                shown[id(t)] = _C._show_levels(t, _levels(t))
            return shown[id(t)]

        result = tuple(show(o) for o in outputs)
        ctx.save_for_backward(*(show(t) for t in inner._to_save))
        inner._to_save = ()
        ctx.mark_non_differentiable(
            *(r for r, o in zip(result, outputs) if id(o) in fixed and isinstance(r, Tensor))
        )
        ctx.set_materialize_grads(inner._materialize)
        return result

    def backward(ctx: Any, *grads: Any) -> Any:
        inner = ctx.inner
        with _same_levels(order, sizes, serials) as now:

            def hide(t: Any, levels: int) -> Any:
                return t if t is None or not levels else _C._hide_levels(t, moved(levels, now))

            inner._replayed = tuple(hide(t, n) for t, n in zip(ctx.saved_tensors, ctx.saved_levels))
            try:
                got = inner._run_backward(tuple(hide(g, n) for g, n in zip(grads, ctx.out_levels)))
            finally:
                inner._replayed = None
            return tuple(
                g if g is None else _gathered(g, moved(n, now), moved(union & ~n, now))
                for g, n in zip(got, own)
            )

    recorded = type(
        cls.__name__,
        (base,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )
    physical = [_C._show_levels(a, n) if n else a for a, n in zip(args, own)]
    outputs = recorded.apply(*physical)  # type: ignore[attr-defined]
    hidden = tuple(_C._hide_levels(o, n) if n else o for o, n in zip(outputs, state["out"]))
    return hidden if state["many"] else hidden[0]


def _gathered(grad: Tensor, own: int, others: int) -> Tensor:
    """A gradient for a physical input: with its levels shown, and summed over the others."""
    if others:
        shown = _C._show_levels(grad, others)
        grad = shown.sum(tuple(range(len(_bits(others)))))
    return _C._show_levels(grad, own) if own else grad
