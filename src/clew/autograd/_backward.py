"""Gradients by the engine: ``backward`` and ``grad`` of clew.autograd."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import _C
from clew._base.arguments import in_graph, is_structured
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level
from clew._base.tasks import of_tasks
from clew._C import Tensor, ones_like, zeros_like
from clew.autograd._edges import tensors_of
from clew.autograd.grad_mode import set_grad_enabled

__all__ = ["backward", "grad"]


class _Chosen(threading.local):
    depth = 0  # backwards of this thread, one in the other, that go to given tensors only
    filling = 0  # those of them that fill .grad


chosen = of_tasks(_Chosen())


def _to_chosen(
    roots: Sequence[Tensor], seeds: Sequence[Tensor], keep: bool, create: bool, wanted: Any
) -> Any:
    """The gradients of `wanted` alone."""
    chosen.depth += 1
    try:
        return _C._run_backward(tuple(roots), tuple(seeds), keep, create, wanted)
    finally:
        chosen.depth -= 1


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) or x is None else tuple(x)


def _inputs(given: Any) -> tuple[Any, ...]:
    """What to differentiate with respect to: of a parameter that a process has put together of
    many processes' parts (see clew.distributed.fsdp), its own part.
    """
    made = tensors_of(given)
    if all(type(t) is Tensor for t in made):
        return made
    return tuple(getattr(t, "_differentiated", t) for t in made)


def _seeds(
    what: str, outputs: Sequence[Tensor], grads: Sequence[Any], allow_unused_roots: bool = False
) -> tuple[Tensor, ...]:
    """The gradient each root starts with: the one given, or 1 for a root with one element."""
    if len(outputs) != len(grads):
        raise RuntimeError(f"{what}: got {len(outputs)} tensors and {len(grads)} gradients")
    seeds = []
    for i, (out, g) in enumerate(zip(outputs, grads)):
        of_part = getattr(type(out), "_gradient_part", None)  # a distributed tensor's
        if isinstance(g, Tensor):
            seeds.append(g if of_part is None else of_part(out, g))
        elif g is None:
            if not out.requires_grad and not allow_unused_roots:
                raise RuntimeError(
                    f"{what}: element {i} of tensors does not require grad and does not have a "
                    f"grad_fn; it is "
                    f"{out.dtype.name}{list(out.shape)}{_C._why_no_grad(out)}"
                )
            if out.numel() != 1:
                raise RuntimeError(
                    f"{what}: grad can be implicitly created only for scalar outputs; got "
                    f"shape {list(out.shape)}. Reduce "
                    "the output (for example with .sum()) or pass gradient="
                )
            if not out.is_floating_point():
                raise RuntimeError(
                    f"{what}: grad can be implicitly created only for real scalar outputs but "
                    f"got {out.dtype}"
                )
            one = ones_like(out)
            seeds.append(one if of_part is None else of_part(out, one))
        else:
            raise TypeError(
                f"{what}: gradients can be either Tensors or None, but got {type(g).__name__}"
            )
    return tuple(seeds)


_warned_of_cycles = False


def _warn_of_cycles() -> None:
    """Once in a process: .grad and the graph that made it hold each other."""
    global _warned_of_cycles
    if _warned_of_cycles:
        return
    _warned_of_cycles = True
    import warnings

    warnings.warn(
        "Using backward() with create_graph=True will create a reference cycle between the "
        "parameter and its gradient which can cause a memory leak; use autograd.grad instead, or "
        "set .grad to None after use",
        stacklevel=user_level(),
    )


def _need_flags(function: str, **flags: Any) -> None:
    """Raises TypeError for a flag that is no bool, int or None: text such as "False" is true."""
    for name, value in flags.items():
        if value is not None and value is not True and value is not False:
            if not isinstance(value, (int, np.bool_)):
                raise TypeError(
                    f"{function}(): argument '{name}' must be bool, not {type(value).__name__}"
                )


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of ``tensors`` into ``.grad`` of the leaves they were made from.

    Args:
        tensors: the roots, one tensor or gradient edge, or a sequence.
        grad_tensors: the gradient to start with at each root; may be None for roots with one
            element.
        retain_graph: keep the saved tensors, so that backward can run again; default: the value
            of create_graph.
        create_graph: record backward itself, for higher derivatives.
        grad_variables: PyTorch's old name of grad_tensors.
        inputs: the tensors whose ``.grad`` is wanted; default: all leaves.

    Raises:
        RuntimeError: a root does not require grad, a gradient is missing or of the wrong
            shape, the graph was freed.

    >>> x = clew.ones(2, requires_grad=True)
    >>> clew.autograd.backward([(x * x).sum()])
    >>> x.grad
    tensor([2., 2.])
    """
    if retain_graph is not None or create_graph is not False:
        _need_flags("backward", retain_graph=retain_graph, create_graph=create_graph)
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "backward: 'grad_tensors' and 'grad_variables' (its old name) are the same; "
                "pass one"
            )
        grad_tensors = grad_variables
    roots = tensors_of(tensors)
    inputs = None if inputs is None else _inputs(inputs)
    if _has_parts(roots, inputs, grad_tensors):
        starts = None if grad_tensors is None else _as_tuple(grad_tensors)
        seeds = None if starts is None else _seed_parts("backward", roots, starts)
        leaves = None if inputs is None else in_graph(inputs)
        return backward(in_graph(roots), seeds, retain_graph, create_graph, inputs=leaves)
    seeds = _seeds(
        "backward", roots, [None] * len(roots) if grad_tensors is None else _as_tuple(grad_tensors)
    )
    if create_graph:
        _warn_of_cycles()
    keep = create_graph if retain_graph is None else retain_graph
    if _C._vmap_depth() and any(_C._levels(r) for r in roots):
        raise RuntimeError(
            "backward: inside vmap the samples share the leaves and their .grad; use "
            "func.grad or autograd.grad"
        )
    if inputs is None:
        _C._run_backward(roots, seeds, keep, create_graph, None)
        return
    wanted = tuple({id(t): t for t in inputs}.values())
    if not wanted:
        raise RuntimeError("backward: 'inputs' argument to backward() cannot be empty")
    for t in wanted:
        if not t.is_leaf:
            t.retain_grad()
    chosen.filling += 1
    try:
        found = _to_chosen(roots, seeds, keep, create_graph, wanted)
    finally:
        chosen.filling -= 1
    with set_grad_enabled(create_graph):
        for t, g in zip(wanted, found):
            if g is None or not t.is_leaf:  # what is no leaf has kept its gradient
                continue
            g = _as_gradient(t, g)
            if t.grad is None:
                t.grad = g if create_graph else g.clone()
            elif create_graph or t.grad.requires_grad:
                t.grad = t.grad + g
            else:
                t.grad.add_(g)
            for hook in list(t._post_accumulate_dict().values()):
                hook(t)


def _tensor_backward(
    tensor: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


@asks_classes
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``; ``.grad`` is left alone.

    Args:
        outputs: the roots, one tensor or a sequence.
        inputs: the tensors, or gradient edges, to differentiate with respect to.
        grad_outputs: the gradient to start with at each root.
        retain_graph, create_graph: as in :func:`backward`.
        only_inputs: must be True.
        allow_unused: return None for inputs that the outputs do not depend on, instead of raising.
        is_grads_batched: grad_outputs have a leading batch dim, and so have the results.
        materialize_grads: return zeros instead of None.

    Returns:
        one gradient for each input.

    >>> x = clew.tensor(3.0, requires_grad=True)
    >>> clew.autograd.grad(x**2, x)
    (tensor(6.),)
    """
    if (
        retain_graph is not None
        or create_graph is not False
        or allow_unused is not None
        or materialize_grads is not False
    ):
        _need_flags(
            "grad",
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
    if not only_inputs:
        raise ValueError(
            "grad: only_inputs=False is not supported; use backward(), which fills .grad of "
            "every leaf"
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "grad: expected allow_unused to be True or not passed when materialize_grads=True"
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    roots, wanted = tensors_of(outputs), _inputs(inputs)
    if not roots or not wanted:
        empty = "inputs" if roots else "outputs"
        raise RuntimeError(f"grad: {empty} cannot be empty; give at least one tensor")
    starts = [None] * len(roots) if grad_outputs is None else _as_tuple(grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    if _has_parts(roots, wanted, grad_outputs):
        return _grad_of_parts(
            roots, wanted, starts, keep, create_graph, allow_unused, materialize_grads
        )
    if is_grads_batched:
        return _grad_of_batch(
            roots, wanted, starts, keep, create_graph, allow_unused, materialize_grads
        )
    seeds = _seeds("grad", roots, starts)
    if _C._vmap_depth():
        found = _grad_of_samples(roots, seeds, keep, create_graph, wanted)
    else:
        found = _to_chosen(roots, seeds, keep, create_graph, wanted)
    unused = [] if allow_unused else [i for i, g in enumerate(found) if g is None]
    if unused:
        from clew._insight import explain as _explain

        raise RuntimeError(
            "grad: one of the differentiated Tensors appears to not have been used in the graph"
            + _explain.unused(roots, {i: wanted[i] for i in unused})
        )
    if materialize_grads:
        found = tuple(
            zeros_like(t, requires_grad=create_graph) if g is None else g
            for t, g in zip(wanted, found)
        )
    return tuple(_as_gradient(t, g) for t, g in zip(wanted, found))


def _as_gradient(t: Any, g: Any) -> Any:
    """t's gradient: of a distributed tensor the graph knows this process's part."""
    return t._as_gradient(g) if type(g) is Tensor and hasattr(type(t), "_as_gradient") else g


def own_input(t: Tensor) -> Tensor:
    """A tensor to differentiate with respect to in place of a given one, connected to it."""
    if not t.requires_grad:
        return t.detach().requires_grad_()
    if not _C._gathers():
        return t.view_as(t)
    # Of two views of one memory a batch takes one, whose gradient would be that of both.
    made = t.clone()
    # The graph of a batch does not know results that wait, but those whose grad_fn was asked for
    # before they were used.
    _ = made.grad_fn
    return made


def _has_parts(roots: Any, leaves: Any, seeds: Any) -> bool:
    """Whether a sparse or ragged tensor is among them, of which the graph knows the values."""
    given = [() if t is None else _as_tuple(t) for t in (leaves, seeds)]
    every = (*roots, *given[0], *given[1])
    if all(type(t) is Tensor for t in every):
        return False
    return any(map(is_structured, every))


def _seed_parts(name: str, roots: Any, seeds: Any) -> tuple[Any, ...]:
    """The same of the gradients to start with, which must be as the roots are."""
    for root, seed in zip(roots, seeds):
        if seed is None or not (is_structured(root) or is_structured(seed)):
            continue
        if not is_structured(root) or not root._has_places_of(seed):
            raise RuntimeError(
                f"{name}: the gradient to start with must be of its root's layout, with elements "
                f"in the same places; got {seed.layout} of shape {list(seed.shape)} for "
                f"{root.layout} of shape {list(root.shape)}"
            )
    return in_graph(seeds)


def _grad_of_parts(
    roots: Any, wanted: Any, starts: Any, keep: bool, create: bool, unused: bool, zeros: bool
) -> tuple[Any, ...]:
    """Gradients of and with respect to tensors that others describe."""
    found = grad(
        in_graph(roots),
        in_graph(wanted),
        _seed_parts("grad", roots, starts),
        keep,
        create,
        allow_unused=unused,
        materialize_grads=zeros,
    )
    return tuple(
        t._of_gradient(g) if is_structured(t) and g is not None else g
        for t, g in zip(wanted, found)
    )


def _grad_of_batch(
    roots: Any, wanted: Any, starts: Any, keep: bool, create: bool, unused: bool, zeros: bool
) -> tuple[Any, ...]:
    """One backward for all rows of the seeds, by vmap."""
    from clew.func._vmap import vmap

    given = [i for i, g in enumerate(starts) if g is not None]
    missing: list[int] = []

    def row(*rows: Tensor) -> tuple[Tensor, ...]:
        seeds = list(starts)
        for i, r in zip(given, rows):
            seeds[i] = r
        found = grad(roots, wanted, seeds, keep, create, True, unused, False, zeros)
        missing.extend(i for i, g in enumerate(found) if g is None)
        return tuple(g for g in found if g is not None)

    found = iter(vmap(row)(*(starts[i] for i in given)))
    return tuple(None if i in missing else next(found) for i in range(len(wanted)))


def _grad_of_samples(
    roots: Sequence[Tensor], seeds: Sequence[Tensor], keep: bool, create: bool, wanted: Any
) -> tuple[Any, ...]:
    """Gradients inside vmap: the graph knows physical tensors, so roots, seeds and inputs show
    the levels that they have; a seed may be batched at others.
    """
    levels = [_C._levels(r) for r in roots]
    found = _to_chosen(
        tuple(_C._show_levels(r, own) for r, own in zip(roots, levels)),
        tuple(_C._show_levels(s, own) for s, own in zip(seeds, levels)),
        keep,
        create,
        tuple(_C._show_levels(t, _C._levels(t)) for t in wanted),
    )
    together = 0
    for own in levels:
        together |= own
    for t, g in zip(wanted, found):
        if g is not None and together & ~_C._levels(t):
            raise RuntimeError(
                "grad: inside vmap, a tensor that all samples share has one gradient for all of "
                "them, not one for each; use func.grad with the tensor as an argument of the "
                "function, or differentiate outside vmap"
            )
    return tuple(
        None if g is None else _C._hide_levels(g, _C._levels(t)) for g, t in zip(found, wanted)
    )
