"""vmap: a function of one sample made a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from clew import _C
from clew._base.arguments import is_structured
from clew._C import Tensor
from clew.utils._pytree import TreeSpec, broadcast_prefix, tree_flatten, tree_unflatten

# What a library with containers of its own, such as tensordict, puts in place of the steps of vmap,
# by PyTorch's names: `_process_batched_inputs`, `_create_batched_inputs` and `_unwrap_batched`.
replaced: dict[str, Callable[..., Any]] = {}
_STEPS = ("_process_batched_inputs", "_create_batched_inputs", "_unwrap_batched")


@contextmanager
def open_level(size: int, randomness: str) -> Iterator[int]:
    """A vmap level, open inside the context."""
    level = _C._vmap_enter(size, randomness)
    try:
        yield level
    finally:
        _C._vmap_exit()


def _name(func: Any) -> str:
    return getattr(func, "__name__", repr(func))


def _flat_in_dims(in_dims: Any, args: tuple[Any, ...], func: Any) -> tuple[list[Any], Any]:
    """The mapped dim of every leaf of the arguments, and the leaves with their structure."""
    what = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{what}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"{what}: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            f"over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = broadcast_prefix(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{what}: in_dims is not compatible with the structure of inputs. in_dims has "
            f"structure {in_dims!r} but there are {len(args)} inputs"
        )
    for i, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is None:
            continue
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise ValueError(
                f"{what}: Got in_dim={dim} for an input but in_dim must be either an integer "
                f"dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{what}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. "
                f"We cannot vmap over non-Tensor arguments, please use None as the respective "
                f"in_dim"
            )
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(
                f"{what}: Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {leaf.ndim} so expected in_dim to satisfy "
                f"-{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
        dims[i] = dim % leaf.ndim
    return dims, (leaves, spec)


def _batch_size(leaves: list[Any], dims: list[Any], func: Any) -> int:
    sizes = [leaf.shape[d] for leaf, d in zip(leaves, dims) if d is not None]
    if not sizes:
        raise ValueError(
            f"vmap({_name(func)}, ...)(<inputs>): at least one input must be mapped over; every "
            f"in_dim is None"
        )
    if any(s != sizes[0] for s in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def _unwrap(output: Any, out_dims: Any, level: int, func: Any) -> Any:
    """The results with their level as an ordinary dim."""
    leaves, spec = tree_flatten(output)
    dims = broadcast_prefix(out_dims, spec)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = broadcast_prefix(out_dims[0], spec)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): out_dims is not compatible with the "
            f"structure of the outputs"
        )
    found = []
    for leaf, dim in zip(leaves, dims):
        if not isinstance(leaf, Tensor):
            if dim is None or leaf is None:
                found.append(leaf)
                continue
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
                f"{type(leaf)}. Did you mean to set out_dims= to None for output?"
            )
        if dim is None:
            if _C._levels(leaf) >> level & 1:
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` can not return a batched tensor "
                    f"where out_dim is None"
                )
            found.append(leaf)
            continue
        if is_structured(leaf):
            kind: Any = type(leaf)
            raise NotImplementedError(
                f"vmap({_name(func)}, ...): `{_name(func)}` must return dense tensors; got "
                f"{kind._kind}; return its .values(), or convert it with {kind._remedy}"
            )
        if not isinstance(dim, int):
            raise ValueError(f"vmap: out_dims must hold ints or None; got {dim!r}")
        shown = _C._remove_level(leaf, level)
        if not -shown.ndim <= dim < shown.ndim:
            raise IndexError(
                f"vmap: out_dim={dim} is out of range for a result of {shown.ndim} dims"
            )
        found.append(shown.movedim(0, dim) if dim % shown.ndim else shown)
    return tree_unflatten(found, spec)


def run_vmapped(
    func: Callable[..., Any],
    leaves: list[Any],
    dims: list[Any],
    spec: TreeSpec,
    size: int,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
) -> Any:
    """One call of func with the mapped dims of its arguments hidden."""
    for leaf, dim in zip(leaves, dims):
        if dim is not None and hasattr(type(leaf), "_refuse"):  # sparse and distributed tensors
            leaf._refuse("vmap")
    with open_level(size, randomness) as level:
        hidden = [
            leaf if d is None else _C._add_level(leaf, d, level) for leaf, d in zip(leaves, dims)
        ]
        output = func(*tree_unflatten(hidden, spec), **kwargs)
        return _unwrap(output, out_dims, level, func)


def _in_turn(
    func: Callable[..., Any],
    leaves: list[Any],
    dims: list[Any],
    spec: TreeSpec,
    size: int,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
) -> Any:
    """A call of func for each sample: those of sparse tensors have places of their own."""
    if not size:
        raise RuntimeError(f"vmap({_name(func)}, ...): a sparse tensor has no samples to map over")
    made = []
    generator_state = _C.default_generator.get_state() if randomness == "same" else None
    for i in range(size):
        if generator_state is not None:
            _C.default_generator.set_state(generator_state)
        sample = [x if d is None else x.select(d, i) for x, d in zip(leaves, dims)]
        with open_level(1, randomness) as level:
            found, result = tree_flatten(func(*tree_unflatten(sample, spec), **kwargs))
            for k, leaf in enumerate(found):
                if not isinstance(leaf, Tensor):
                    raise ValueError(
                        f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got "
                        f"type {type(leaf)}"
                    )
                if not is_structured(leaf):  # what is drawn has the level
                    found[k] = _C._remove_level(leaf, level).select(0, 0)
        made.append(found)
    if broadcast_prefix(out_dims, result) is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): out_dims is not compatible with the "
            f"structure of the outputs"
        )
    dims = _out_dims_of(out_dims, result)
    if None in dims:
        raise ValueError(
            f"vmap({_name(func)}, ...): out_dims must hold ints where samples of sparse tensors "
            "run one by one"
        )
    stack = _C.functions["stack"]
    return tree_unflatten([stack(list(c), d) for c, d in zip(zip(*made), dims)], result)


def _run_replaced(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """vmap by the steps of a library, which know its containers."""
    process, create, unwrap = (replaced[step] for step in _STEPS)
    size, dims, leaves, spec = process(in_dims, args, func)
    for leaf in leaves:
        if is_structured(leaf):
            leaf._refuse("vmap")

    def run(leaves: list[Any], size: int) -> Any:
        with open_level(size, randomness) as level:
            # PyTorch counts levels from 1.
            output = func(*create(dims, leaves, level + 1, spec), **kwargs)
            return unwrap(output, out_dims, level + 1, size, func)

    return _in_chunks(run, leaves, dims, size, out_dims, randomness, chunk_size)


def _in_chunks(
    run: Callable[[list[Any], int], Any],
    leaves: list[Any],
    dims: list[Any],
    size: int,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
) -> Any:
    """What ``run`` gives for the leaves and their number, of chunk_size samples at once."""
    if chunk_size is None or size <= chunk_size:
        return run(leaves, size)

    def cut(leaf: Any, d: int, start: int, length: int) -> Any:
        if isinstance(leaf, Tensor):
            return leaf.narrow(d, start, length)
        return leaf[(slice(None),) * d + (slice(start, start + length),)]  # a library's container

    parts = []
    generator_state = _C.default_generator.get_state() if randomness == "same" else None
    for start in range(0, size, chunk_size):
        if generator_state is not None:
            _C.default_generator.set_state(generator_state)
        length = min(chunk_size, size - start)
        piece = [
            leaf if d is None else cut(leaf, d, start, length) for leaf, d in zip(leaves, dims)
        ]
        parts.append(run(piece, length))
    return _concatenated(parts, out_dims)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that runs ``func`` on every slice of its inputs along a dim, all at once.

    Operations run once for all samples where clew has a rule for it, sample by sample otherwise.

    Args:
        func: takes tensors (in nested containers, too) and returns tensors.
        in_dims: the mapped dim of every positional argument: an int, or a tuple nested as the
            arguments are; None for what all samples share. Keyword arguments are shared.
        out_dims: where the mapped dim stands in the results.
        randomness: what random operations do: "error" raises, "different" draws for every
            sample, "same" draws once for all.
        chunk_size: how many samples run at once; None: all.

    A ragged tensor (clew.nested) is mapped over its rows, once for all rows of one length. Results
    whose size differs from row to row are ragged, others dense. Samples of a sparse tensor in
    coordinates, and of a batch of sparse matrices, run one by one.

    Returns:
        a function of the same arguments with one more dim each.

    Raises:
        ValueError: in_dims or out_dims do not fit, or mapped sizes differ.

    Example:
        >>> x, y = clew.tensor([[1.0, 2.0], [3.0, 4.0]]), clew.tensor([10.0, 100.0])
        >>> clew.func.vmap(clew.dot, in_dims=(0, None))(x, y)
        tensor([210., 430.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if len(replaced) == len(_STEPS):
            return _run_replaced(func, in_dims, out_dims, randomness, chunk_size, args, kwargs)
        dims, (leaves, spec) = _flat_in_dims(in_dims, args, func)
        size = _batch_size(leaves, dims, func)

        def at_once(leaves: list[Any], size: int) -> Any:
            return run_vmapped(func, leaves, dims, spec, size, out_dims, randomness, kwargs)

        def run(leaves: list[Any], size: int) -> Any:
            return _in_chunks(at_once, leaves, dims, size, out_dims, randomness, chunk_size)

        if any(getattr(x, "_mapped_in_turn", False) for x, d in zip(leaves, dims) if d is not None):
            return _in_turn(func, leaves, dims, spec, size, out_dims, randomness, kwargs)
        ragged = [leaf for leaf, d in zip(leaves, dims) if d is not None and _is_ragged(leaf)]
        if ragged:
            # clew.nested gives its class this, since it needs what is imported here.
            return ragged[0]._mapped_by_length(
                run, leaves, dims, lambda made: _out_dims_of(out_dims, made), randomness
            )
        return run(leaves, size)

    return wrapped


def _is_ragged(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.is_nested


def _out_dims_of(out_dims: Any, spec: TreeSpec) -> list[Any]:
    """The mapped dim of each result, which `_unwrap` has found to fit."""
    dims = broadcast_prefix(out_dims, spec)
    if dims is None:
        dims = broadcast_prefix(out_dims[0], spec)
    assert dims is not None
    return dims


def _concatenated(parts: list[Any], out_dims: Any) -> Any:
    cat = _C.functions["cat"]
    _, spec = tree_flatten(parts[0])
    columns = list(zip(*(tree_flatten(p)[0] for p in parts)))
    dims = _out_dims_of(out_dims, spec)
    return tree_unflatten(
        [column[0] if d is None else cat(list(column), dim=d) for column, d in zip(columns, dims)],
        spec,
    )
