"""An optimizer after whose steps parameters are averaged over processes now and then."""

from __future__ import annotations

import warnings
from typing import Any

from clew._base.provenance import user_level
from clew.optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Steps an optimizer, and has an averager average the parameters.

    Args:
        optim: the optimizer.
        averager: has `average_parameters(params)`, which is called after each step.

    Example:
        >>> from clew.distributed.optim import PostLocalSGDOptimizer
        >>> class Never:
        ...     step = 0
        ...     def average_parameters(self, params):
        ...         self.step += 1
        >>> w = nn.Parameter(clew.ones(1))
        >>> optimizer = PostLocalSGDOptimizer(clew.optim.SGD([w], lr=0.5), Never())
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.item(), optimizer.state_dict()["step"]
        (0.5, 1)
    """

    def __init__(self, optim: Optimizer, averager: Any) -> None:
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The optimizer's state."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's, and the averager's step."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes both back.

        Args:
            state_dict: what `state_dict` gave; without a step the averager begins anew.
        """
        rest = dict(state_dict)
        if "step" not in rest:
            warnings.warn(
                "PostLocalSGDOptimizer: the state has no step of the averager, which begins at 0",
                stacklevel=user_level(),
            )
        self.averager.step = rest.pop("step", 0)
        self.optim.load_state_dict(rest)
        self.param_groups = self.optim.param_groups

    def step(self, closure: Any = None) -> Any:
        """Steps, and lets the averager do its part.

        Args:
            closure: as of the optimizer.

        Returns:
            What the closure gave; None without one.
        """
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(params=self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Lets go of gradients.

        Args:
            set_to_none: False fills them with zeros.
        """
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Gives the optimizer another group.

        Args:
            param_group: the group.
        """
        self.optim.add_param_group(param_group)
