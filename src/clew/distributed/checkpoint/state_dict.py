"""States of models and optimizers under the parameters' names, whatever spreads the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import clew
from clew._C import Tensor
from clew.distributed import distributed_c10d as c10d
from clew.distributed.tensor import DTensor
from clew.distributed.tensor._api import distribute_tensor

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """What states look like.

    Args:
        full_state_dict: whole tensors instead of distributed ones.
        cpu_offload: accepted; everything is on the CPU. With full_state_dict only the first rank
            gets a state.
        ignore_frozen_params: leave out parameters that take no gradient.
        keep_submodule_prefixes: must be True.
        strict: raise where a state and a model differ in names.
        broadcast_from_rank0: the first rank's whole tensors count; the others may give none.
        flatten_optimizer_state_dict: an optimizer's state is one dict of "state.<parameter>.<name>"
            and "param_groups.<parameter>.<name>", which ranks with other parameters can load.
        dsd_fqn_modifiers: accepted.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if not self.keep_submodule_prefixes:
            raise NotImplementedError("StateDictOptions: keep_submodule_prefixes must be True")
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("StateDictOptions: broadcast_from_rank0 needs full_state_dict")


def _inner(model: Any) -> Any:
    from clew.nn.parallel import DistributedDataParallel

    return model.module if isinstance(model, DistributedDataParallel) else model


def _names(model: Any) -> dict[int, str]:
    return {id(p): name for name, p in _inner(model).named_parameters()}


def _optimizers(optimizers: Any) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]


def _given(state: Any, options: StateDictOptions) -> Any:
    """Tensors as they are asked for."""
    if isinstance(state, dict):
        return {k: _given(v, options) for k, v in state.items()}
    if isinstance(state, list):
        return [_given(v, options) for v in state]
    if isinstance(state, DTensor) and options.full_state_dict:
        return state.full_tensor().detach()
    return state.detach() if isinstance(state, Tensor) else state


def _only_first(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """With whole tensors and offloading the first rank alone keeps the state."""
    alone = options.full_state_dict and options.cpu_offload and c10d.is_initialized()
    return {} if alone and c10d.get_rank() else state


def get_model_state_dict(
    model: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """A model's state, under the names that its parameters have without a wrapper.

    Args:
        model: a model, perhaps in DistributedDataParallel or changed by `fully_shard`.
        submodules: must be None.
        options: a StateDictOptions.

    Returns:
        A dict of tensors, detached; DTensors stay distributed unless the options say
        `full_state_dict`.

    Example:
        >>> from clew.distributed.checkpoint.state_dict import get_model_state_dict
        >>> state = get_model_state_dict(nn.Linear(2, 1))
        >>> sorted(state)
        ['bias', 'weight']
    """
    if submodules is not None:
        raise NotImplementedError("get_model_state_dict: submodules must be None")
    options = options or StateDictOptions()
    inner = _inner(model)
    state = inner.state_dict()
    if options.ignore_frozen_params:
        for name, p in inner.named_parameters():
            if not p.requires_grad:
                state.pop(name, None)
    return _only_first(_given(dict(state), options), options)


def _begin_state(optimizer: Any) -> bool:
    """An optimizer that has not stepped yet gets the state that a checkpoint is to fill.

    Returns:
        Whether it did; the caller takes the state away again, as if nobody had asked.
    """
    params = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    by_loss = isinstance(optimizer, (clew.optim.LBFGS, clew.optim.SparseAdam))
    if optimizer.state or by_loss or any(p.grad is not None for p in params):
        return False
    rates = [group["lr"] for group in optimizer.param_groups]
    try:
        for p in params:
            p.grad = clew.zeros_like(p)
        for group in optimizer.param_groups:  # a step of length 0 along gradients of 0
            group["lr"] = clew.tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
        optimizer.step()
    finally:
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate
        for p in params:
            p.grad = None
    # That step changed some state that must be as before a first step: counts, and values that
    # depend on the learning rate.
    begin: Any = getattr(optimizer, "_clew_init_state", lambda *_: None)
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p in optimizer.state:
                fresh: dict[str, Any] = {}
                begin(group, p, fresh)
                optimizer.state[p].update(fresh)
    return True


def get_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Optimizers' state under the parameters' names: "state" and "param_groups".

    For an optimizer that has not stepped yet this gives its initial state, so that a checkpoint can
    be loaded into it; the optimizer does not change.

    Args:
        model: the model.
        optimizers: one or several.
        submodules: must be None.
        options: what it looks like.

    Example:
        >>> from clew.distributed.checkpoint.state_dict import get_optimizer_state_dict
        >>> model = nn.Linear(2, 1)
        >>> state = get_optimizer_state_dict(model, clew.optim.Adam(model.parameters()))
        >>> sorted(state["state"]["weight"])
        ['exp_avg', 'exp_avg_sq', 'step']
    """
    if submodules is not None:
        raise NotImplementedError("get_optimizer_state_dict: submodules must be None")
    options = options or StateDictOptions()
    names = _names(model)
    state: dict[str, Any] = {}
    groups: list[Any] = []
    for optimizer in _optimizers(optimizers):
        made = _begin_state(optimizer)
        for group in optimizer.param_groups:
            params = [_named(names, p) for p in group["params"]]
            kept = {k: v for k, v in group.items() if k not in ("params", "param_names")}
            groups.append({**kept, "params": params})
        for p, own in optimizer.state.items():
            state[_named(names, p)] = _given(dict(own), options)
        if made:
            optimizer.state.clear()
    found = {"state": state, "param_groups": groups}
    if options.flatten_optimizer_state_dict:
        found = _flat(found)
    return _only_first(found, options)


def _flat(state: dict[str, Any]) -> dict[str, Any]:
    """An optimizer's state as one dict."""
    found: dict[str, Any] = {}

    def put(prefix: str, own: dict[Any, Any]) -> None:
        for key, value in own.items():
            if isinstance(value, dict):
                put(f"{prefix}.{key}", value)
            elif isinstance(value, (Tensor, int, float)):
                found[f"{prefix}.{key}"] = value
            else:
                raise NotImplementedError(
                    "get_optimizer_state_dict: flatten_optimizer_state_dict takes state of "
                    f"tensors, int, float and dicts; got {type(value)} for {prefix}.{key}"
                )

    for name, own in state["state"].items():
        put(f"state.{name}", own)
    for group in state["param_groups"]:
        for name in group["params"]:
            told = {f"param_groups.{name}.{k}": v for k, v in group.items() if k != "params"}
            found.update(told)
    return found


def _unflat(flat: dict[str, Any], optimizers: list[Any], names: dict[int, str]) -> dict[str, Any]:
    """The state of optimizers of what `_flat` gave, also of more parameters than theirs."""
    known = set(names.values())
    state: dict[str, dict[str, Any]] = {}
    told: dict[str, dict[str, Any]] = {}
    for key, value in flat.items():
        kind, _, rest = key.partition(".")
        parts = rest.split(".")
        # One parameter's name may begin with another's.
        ends = (i for i in range(len(parts) - 1, 0, -1) if ".".join(parts[:i]) in known)
        end = next(ends, 0)
        if not end:
            continue
        place = (state if kind == "state" else told).setdefault(".".join(parts[:end]), {})
        for part in parts[end:-1]:
            place = place.setdefault(part, {})
        place[parts[-1]] = value
    for group in (g for optimizer in optimizers for g in optimizer.param_groups):
        mine = [n for n in (_named(names, p) for p in group["params"]) if n in told]
        for name in mine[1:]:
            for key, value in told[name].items():
                if told[mine[0]].get(key, value) != value:
                    raise RuntimeError(
                        "set_optimizer_state_dict: All the parameters in the same parameter group "
                        f"should have the same saved param_group value. But {mine[0]}.{key} is "
                        f"{told[mine[0]][key]} while that of {name} is {value}"
                    )
    groups = [{**group, "params": [name]} for name, group in told.items()]
    return {"state": state, "param_groups": groups}


def _named(names: dict[int, str], p: Any) -> str:
    if id(p) not in names:
        raise RuntimeError(
            "get_optimizer_state_dict: the optimizer has a parameter that is not the model's; make "
            "it of the model's parameters, after fully_shard"
        )
    return names[id(p)]


def get_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model's state and its optimizers' state, each under the parameters' names.

    Args:
        model: as of `get_model_state_dict`.
        optimizers: one or several.
        submodules: must be None.
        options: a StateDictOptions.

    Returns:
        What `get_model_state_dict` and `get_optimizer_state_dict` give.

    Example:
        >>> from clew.distributed.checkpoint.state_dict import get_state_dict
        >>> model = nn.Linear(2, 1)
        >>> own, steps = get_state_dict(model, clew.optim.SGD(model.parameters(), lr=0.1))
        >>> sorted(own), steps["param_groups"][0]["params"]
        (['bias', 'weight'], ['weight', 'bias'])
    """
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def _shared(state: Any) -> Any:
    """The first rank's state, on all."""
    if not c10d.is_initialized():
        return state
    box = [state if c10d.get_rank() == 0 else None]
    c10d.broadcast_object_list(box, 0)
    return box[0]


def _like(value: Any, own: Any) -> Any:
    """A whole tensor in the way that another lies."""
    if isinstance(own, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
        if tuple(value.shape) == tuple(own.shape):
            return distribute_tensor(value, own.device_mesh, own.placements, src_data_rank=None)
    return value


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads a state into a model; whole tensors are cut where the model's are distributed.

    Args:
        model: a model, perhaps in DistributedDataParallel or changed by `fully_shard`.
        model_state_dict: the state, of whole tensors or of distributed ones.
        options: a StateDictOptions.

    Returns:
        `missing_keys` and `unexpected_keys`, as of `Module.load_state_dict`.

    Example:
        >>> from clew.distributed.checkpoint.state_dict import set_model_state_dict
        >>> model = nn.Linear(2, 1, bias=False)
        >>> set_model_state_dict(model, {"weight": clew.ones(1, 2)})
        <All keys matched successfully>
        >>> model.weight.tolist()
        [[1.0, 1.0]]
    """
    options = options or StateDictOptions()
    if options.broadcast_from_rank0:
        model_state_dict = _shared(model_state_dict)
    inner = _inner(model)
    own = inner.state_dict()
    state = {k: _like(v, own.get(k)) for k, v in model_state_dict.items()}
    return inner.load_state_dict(state, strict=options.strict)


def set_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Loads the state that `get_optimizer_state_dict` gave into optimizers.

    Args:
        model: the model.
        optimizers: one or several, made of the model's parameters.
        optim_state_dict: the state, under the parameters' names.
        options: a StateDictOptions.

    Raises:
        RuntimeError: if `strict` and the state lacks a parameter.

    Example:
        >>> from clew.distributed.checkpoint.state_dict import get_optimizer_state_dict
        >>> from clew.distributed.checkpoint.state_dict import set_optimizer_state_dict
        >>> model = nn.Linear(2, 1)
        >>> saved = get_optimizer_state_dict(model, clew.optim.SGD(model.parameters(), lr=0.5))
        >>> optimizer = clew.optim.SGD(model.parameters(), lr=0.1)
        >>> set_optimizer_state_dict(model, optimizer, saved)
        >>> optimizer.param_groups[0]["lr"]
        0.5
    """
    options = options or StateDictOptions()
    if options.broadcast_from_rank0:
        optim_state_dict = _shared(optim_state_dict)
    names = _names(model)
    if options.flatten_optimizer_state_dict:
        optim_state_dict = _unflat(optim_state_dict, _optimizers(optimizers), names)
    by_name = {
        name: group for group in optim_state_dict["param_groups"] for name in group["params"]
    }
    for optimizer in _optimizers(optimizers):
        number, state, groups = 0, {}, []
        for group in optimizer.param_groups:
            numbers = []
            kept = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                name = _named(names, p)
                if name in by_name:
                    told = by_name[name]
                    kept.update({k: v for k, v in told.items() if k != "params"})
                elif options.strict:
                    raise RuntimeError(f"set_optimizer_state_dict: nothing is told of {name!r}")
                if name in optim_state_dict["state"]:
                    own = optim_state_dict["state"][name]
                    state[number] = {k: _like(v, p) for k, v in own.items()}
                numbers.append(number)
                number += 1
            groups.append({**kept, "params": numbers})
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Loads states into a model and its optimizers.

    Args:
        model: as of `set_model_state_dict`.
        optimizers: one or several.
        model_state_dict: the model's state.
        optim_state_dict: the optimizers' state.
        options: a StateDictOptions.

    Returns:
        `missing_keys` and `unexpected_keys` of the model.

    Example:
        >>> from clew.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
        >>> model = nn.Linear(2, 1)
        >>> optimizer = clew.optim.SGD(model.parameters(), lr=0.1)
        >>> own, steps = get_state_dict(model, optimizer)
        >>> set_state_dict(model, optimizer, model_state_dict=own, optim_state_dict=steps)
        <All keys matched successfully>
    """
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
