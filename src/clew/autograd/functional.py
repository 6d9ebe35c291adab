"""Products with Jacobians and Hessians, and the matrices themselves, of Python functions of
tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import _C
from clew._C import Tensor, ones_like, zeros_like
from clew.autograd._backward import grad, own_input
from clew.autograd.grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_stack = _C.functions["stack"]


def _tuple(x: Any, what: str, name: str) -> tuple[tuple[Tensor, ...], bool]:
    """x as a tuple of tensors, and whether it was one already."""
    is_tuple = isinstance(x, (tuple, list))
    items = tuple(x) if is_tuple else (x,)
    for i, t in enumerate(items):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"{name}: the {what} must be a Tensor or a tuple of Tensors; element {i} is "
                f"{type(t).__name__}"
            )
    return items, is_tuple


def _fresh(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs of our own to differentiate with respect to; connected to the given ones with
    create_graph.
    """
    if create_graph:
        return tuple(map(own_input, inputs))
    return tuple(t.detach().requires_grad_() for t in inputs)


def _grad(
    outputs: Any, inputs: Any, seeds: Any, create_graph: bool, keep: bool = False
) -> tuple[Tensor | None, ...]:

    used = [(o, s) for o, s in zip(outputs, seeds) if o.requires_grad]
    if not used:
        return (None,) * len(inputs)
    return grad(
        [o for o, _ in used],
        inputs,
        [s for _, s in used],
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=keep or create_graph or _C._gathers(),  # samples of autobatch share a graph
    )


def _filled(
    grads: tuple[Tensor | None, ...],
    like: tuple[Tensor, ...],
    strict: bool,
    name: str,
    create_graph: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients with zeros for those that are lacking.

    In strict mode none may lack, nor, where the result is to be differentiated, be a constant.
    """

    if strict and any(g is None for g in grads):
        i = next(i for i, g in enumerate(grads) if g is None)
        raise RuntimeError(
            f"{name}: the output does not depend on input {i}; this is not allowed in strict mode"
        )
    if strict and create_graph:
        for i, g in enumerate(grads):
            if g is not None and not g.requires_grad:
                raise RuntimeError(
                    f"{name}: the derivative of the function is independent of input {i}; this is "
                    "not allowed in strict mode with create_graph=True"
                )
    return tuple(zeros_like(t) if g is None else g for g, t in zip(grads, like))


def _check_vector(v: Any, like: tuple[Tensor, ...], name: str, what: str) -> tuple[Tensor, ...]:
    vs, _ = _tuple(v, "v", name)
    if len(vs) != len(like):
        raise RuntimeError(
            f"{name}: v must have as many elements as the {what} ({len(like)}); got {len(vs)}"
        )
    for i, (a, b) in enumerate(zip(vs, like)):
        if a.shape != b.shape:
            raise RuntimeError(
                f"{name}: element {i} of v has shape {list(a.shape)}; the {what} there has "
                f"shape {list(b.shape)}"
            )
    return vs


def _seed(v: Any, like: tuple[Tensor, ...], name: str, what: str) -> tuple[Tensor, ...]:

    if v is not None:
        return _check_vector(v, like, name, what)
    if len(like) != 1 or like[0].numel() != 1:
        raise RuntimeError(
            f"{name}: the vector v can only be None if the {what} is a single element"
        )
    return (ones_like(like[0]),)


def _back(items: tuple[Any, ...], is_tuple: bool) -> Any:
    return items if is_tuple else items[0]


def _detached(x: Any, create_graph: bool) -> Any:
    return tuple(x) if create_graph else tuple(t.detach() for t in x)


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of func, and the product v^T J of v with its Jacobian.

    Args:
        func: a function of tensors that returns a tensor or a tuple of tensors.
        inputs: its arguments, a tensor or a tuple of tensors.
        v: shaped as the output; may be None for an output of one element.
        create_graph: make the result differentiable.
        strict: raise when an output does not depend on an input, instead of giving zeros.

    >>> clew.autograd.functional.vjp(lambda x: x**2, clew.tensor([1.0, 2.0]), clew.ones(2))[1]
    tensor([2., 4.])
    """
    with enable_grad():
        ins, is_tuple = _tuple(inputs, "inputs", "vjp")
        ins = _fresh(ins, create_graph)
        outs, outs_tuple = _tuple(func(*ins), "outputs of the function", "vjp")
        seeds = _seed(v, outs, "vjp", "output")
        for i, out in enumerate(outs):
            if strict and not out.requires_grad:
                raise RuntimeError(
                    f"vjp: output {i} of the function does not require gradients; in strict mode "
                    "every output must be computed from the inputs"
                )
        got = _filled(_grad(outs, ins, seeds, create_graph), ins, strict, "vjp", create_graph)
    return (
        _back(_detached(outs, create_graph), outs_tuple),
        _back(_detached(got, create_graph), is_tuple),
    )


def _jvp(
    outs: Any, ins: Any, tangents: Any, create_graph: bool, strict: bool, name: str
) -> tuple[Tensor, ...]:
    """J t by differentiating u -> u^T J, which is linear in u."""

    dummies = tuple(zeros_like(o, requires_grad=True) for o in outs)
    rows = _filled(_grad(outs, ins, dummies, True), ins, strict, name)
    return _filled(_grad(rows, dummies, tangents, create_graph), outs, strict, name, create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of func, and the product J v of its Jacobian with v.

    Args:
        func, inputs, create_graph, strict: as in :func:`vjp`.
        v: shaped as the inputs; may be None for an input of one element.

    >>> clew.autograd.functional.jvp(lambda x: x**2, clew.tensor([1.0, 2.0]), clew.ones(2))[1]
    tensor([2., 4.])
    """
    with enable_grad():
        ins, _ = _tuple(inputs, "inputs", "jvp")
        ins = _fresh(ins, create_graph)
        tangents = _seed(v, ins, "jvp", "input")
        outs, outs_tuple = _tuple(func(*ins), "outputs of the function", "jvp")
        got = _jvp(outs, ins, tangents, create_graph, strict, "jvp")
    return _back(_detached(outs, create_graph), outs_tuple), _back(
        _detached(got, create_graph), outs_tuple
    )


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of func: for each output and input a tensor of shape output.shape + input.shape.

    Args:
        func, inputs, create_graph, strict: as in :func:`vjp`.
        vectorize: compute all rows (or columns) at once, by vmap.
        strategy: "reverse-mode" (a row at a time) or "forward-mode" (a column at a time).

    >>> clew.autograd.functional.jacobian(lambda x: x * x.sum(), clew.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """

    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"jacobian: strategy must be 'reverse-mode' or 'forward-mode'; got {strategy!r}"
        )
    if vectorize:
        return _jacobian_at_once(func, inputs, create_graph, strict, strategy)
    with enable_grad():
        ins, ins_tuple = _tuple(inputs, "inputs", "jacobian")
        ins = _fresh(ins, create_graph)
        outs, outs_tuple = _tuple(func(*ins), "outputs of the function", "jacobian")
        if strategy == "forward-mode":
            if create_graph:
                raise NotImplementedError(
                    "jacobian: create_graph=True needs strategy='reverse-mode'"
                )
            columns: list[list[list[Tensor]]] = [[[] for _ in ins] for _ in outs]
            for i, t in enumerate(ins):
                for k in range(t.numel()):
                    tangents = [zeros_like(s) for s in ins]
                    tangents[i].view(-1)[k] = 1
                    for o, column in enumerate(
                        _jvp(outs, ins, tangents, False, strict, "jacobian")
                    ):
                        columns[o][i].append(column.detach())
            table = tuple(
                tuple(
                    (
                        _stack(columns[o][i], dim=-1)
                        if columns[o][i]
                        else out.new_zeros((*out.shape, 0))
                    ).reshape((*out.shape, *t.shape))
                    for i, t in enumerate(ins)
                )
                for o, out in enumerate(outs)
            )
        else:
            rows_of = []
            for out in outs:
                rows: list[tuple[Tensor, ...]] = []
                flat = out.reshape(-1)
                for k in range(flat.numel()):
                    got = _grad(
                        (flat[k],),
                        ins,
                        (None,) if not flat[k].is_complex() else (flat.new_ones(()),),
                        create_graph,
                        keep=True,
                    )
                    rows.append(_filled(got, ins, strict, "jacobian", create_graph))
                rows_of.append(
                    tuple(
                        (
                            _stack([r[i] for r in rows]) if rows else t.new_zeros((0, *t.shape))
                        ).reshape((*out.shape, *t.shape))
                        for i, t in enumerate(ins)
                    )
                )
            table = tuple(rows_of)
    table = tuple(_detached(row, create_graph) for row in table)
    return _back(tuple(_back(row, ins_tuple) for row in table), outs_tuple)


def _jacobian_at_once(
    func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, strategy: str
) -> Any:
    from clew.func._jacobians import jacfwd, jacrev

    if strict:
        raise RuntimeError("jacobian: strict=True and vectorize=True are not supported together")
    if create_graph and strategy == "forward-mode":
        raise NotImplementedError("jacobian: create_graph=True needs strategy='reverse-mode'")
    ins, ins_tuple = _tuple(inputs, "inputs", "jacobian")
    if create_graph:
        ins = tuple(t if t.requires_grad else t.detach().requires_grad_() for t in ins)
    numbers = tuple(range(len(ins)))
    transform = jacrev if strategy == "reverse-mode" else jacfwd
    with enable_grad():
        table = transform(lambda *ts: func(*ts), argnums=numbers)(*ins)
    many = isinstance(table[0], tuple)
    rows = tuple(_detached(row, create_graph) for row in (table if many else (table,)))
    return _back(tuple(_back(row, ins_tuple) for row in rows), many)


def _scalar(outs: tuple[Tensor, ...], outs_tuple: bool, name: str) -> Tensor:
    if outs_tuple or outs[0].numel() != 1:
        raise RuntimeError(
            f"{name}: the function must return a single tensor with one element; got "
            f"{[o.shape for o in outs]}"
        )
    return outs[0].reshape(())


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a func with a single-element output.

    Args:
        func: gives one element for tensors.
        inputs: a tensor or a tuple of them.
        create_graph: record the result, for higher derivatives.
        strict: raise where the output does not depend on an input.
        vectorize: compute the rows in one vmapped pass.
        outer_jacobian_strategy: 'reverse-mode' or 'forward-mode' (with vectorize).

    Returns:
        a tensor; for a tuple of inputs, a tuple of tuples.

    >>> clew.autograd.functional.hessian(lambda x: (x**3).sum(), clew.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    ins, is_tuple = _tuple(inputs, "inputs", "hessian")

    def gradient(*args: Tensor) -> tuple[Tensor, ...]:
        out, many = _tuple(func(*args), "outputs of the function", "hessian")
        value = _scalar(out, many, "hessian")
        return _filled(_grad((value,), args, (None,), True), args, strict, "hessian")

    table = jacobian(gradient, ins, create_graph, strict, vectorize, outer_jacobian_strategy)
    return table if is_tuple else table[0][0]


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of func (one element), and the product v^T H with its Hessian.

    Args:
        func: gives one element for tensors.
        inputs: a tensor or a tuple of them.
        v: the vector, of the shape of inputs.
        create_graph: record the result, for higher derivatives.
        strict: raise where the output does not depend on an input.

    Returns:
        func's output and the product.

    >>> x, v = clew.tensor([1.0, 2.0]), clew.tensor([1.0, 0.0])
    >>> clew.autograd.functional.vhp(lambda x: (x**3).sum(), x, v)[1]
    tensor([6., 0.])
    """
    with enable_grad():
        ins, is_tuple = _tuple(inputs, "inputs", "vhp")
        ins = _fresh(ins, create_graph)
        vs = _seed(v, ins, "vhp", "input")
        outs, many = _tuple(func(*ins), "outputs of the function", "vhp")
        value = _scalar(outs, many, "vhp")
        first = _filled(_grad((value,), ins, (None,), True), ins, strict, "vhp")
        got = _filled(_grad(first, ins, vs, create_graph), ins, strict, "vhp", create_graph)
    return _back(_detached(outs, create_graph), False), _back(
        _detached(got, create_graph), is_tuple
    )


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of func (one element), and the product H v with its Hessian.

    Args:
        func: gives one element for tensors.
        inputs: a tensor or a tuple of them.
        v: the vector, of the shape of inputs.
        create_graph: record the result, for higher derivatives.
        strict: raise where the output does not depend on an input.

    Returns:
        func's output and the product.

    >>> x, v = clew.tensor([1.0, 2.0]), clew.tensor([1.0, 0.0])
    >>> clew.autograd.functional.hvp(lambda x: (x**3).sum(), x, v)[1]
    tensor([6., 0.])
    """
    with enable_grad():
        ins, is_tuple = _tuple(inputs, "inputs", "hvp")
        ins = _fresh(ins, create_graph)
        vs = _seed(v, ins, "hvp", "input")
        outs, many = _tuple(func(*ins), "outputs of the function", "hvp")
        value = _scalar(outs, many, "hvp")
        first = _filled(_grad((value,), ins, (None,), True), ins, strict, "hvp")
        got = _jvp(first, ins, vs, create_graph, strict, "hvp")
    return _back(_detached(outs, create_graph), False), _back(
        _detached(got, create_graph), is_tuple
    )
