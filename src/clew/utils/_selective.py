"""Checkpoints that keep the results of some operations: what programs say about them."""

from __future__ import annotations

import enum
from typing import Any

__all__ = [
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointPolicy(enum.Enum):
    """What a rule says of an operation: whether its results are kept or computed again. On the CPU
    an offloaded result is one that is kept; MUST and PREFER do the same.

    Example:
        >>> clew.utils.checkpoint.CheckpointPolicy.MUST_SAVE.name
        'MUST_SAVE'
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a rule is told besides the operation and its arguments.

    Args:
        is_recompute: False: rules are asked in the first run only.
        op_output: the operation's result.

    Example:
        >>> from clew.utils.checkpoint import SelectiveCheckpointContext
        >>> SelectiveCheckpointContext(is_recompute=False, op_output=3).op_output
        3
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


_RECOMPUTING = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """What `checkpoint` takes as `context_fn`, with `functools.partial`, to keep some results.

    Views and writes in place are made again whatever the rule says. A second backward through the
    same graph computes everything again.

    Args:
        policy_fn_or_list: a rule, called in the first run after each operation with a
            `SelectiveCheckpointContext`, the operation (as `clew.ops.aten.mm.default`) and its
            arguments, which gives a `CheckpointPolicy` or whether to keep the results; or a list of
            the operations whose results are kept.
        allow_cache_entry_mutation: give out a kept result that was written in place as it is now;
            else that raises.

    Returns:
        the contexts of the first run and of the second.

    Example:
        >>> import functools
        >>> from clew.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
        >>> keeping = functools.partial(
        ...     create_selective_checkpoint_contexts, [clew.ops.aten.mm.default]
        ... )
        >>> x = clew.ones(2, 2, requires_grad=True)
        >>> y = checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=keeping)
        >>> y.sum().backward()
    """
    from clew import ops
    from clew._registered import _Operation as Registered
    from clew.utils._selective_runs import runs_of

    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, (ops._Overload, Registered)):
                packet = isinstance(op, ops._Operation)
                hint = f"; name its overload: {op}.default" if packet else ""
                raise ValueError(
                    "create_selective_checkpoint_contexts: Expected op in `op_list` to be an "
                    f"OpOverload but got: {op} of type {type(op)}{hint}"
                )
        kept = policy_fn_or_list

        def rule(_told: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            return op in kept

    elif callable(policy_fn_or_list):
        rule = policy_fn_or_list
    else:
        raise TypeError(
            "create_selective_checkpoint_contexts: policy_fn_or_list must be either a function or "
            f"a list of ops; got {type(policy_fn_or_list).__name__}"
        )

    def keeps(output: Any, op: Any, args: Any, kwargs: Any) -> bool:
        told = SelectiveCheckpointContext(is_recompute=False, op_output=output)
        answer = rule(told, op, *args, **kwargs)
        return answer if isinstance(answer, bool) else answer not in _RECOMPUTING

    return runs_of(keeps, allow_cache_entry_mutation)
