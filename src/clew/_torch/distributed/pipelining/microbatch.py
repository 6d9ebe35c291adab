"""Arguments of a model cut into those of several smaller batches, and results put together."""

from __future__ import annotations

from typing import Any

import clew
from clew.utils import _pytree as pytree


class TensorChunkSpec:
    """Along which dim a tensor is cut.

    Args:
        split_dim: the dim.
    """

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> Any:
        """A spec for each of several dims.

        Args:
            chunk_dims: the dims.
        """
        return pytree.tree_map(TensorChunkSpec, tuple(chunk_dims))

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> Any:
        """The same by name.

        Args:
            chunk_dims: the dims.
        """
        return pytree.tree_map(TensorChunkSpec, dict(chunk_dims))


class _Replicate:
    """Says that a value goes to every part."""


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, (TensorChunkSpec, type))


def _pairs(values: Any, spec: Any) -> tuple[list[Any], list[Any], Any]:
    """The leaves of values, what each one's spec is, and how they were nested."""
    leaves, form = pytree.tree_flatten(values)
    if spec is None:
        return leaves, [TensorChunkSpec(0) for _ in leaves], form
    specs: list[Any] = []
    for part, own in zip(form.children_specs, pytree.tree_flatten(spec, is_leaf=_is_spec)[0]):
        specs += [own] * part.num_leaves
    if len(specs) != len(leaves):
        raise ValueError(
            f"split_args_kwargs_into_chunks: a spec is needed for each argument; got {spec!r}"
        )
    return leaves, specs, form


def _cut(x: Any, spec: Any, chunks: int) -> list[Any]:
    if not isinstance(x, clew.Tensor) or not isinstance(spec, TensorChunkSpec):
        return [x] * chunks
    if not x.ndim or x.shape[spec.split_dim] < chunks:
        raise ValueError(
            f"split_args_kwargs_into_chunks: a tensor of shape {list(x.shape)} cannot be cut into "
            f"{chunks} parts along {spec}"
        )
    return list(x.tensor_split(chunks, spec.split_dim))


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: Any = None,
    kwargs_chunk_spec: Any = None,
) -> tuple[list[Any], list[Any]]:
    """Cuts the tensors among arguments; what is no tensor goes to every part.

    Args:
        args: a model's arguments.
        kwargs: those by name.
        chunks: how many parts.
        args_chunk_spec: a TensorChunkSpec for each argument; None cuts dim 0 of all.
        kwargs_chunk_spec: the same by name.

    Returns:
        the arguments of each part, and those by name.
    """
    made = []
    for values, spec in ((tuple(args), args_chunk_spec), (dict(kwargs or {}), kwargs_chunk_spec)):
        leaves, specs, form = _pairs(values, spec)
        parts = [_cut(x, s, chunks) for x, s in zip(leaves, specs)]
        made.append([pytree.tree_unflatten([p[i] for p in parts], form) for i in range(chunks)])
    return made[0], made[1]


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """Puts results of parts together.

    Args:
        chunks: the results.
        chunk_spec: along which dim tensors are joined; None joins dim 0 of all.
    """
    forms = [pytree.tree_flatten(c) for c in chunks]
    form = forms[0][1]
    if chunk_spec is None:
        specs: list[Any] = [TensorChunkSpec(0)] * len(forms[0][0])
    else:
        specs = pytree.tree_flatten(chunk_spec, is_leaf=_is_spec)[0]
    if len(specs) != len(forms[0][0]):
        raise ValueError(f"merge_chunks: a spec is needed for each result; got {chunk_spec!r}")
    joined = []
    for i, spec in enumerate(specs):
        parts = [leaves[i] for leaves, _ in forms]
        cut = isinstance(parts[0], clew.Tensor) and isinstance(spec, TensorChunkSpec)
        joined.append(clew.cat(parts, spec.split_dim) if cut else parts[0])
    return pytree.tree_unflatten(joined, form)
