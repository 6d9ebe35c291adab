"""functional_call: a module's call with other tensors in place of its parameters and buffers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import clew
from clew._base.tasks import staying

__all__ = ["functional_call"]


def _ties(module: Any) -> dict[str, list[str]]:
    """For each name the other names of the same tensor."""
    groups: dict[int, list[str]] = {}
    for name, t in [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]:
        groups.setdefault(id(t), []).append(name)
    found: dict[str, list[str]] = {}
    for names in groups.values():
        for name in names:
            found[name] = names
    return found


@contextlib.contextmanager
def _reparametrize_module(
    module: Any, parameters_and_buffers: Any, tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    given = dict(parameters_and_buffers)
    ties = _ties(module)
    if tie_weights:
        whole = dict(given)
        for name in given:
            for other in ties.get(name, ()):
                if other in given and given[other] is not given[name]:
                    raise ValueError(
                        f"functional_call got multiple values for keys {sorted({name, other})}, "
                        "which "
                        "are tied. Consider using tie_weights=False"
                    )
                whole[other] = given[name]
        given = whole
    unknown = [name for name in given if name not in ties and not _has(module, name)]
    missing = [name for name in ties if name not in given]
    if strict and (unknown or missing):
        text = f"Error(s) in reparametrizing for {type(module).__name__}:"
        if unknown:
            text += "\n\tUnexpected key(s): " + ", ".join(f"'{k}'" for k in sorted(unknown)) + "."
        if missing:
            text += "\n\tMissing key(s): " + ", ".join(f"'{k}'" for k in sorted(missing)) + "."
        raise RuntimeError(text)
    for name in unknown:
        del given[name]
    undo: list[tuple[Any, str, Any, str]] = []
    try:
        for name, value in given.items():
            path, _, leaf = name.rpartition(".")
            owner = module.get_submodule(path)
            for table in (owner._parameters, owner._buffers):
                if leaf in table:
                    undo.append((table, leaf, table[leaf], name))
                    table[leaf] = value
                    break
            else:
                undo.append((owner.__dict__, leaf, owner.__dict__[leaf], name))
                owner.__dict__[leaf] = value
        yield
    finally:
        # What the call itself assigned (`self.count = self.count + 1`) is handed back through the
        # given dict.
        for table, leaf, old, name in reversed(undo):
            new = table.get(leaf)
            if new is not given[name] and name in parameters_and_buffers:
                parameters_and_buffers[name] = new
            table[leaf] = old


def _has(module: Any, name: str) -> bool:
    path, _, leaf = name.rpartition(".")
    try:
        owner = module.get_submodule(path)
    except AttributeError:
        return False
    return (
        leaf in owner._parameters
        or leaf in owner._buffers
        or isinstance(owner.__dict__.get(leaf), clew.Tensor)
    )


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with given tensors in place of its own.

    Args:
        module: the module.
        parameters_and_buffers: a dict of dotted names, or several dicts in a tuple.
        args: a tuple of positional arguments, or the only argument.
        kwargs: named arguments.
        tie_weights: tensors that the module shares stay shared.
        strict: all names must be given and known.

    Returns:
        what the module returns.

    Example:
        >>> layer = clew.nn.Linear(1, 1, bias=False)
        >>> w = {"weight": clew.tensor([[3.0]])}
        >>> clew.nn.utils.stateless.functional_call(layer, w, clew.tensor([2.0])).item()
        6.0
    """
    if isinstance(parameters_and_buffers, list | tuple):
        merged: dict[str, Any] = {}
        for part in parameters_and_buffers:
            for key, value in part.items():
                if key in merged:
                    raise ValueError(f"{key} appears in multiple dictionaries")
                merged[key] = value
        parameters_and_buffers = merged
    if not hasattr(parameters_and_buffers, "items"):
        raise ValueError(
            "Expected parameters_and_buffers to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameters_and_buffers)}"
        )
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with staying(), _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **({} if kwargs is None else kwargs))
