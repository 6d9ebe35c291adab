"""What programs call that write their own checkpoints of optimizers."""

from __future__ import annotations

from typing import Any

from clew.distributed.checkpoint.state_dict import _begin_state


def _init_optim_state(optim: Any) -> None:
    """Gives an optimizer that has not stepped yet the state that its first step begins with.

    Args:
        optim: the optimizer; left as it is when it has stepped, or when there are gradients.
    """
    _begin_state(optim)
