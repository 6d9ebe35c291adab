"""Jacobians and Hessians of functions, by vmap over vjp or jvp."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from clew import _C
from clew._C import Tensor
from clew.func._transforms import choose, jvp, pushforward, replaced, vjp
from clew.func._vmap import vmap
from clew.utils._pytree import tree_flatten, tree_unflatten


def _basis(like: list[Tensor]) -> list[Tensor]:
    """The unit vectors of all the tensors together: for each of them [N, *shape]."""
    from clew._C import eye

    sizes = [t.numel() for t in like]
    out = []
    start = 0
    for t, n in zip(like, sizes):
        rows = eye(sum(sizes), dtype=t.dtype, device=t.device)[:, start : start + n]
        out.append(rows.reshape((sum(sizes), *t.shape)))
        start += n
    return out


def _check_real(tensors: list[Tensor], what: str) -> None:
    for i, t in enumerate(tensors):
        if isinstance(t, Tensor) and t.is_complex():
            raise RuntimeError(
                f"{what} to be real but received complex tensor at flattened index: {i}"
            )


def _generator_state() -> bytes:
    return bytes(_C.default_generator.get_state().numpy())


def _split(whole: Tensor, like: list[Tensor]) -> tuple[Tensor, ...]:
    return whole.split([t.numel() for t in like], dim=0)


def jacrev(
    func: Callable[..., Any],
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``func``, computed row by row (reverse mode).

    Args:
        func: returns tensors; (tensors, aux) with has_aux.
        argnums: which arguments to differentiate with respect to.
        has_aux: func returns more that is handed through.
        chunk_size: how many rows are computed at once; None: all.
        _preallocate_and_copy: accepted; it is about PyTorch's memory and never changes the result.

    Returns:
        a function that gives, for every output and every chosen argument, a tensor of the output's
        shape followed by the argument's.

    Example:
        >>> clew.func.jacrev(clew.sin)(clew.tensor([0.0, 0.0]))
        tensor([[1., 0.],
                [0., 1.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen, numbers = choose(args, argnums, "jacrev")
        _check_real(tree_flatten(chosen)[0], "jacrev: Expected all inputs")

        def partial(primals: Any) -> Any:
            return func(*replaced(args, numbers, argnums, primals), **kwargs)

        if has_aux:
            output, pull, aux = vjp(partial, chosen, has_aux=True)
        else:
            output, pull = vjp(partial, chosen)
        outs, out_spec = tree_flatten(output)
        _check_real(outs, "jacrev: Expected all outputs")
        ins, in_spec = tree_flatten(chosen)

        def row(*seeds: Tensor) -> tuple[Tensor, ...]:
            (got,) = pull(tree_unflatten(seeds, out_spec))
            return tuple(tree_flatten(got)[0])

        basis = _basis(outs)
        if basis[0].shape[0] == 0:
            stacked = tuple(i.new_zeros((0, *i.shape)) for i in ins)
        else:
            stacked = vmap(row, chunk_size=chunk_size)(*basis)
        # For every input all rows; for every output its share of them.
        table = [_split(s, outs) for s in stacked]
        per_output = [
            tree_unflatten(
                [part[k].reshape((*o.shape, *i.shape)) for part, i in zip(table, ins)], in_spec
            )
            for k, o in enumerate(outs)
        ]
        jacobian = tree_unflatten(per_output, out_spec)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def _every_column_anew(
    partial: Callable[..., Any], chosen: Any, has_aux: bool, chunk_size: int | None
) -> tuple[list[Tensor], Any, Any]:
    """The columns of the Jacobian from a run of the function for each, the outputs' structure, and
    the first run's aux: random numbers are others in every column.
    """
    ins, in_spec = tree_flatten(chosen)
    specs: list[Any] = []

    def column(*tangents: Tensor) -> tuple[Any, ...]:
        found = jvp(partial, (chosen,), (tree_unflatten(list(tangents), in_spec),), has_aux=has_aux)
        pushed, out_spec = tree_flatten(found[1])
        beside, aux_spec = tree_flatten(found[2] if has_aux else ())
        specs[:] = [out_spec, len(pushed), aux_spec]
        return (*pushed, *beside)

    every = vmap(column, randomness="different", chunk_size=chunk_size)(*_basis(ins))
    out_spec, count, aux_spec = specs
    aux = tree_unflatten([a[0] for a in every[count:]], aux_spec)
    return list(every[:count]), out_spec, aux


def jacfwd(
    func: Callable[..., Any],
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``func``, computed column by column (forward mode).

    Args:
        func: returns tensors; (tensors, aux) with has_aux.
        argnums: which arguments to differentiate with respect to: an int or a tuple.
        has_aux: func returns more that is handed through.
        randomness: what random operations of func do: "error" raises, "same" draws once for all
            columns, "different" draws for every column.
        chunk_size: how many columns are computed at once; None: all.

    Returns:
        a function that gives, for every output and every chosen argument, a tensor of the output's
        shape followed by the argument's.

    Example:
        >>> clew.func.jacfwd(clew.sin)(clew.tensor([0.0, 0.0]))
        tensor([[1., 0.],
                [0., 1.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen, numbers = choose(args, argnums, "jacfwd")
        _check_real(tree_flatten(chosen)[0], "jacfwd: Expected all inputs")

        def partial(primals: Any) -> Any:
            given = replaced(args, numbers, argnums, primals)
            if randomness != "error":
                return func(*given, **kwargs)
            # The function runs once, outside vmap: what it drew shows in the generator.
            before = _generator_state()
            result = func(*given, **kwargs)
            if _generator_state() != before:
                raise RuntimeError(
                    "jacfwd: a random operation was called while randomness is 'error'; choose "
                    "'same' or 'different', or draw the numbers outside"
                )
            return result

        ins, in_spec = tree_flatten(chosen)
        basis = _basis(ins)
        no_columns = basis[0].shape[0] == 0
        if randomness == "different" and not no_columns:
            stacked, out_spec, aux = _every_column_anew(partial, chosen, has_aux, chunk_size)
            _check_real(stacked, "jacfwd: Expected all outputs")
            shapes = [s.shape[1:] for s in stacked]
        else:
            output, push, aux, out_spec = pushforward(partial, (chosen,), has_aux)
            outs = tree_flatten(output)[0]
            _check_real(outs, "jacfwd: Expected all outputs")
            shapes = [o.shape for o in outs]

            def column(*tangents: Tensor) -> tuple[Tensor, ...]:
                return tuple(push(list(tangents)))

            if no_columns:
                stacked = [o.new_zeros((0, *o.shape)) for o in outs]
            else:
                stacked = vmap(column, randomness=randomness, chunk_size=chunk_size)(*basis)
        per_output = [
            tree_unflatten(
                [
                    part.movedim(0, -1).reshape((*shape, *i.shape))
                    for part, i in zip(_split(s, ins), ins)
                ],
                in_spec,
            )
            for s, shape in zip(stacked, shapes)
        ]
        jacobian = tree_unflatten(per_output, out_spec)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """A function that gives the Hessian of ``func``: forward mode over reverse mode.

    Args:
        func: takes tensors and returns a real tensor.
        argnums: which arguments to differentiate with respect to: an int or a tuple.

    Returns:
        a function that gives, for a result of one element and a chosen argument, a tensor of the
        argument's shape twice; tuples of them for several arguments.

    Example:
        >>> clew.func.hessian(lambda x: (x**3).sum())(clew.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
