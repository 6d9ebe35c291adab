"""An optimizer that works on other parameters for a while."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from clew import Tensor

from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Gives an optimizer other parameters and another state within a block.

    Args:
        optimizer: the optimizer; afterwards it is as before.
        swapin_parameters: as many tensors, in the order of the optimizer's own.
        swapin_optim_state: what its `state_dict()` looks like, for these parameters. Its tensors
            are used, not copied: steps write into them.

    Example:
        >>> w = clew.ones(1, requires_grad=True)
        >>> opt = clew.optim.SGD([w], lr=0.5)
        >>> other = {"w": clew.zeros(1, requires_grad=True)}
        >>> with clew.optim.swap_in_optimizer_params_and_state(opt, other, opt.state_dict()):
        ...     other["w"].grad = clew.ones(1)
        ...     opt.step()
        >>> other["w"].detach(), w.detach()
        (tensor([-0.5000]), tensor([1.]))
    """
    given = list(swapin_parameters.values())
    packed = swapin_optim_state["param_groups"]
    sizes = [len(g["params"]) for g in optimizer.param_groups]
    if [len(g["params"]) for g in packed] != sizes or len(given) != sum(sizes):
        raise ValueError(
            "swap_in_optimizer_params_and_state: the optimizer's groups have "
            f"{sizes} parameters; got {len(given)} and a state of "
            f"{[len(g['params']) for g in packed]}"
        )
    order = [i for g in packed for i in g["params"]]
    place = dict(zip(order, given))
    groups = [{**g, "params": [place[i] for i in g["params"]]} for g in packed]
    state: Any = defaultdict(dict)
    for key, value in swapin_optim_state["state"].items():
        state[place.get(key, key)] = dict(value) if isinstance(value, dict) else value
    before = (optimizer.param_groups, optimizer.state)
    optimizer.param_groups, optimizer.state = groups, state
    lists_its_own = "_params" in vars(optimizer)
    if lists_its_own:  # LBFGS
        optimizer._params = groups[0]["params"]  # type: ignore[attr-defined]
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = before
        if lists_its_own:
            optimizer._params = before[0][0]["params"]  # type: ignore[attr-defined]
