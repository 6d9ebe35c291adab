"""grad, vjp, jvp and their like.

A transform differentiates with respect to tensors of its own, made from the arguments: leaves, or
views of arguments that an outer transform differentiates. One recorded graph serves all levels, so
derivatives of derivatives need nothing else. Inside vmap the tensors are expanded to every open
level first, which makes their gradients those of each sample.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from clew import _C
from clew._C import Tensor
from clew._tensor.structured import parts_of
from clew.autograd._backward import grad as autograd_grad
from clew.autograd._backward import own_input
from clew.autograd._of_tasks import leaves_of_others, note_leaf, shares_graph
from clew.autograd._tangents import nested_level, tangent_of
from clew.autograd.function import Function
from clew.autograd.grad_mode import enable_grad
from clew.func._inner_leaves import InnerLeaves, note_inner
from clew.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten


def fresh(leaves: list[Any], what: str) -> list[Tensor]:
    """Tensors to differentiate with respect to, in place of the given ones."""
    levels = (1 << _C._vmap_depth()) - 1
    made = []
    for t in leaves:
        if not isinstance(t, Tensor):
            raise ValueError(
                f"{what}: Expected all inputs to be differentiated to be Tensors; got unsupported "
                f"type {type(t)}"
            )
        if not (t.is_floating_point() or t.is_complex()):
            # PyTorch has another type for the forward mode.
            kind = ValueError if what in ("jvp", "linearize") else RuntimeError
            raise kind(
                f"{what}: only Tensors of floating point and complex dtype can be differentiated; "
                f"got {t.dtype.name}{list(t.shape)}"
            )
        if levels:
            t = _C._hide_levels(_C._show_levels(t, levels), levels)
        made.append(own_input(t))
        if made[-1].is_leaf:
            note_leaf(made[-1])
    note_inner(made)
    return made


class _Written(Function):
    """The inputs as results of an operation, in the same memory: a function may write into them."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(t.detach() for t in inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


def writable(inner: list[Tensor]) -> list[Tensor]:
    """What a function gets of its inputs in the forward mode, where it may write into them.

    Inside vmap, where inputs are expanded to all samples, it may not. What another transform
    differentiates by is copied.
    """
    if _C._vmap_depth() or not all(type(t) is Tensor for t in inner):
        return inner
    if not all(t.is_leaf for t in inner):
        return [t.clone() for t in inner]
    made: tuple[Tensor, ...] = _Written.apply(*inner)
    return list(made)


def _maker(t: Tensor) -> Any:
    # A view's is made anew when somebody writes without recording it, too.
    return (t if t._base is None else t._base).grad_fn


def makers(inner: list[Tensor]) -> list[Any]:
    """What `check_unwritten` compares with, before the function is called."""
    return [None if t.is_leaf else _maker(t) for t in inner]


def check_unwritten(inner: list[Tensor], before: list[Any], what: str) -> None:
    """Refuses what a function wrote to its inputs: they have another history then, in which the
    values that it is differentiated by do not occur. Writing to leaves is refused already.
    """
    for t, maker in zip(inner, before):
        if maker is not None and _maker(t) is not maker:
            raise RuntimeError(
                f"{what}: the function wrote in place to an input of its own, or to memory that it "
                "shares; write to a clone() of it"
            )


def connected(
    outputs: list[Tensor], inner: list[Tensor], given: list[Tensor], within: InnerLeaves
) -> bool:
    """Whether somebody outside may differentiate the result: it depends on given tensors that
    require grad, or on others than these and those that transforms within made.
    """
    if any(t.requires_grad for t in given):
        return True
    roots, ends = parts_of(outputs), parts_of(inner)
    if not _C._reaches_others(roots, ends):
        return False
    others = (*leaves_of_others(), *within.alive())
    return not others or bool(_C._reaches_others(roots, (*ends, *others)))


def released(tree: Any, keep: bool) -> Any:
    """The tensors without the graph, unless it is to be kept."""
    return tree if keep else tree_map(lambda t: t.detach() if isinstance(t, Tensor) else t, tree)


def recorded(outputs: list[Any]) -> list[Tensor]:
    return [o for o in outputs if isinstance(o, Tensor) and o.requires_grad]


def check_tensors(output: Any, what: str) -> tuple[list[Tensor], TreeSpec]:
    leaves, spec = tree_flatten(output)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{what}: Expected f to be a function that has non-empty output (tensors only), "
                f"got unsupported type {type(leaf)}"
            )
    if not leaves:
        raise RuntimeError(f"{what}: expected f to be a function that has non-empty output")
    return leaves, spec


def split_aux(output: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def choose(args: tuple[Any, ...], argnums: Any, what: str) -> tuple[Any, list[int]]:
    """The arguments differentiated with respect to, and their numbers."""
    many = isinstance(argnums, tuple)
    numbers = list(argnums) if many else [argnums]
    if not numbers:
        raise RuntimeError(f"{what}: argnums must not be empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"{what}: argnums must be int or Tuple[int, ...], got: {argnums!r}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"{what}: Got argnum={n}, but only {len(args)} positional inputs")
    wrapped = [n % len(args) for n in numbers]
    if len(set(wrapped)) < len(wrapped):
        raise RuntimeError(f"{what}: argnums elements must be unique; got {argnums!r}")
    return (tuple(args[n] for n in wrapped) if many else args[wrapped[0]]), wrapped


def replaced(
    args: tuple[Any, ...], numbers: list[int], argnums: Any, chosen: Any
) -> tuple[Any, ...]:
    out = list(args)
    for n, value in zip(numbers, chosen if isinstance(argnums, tuple) else (chosen,)):
        out[n] = value
    return tuple(out)


def filled(grads: Any, like: list[Tensor]) -> list[Tensor]:
    from clew._C import zeros_like

    return [zeros_like(t.detach()) if g is None else g for g, t in zip(grads, like)]


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a tensor, got {type(output)}"
        )
    if output.ndim != 0:
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got "
            f"tensor with {output.ndim} dims. Maybe you wanted to use the vjp or jacrev "
            f"APIs instead?"
        )


def grad_and_value(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of ``func`` and its value.

    Args:
        func: returns a real tensor of one element; (tensor, anything) with has_aux.
        argnums: which arguments to differentiate with respect to: an int or a tuple.
        has_aux: func returns more that is handed through.

    Returns:
        a function that gives (gradient, value), or (gradient, (value, aux)).

    Example:
        >>> clew.func.grad_and_value(lambda x: x**2)(clew.tensor(3.0))
        (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        outer = _C.is_grad_enabled()
        with enable_grad():
            chosen, numbers = choose(args, argnums, "grad")
            given, spec = tree_flatten(chosen)
            inner = fresh(given, "grad")
            before = makers(inner)
            with InnerLeaves() as within:
                filled_in = replaced(args, numbers, argnums, tree_unflatten(inner, spec))
                output = func(*filled_in, **kwargs)
                check_unwritten(inner, before, "grad")
                output, aux = split_aux(output, has_aux, "grad_and_value(f)(*args)")
                _check_scalar(output)
                keep = outer and connected([output], inner, given, within)
            grads: Any = [None] * len(inner)
            if output.requires_grad:
                grads = autograd_grad(
                    output,
                    inner,
                    retain_graph=keep or shares_graph(),
                    create_graph=keep,
                    allow_unused=True,
                )
        gradient = tree_unflatten(released(filled(grads, inner), keep), spec)
        value = released(output, keep)
        return gradient, (value, released(aux, keep)) if has_aux else value

    return wrapper


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of ``func``.

    Args:
        func: returns a real tensor of one element; (tensor, anything) with has_aux.
        argnums: which arguments to differentiate with respect to: an int or a tuple.
        has_aux: func returns more that is handed through.

    Returns:
        a function that gives the gradient, or (gradient, aux).

    Example:
        >>> clew.func.grad(clew.sin)(clew.tensor(0.0))
        tensor(1.)
        >>> clew.func.vmap(clew.func.grad(lambda x: x**3))(clew.tensor([1.0, 2.0]))
        tensor([ 3., 12.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The output of ``func`` and a function that multiplies cotangents with its Jacobian.

    Args:
        func: takes the primals.
        primals: tensors, in nested containers too.
        has_aux: func returns (output, aux).

    Returns:
        (output, vjp_fn) or (output, vjp_fn, aux); vjp_fn takes a cotangent shaped as the output
        and gives a tuple with one result for each primal.

    Example:
        >>> y, pull = clew.func.vjp(lambda x: x**2, clew.tensor([1.0, 2.0]))
        >>> pull(clew.ones(2))
        (tensor([2., 4.]),)
    """
    outer = _C.is_grad_enabled()
    with enable_grad():
        given, spec = tree_flatten(primals)
        inner = fresh(given, "vjp")
        before = makers(inner)
        with InnerLeaves() as within:
            output, aux = split_aux(func(*tree_unflatten(inner, spec)), has_aux, "vjp(f, *primals)")
            check_unwritten(inner, before, "vjp")
            outs, out_spec = check_tensors(output, "vjp(f, *primals)")
            keep = outer and connected(outs, inner, given, within)
        for o in outs:
            if not (o.is_floating_point() or o.is_complex()):
                raise RuntimeError(
                    f"vjp(f, *primals): all outputs of f must be floating point or complex; got "
                    f"{o.dtype}"
                )

    def vjp_fn(
        *cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        seeds, seeds_spec = tree_flatten(tree)
        if len(seeds) != len(outs) or (seeds_spec != out_spec and len(cotangents) == 1):
            raise RuntimeError(
                f"vjp_fn: Expected pytree structure of cotangents to be the same as pytree "
                f"structure of outputs to the function: {len(outs)} tensors; got {len(seeds)}"
            )
        for s, o in zip(seeds, outs):
            if not isinstance(s, Tensor) or s.shape != o.shape:
                raise RuntimeError(
                    f"vjp_fn: a cotangent must have the shape of its output, {list(o.shape)}; got "
                    f"{list(s.shape) if isinstance(s, Tensor) else type(s)}"
                )
        again = keep or any(s.requires_grad for s in seeds)
        create = (_C.is_grad_enabled() and again) if create_graph is None else create_graph
        pairs = [(o, s) for o, s in zip(outs, seeds) if o.requires_grad]
        grads: Any = [None] * len(inner)
        if pairs:
            with enable_grad():
                grads = autograd_grad(
                    [o for o, _ in pairs],
                    inner,
                    [s for _, s in pairs],
                    retain_graph=retain_graph,
                    create_graph=create,
                    allow_unused=True,
                )
        return tree_unflatten(released(filled(grads, inner), create), spec)

    shown = tree_unflatten(released(outs, keep), out_spec)
    return (shown, vjp_fn, released(aux, keep)) if has_aux else (shown, vjp_fn)


def _check_tangents(primals: Any, tangents: Any) -> tuple[list[Any], list[Any], TreeSpec]:
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to be tuples")
    given, spec = tree_flatten(primals)
    pushed, tangent_spec = tree_flatten(tangents)
    if len(given) != len(pushed) or spec != tangent_spec or not given:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same (and "
            "non-empty) python structure"
        )
    for p, t in zip(given, pushed):
        if not isinstance(p, Tensor) or not isinstance(t, Tensor) or p.shape != t.shape:
            raise RuntimeError(
                "jvp(f, primals, tangents): a tangent must be a tensor of its primal's shape"
            )
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(
                f"jvp(f, primals, tangents): a tangent must be floating point or complex; got "
                f"{t.dtype.name}"
            )
    return given, pushed, spec


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The output of ``func`` and the product of its Jacobian with the tangents.

    Args:
        func: takes the primals.
        primals: a tuple of tensors, in nested containers too.
        tangents: a tuple of the same structure, with a tensor of each primal's shape.
        strict: raise when an output does not depend on the primals, instead of giving zeros.
        has_aux: func returns (output, aux).

    Returns:
        (output, tangent) or (output, tangent, aux).

    Example:
        >>> clew.func.jvp(clew.sin, (clew.tensor(0.0),), (clew.tensor(2.0),))
        (tensor(0.), tensor(2.))
    """
    outer = _C.is_grad_enabled()
    given, pushed, spec = _check_tangents(primals, tangents)
    with enable_grad():
        inner = fresh(given, "jvp")
        before = makers(inner)
        with InnerLeaves() as within, nested_level(list(zip(inner, pushed))) as level:
            output = func(*tree_unflatten(writable(inner), spec))
            check_unwritten(inner, before, "jvp")
            output, aux = split_aux(output, has_aux, "jvp(f, primals, tangents)")
            outs, out_spec = check_tensors(output, "jvp(f, primals, tangents)")
            known = [*inner, *(root for root, _ in level.roots)]
            keep = outer and (
                connected(outs, known, given, within) or any(t.requires_grad for t in pushed)
            )
            found = [tangent_of(o, level) for o in outs]
    if strict and any(t is None for t in found):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): an output of f is independent of the inputs"
        )
    results = released(filled(found, outs), keep)
    shown = tree_unflatten(released(outs, keep), out_spec)
    pair = (shown, tree_unflatten(results, out_spec))
    return (*pair, released(aux, keep)) if has_aux else pair


def pushforward(func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool = False) -> Any:
    """The output of ``func``, a function from tangents to the output's tangent (both flat lists),
    and aux; the graph is recorded once.
    """
    from clew._C import zeros_like

    outer = _C.is_grad_enabled()
    with enable_grad():
        given, spec = tree_flatten(primals)
        inner = fresh(given, "linearize")
        before = makers(inner)
        with InnerLeaves() as within:
            output, aux = split_aux(func(*tree_unflatten(writable(inner), spec)), has_aux, "jacfwd")
            check_unwritten(inner, before, "jacfwd")
            outs, out_spec = check_tensors(output, "jacfwd")
            keep = outer and connected(outs, inner, given, within)
        live = [o for o in outs if o.requires_grad]
        seeds = [zeros_like(o.detach()).requires_grad_() for o in live]
        note_inner(seeds)
        rows: Any = [None] * len(inner)
        if live:
            rows = autograd_grad(live, inner, seeds, create_graph=True, allow_unused=True)

    def push(tangents: list[Tensor]) -> list[Tensor]:
        create = _C.is_grad_enabled() and (keep or any(t.requires_grad for t in tangents))
        pairs = [(r, t) for r, t in zip(rows, tangents) if r is not None and r.requires_grad]
        found: Any = [None] * len(seeds)
        if pairs and seeds:
            with enable_grad():
                found = autograd_grad(
                    [r for r, _ in pairs],
                    seeds,
                    [t for _, t in pairs],
                    retain_graph=True,
                    create_graph=create,
                    allow_unused=True,
                )
        by_output = iter(found)
        all_found = [next(by_output) if o.requires_grad else None for o in outs]
        return released(filled(all_found, outs), create)

    shown = tree_unflatten(released(outs, keep), out_spec)
    return shown, push, released(aux, keep), out_spec


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of ``func`` at the primals, and its linear part there: tangents to tangents.

    Args:
        func: takes the primals; its operations are differentiable.
        primals: tensors, in nested containers too.

    Returns:
        (output, push); push takes one tangent for each primal, of its shape, and gives the
        output's.

    Example:
        >>> y, push = clew.func.linearize(clew.sin, clew.tensor(0.0))
        >>> push(clew.tensor(2.0))
        tensor(2.)
    """
    output, push, _, out_spec = pushforward(func, primals)
    given, spec = tree_flatten(primals)

    def jvp_fn(*tangents: Any) -> Any:
        flat, tangent_spec = tree_flatten(tangents)
        if tangent_spec != spec or any(t.shape != p.shape for t, p in zip(flat, given)):
            raise RuntimeError(
                "linearize: the tangents must have the structure and shapes of the primals"
            )
        return tree_unflatten(push(flat), out_spec)

    return output, jvp_fn


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """``func`` itself: writes in place are recorded as they are, so nothing needs to be removed.

    Args:
        func: any function.
        remove: "mutations" or "mutations_and_views", as in PyTorch.

    Returns:
        func.

    Example:
        >>> def twice(x): return x.clone().mul_(2)
        >>> clew.func.functionalize(twice)(clew.tensor(3.0))
        tensor(6.)
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): valid options for argument remove are "
            f"'mutations' and 'mutations_and_views'; got {remove!r}"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor with all samples behind one that stands for a sample inside vmap.

    Args:
        tensor: any tensor.
        recurse: show all open levels; False: the innermost only.

    Returns:
        the tensor behind it, with the dims of the samples; any other tensor as it is.

    Example:
        >>> def total(x): return clew.func.debug_unwrap(x).sum() + 0 * x
        >>> clew.func.vmap(total)(clew.tensor([1.0, 2.0]))
        tensor([3., 3.])
    """
    levels = _C._levels(tensor)
    if not levels:
        return tensor
    return _C._show_levels(tensor, levels if recurse else 1 << (levels.bit_length() - 1))


__all__ = [
    "debug_unwrap",
    "functionalize",
    "grad",
    "grad_and_value",
    "jvp",
    "linearize",
    "vjp",
]
