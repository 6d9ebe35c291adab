"""Functions that run when a backward of this thread is over.

`Tensor.backward` is the core's own until somebody asks; from then on it notes when it ends.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

from clew import _C
from clew._base.overriding import asks_classes
from clew._base.tasks import of_tasks
from clew.autograd import _backward


class _Thread(threading.local):
    ending = 0  # the number of the backward whose functions run


_thread = of_tasks(_Thread())
_watched = False
_missed = 0  # the number of the backward that ran when the first one asked: its end is not noted
# Of each thread: the number of the backward that asked, whether the outermost one's end is meant,
# and the function.
_waiting: dict[int, list[tuple[int, bool, Callable[[], Any]]]] = {}


def at_end(function: Callable[[], Any], own: bool = False) -> None:
    """Calls a function when a backward that is running is over.

    Args:
        function: takes nothing.
        own: the innermost backward is meant, not the outermost one.
    """
    number = running()
    if not number:
        raise RuntimeError("autograd: no backward is running")
    if number == _missed:
        raise RuntimeError(
            "autograd: the end of this backward is not watched; look up "
            "Variable._execution_engine before it begins"
        )
    _waiting.setdefault(threading.get_ident(), []).append((number, not own, function))


def running() -> int:
    """The number of the innermost backward that this thread runs; 0 for none."""
    return int(_C._backward_id()) or _thread.ending


def _settle(failed: bool) -> None:
    """Calls what waits for ends that have come; drops it after a failure."""
    mine = _waiting.pop(threading.get_ident(), [])
    outer, before = int(_C._backward_id()), _thread.ending
    try:
        while mine and not failed:
            due = next((w for w in mine if (not outer if w[1] else w[0] > outer)), None)
            if due is None:
                break
            mine.remove(due)
            _thread.ending = due[0]
            due[2]()
            mine += _waiting.pop(threading.get_ident(), [])  # what it asked for itself
    except BaseException:
        failed = True
        raise
    finally:
        _thread.ending = before
        left = [w for w in mine if w[0] <= outer] if failed else mine
        if left:
            _waiting[threading.get_ident()] = left


def _noting(function: Any) -> Any:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            found = function(*args, **kwargs)
        except BaseException:
            if _waiting:
                _settle(True)
            raise
        if _waiting:
            _settle(False)
        return found

    return run


def watch() -> None:
    """From now on the ends of backward are noted."""
    global _watched, _missed
    if _watched:
        return
    _watched, _missed = True, int(_C._backward_id())
    tensor: Any = _C.Tensor
    tensor.backward = _noting(tensor.backward)
    for name in ("backward", "grad"):
        noted = _noting(getattr(_backward, name))
        if name == "grad":  # classes that take it over know it by this function
            noted = asks_classes(noted)
        for module in (_backward, sys.modules["clew.autograd"]):
            setattr(module, name, noted)


class Engine:
    """What programs know as `Variable._execution_engine`."""

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Calls a function when the innermost backward that is running is over.

        Raises:
            RuntimeError: none is running.
        """
        if not callable(callback):
            raise TypeError(f"queue_callback: expected a function; got {type(callback).__name__}")
        if not running():
            raise RuntimeError(
                "queue_callback: Final callbacks can only be installed during backward pass."
            )
        at_end(callback, own=True)

    def run_backward(
        self,
        tensors: Any,
        grad_tensors: Any,
        keep_graph: bool = False,
        create_graph: bool = False,
        inputs: Any = (),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> Any:
        """`autograd.backward`, where gradients are added up, else `autograd.grad`."""
        if accumulate_grad or not inputs:
            wanted = inputs or None
            return _backward.backward(
                tensors, grad_tensors, keep_graph, create_graph, inputs=wanted
            )
        return _backward.grad(
            tensors,
            inputs,
            grad_tensors,
            keep_graph,
            create_graph,
            allow_unused=allow_unreachable,
        )

    def is_checkpoint_valid(self) -> bool:
        """Whether a backward that runs now may run another one, which fills the ``.grad`` of
        leaves: not while one goes to given inputs only.
        """
        return _backward.chosen.depth == 0


engine = Engine()
