"""The recorded graph: nodes, hooks on saved tensors, gradient edges."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

from clew import _C
from clew._C import Node, Tensor
from clew.autograd._edges import GradientEdge
from clew.autograd._layout import Layout
from clew.autograd.grad_mode import no_grad

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def _register_hook(self: Node, fn: Callable[[Any, Any], Any]) -> Any:
    """Calls a function after the node ran.

    Args:
        fn: fn(grad_inputs, grad_outputs), where a tuple that it returns replaces the grad_inputs.

    Returns:
        A handle, whose remove() takes the hook out.
    """
    from clew.autograd.hooks import attach_hook

    return attach_hook(self._hooks_dict(False), fn)


def _register_prehook(self: Node, fn: Callable[[Any], Any]) -> Any:
    """Calls a function before the node runs.

    Args:
        fn: fn(grad_outputs), where a tuple that it returns replaces them.

    Returns:
        A handle, whose remove() takes the hook out.
    """
    from clew.autograd.hooks import attach_hook

    return attach_hook(self._hooks_dict(True), fn)


Node.register_hook = _register_hook
Node.register_prehook = _register_prehook


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that gradients of ``tensor`` flow along.

    Args:
        tensor: a tensor that requires grad.

    Returns:
        A GradientEdge: the node and the number of its output.

    Raises:
        RuntimeError: the tensor does not require grad.

    >>> x = clew.ones(1, requires_grad=True)
    >>> clew.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    if tensor.grad_fn is not None:
        return GradientEdge(tensor.grad_fn, tensor.output_nr)
    with _C_grad():
        node = tensor.view_as(tensor).grad_fn.next_functions[0][0]
    return GradientEdge(node, 0)


def _C_grad() -> Any:
    from clew.autograd.grad_mode import enable_grad

    return enable_grad()


class saved_tensors_hooks:
    """Tensors saved for backward inside go through ``pack_hook``, and come back through
    ``unpack_hook``.

    Args:
        pack_hook: takes a tensor, and returns what is kept in its place.
        unpack_hook: takes what was kept, and returns a tensor of the same values.

    >>> packed = []
    >>> x = clew.ones(2, requires_grad=True)
    >>> with clew.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
    ...     y = x * x
    >>> len(packed)
    2
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _disabled:
            raise RuntimeError(_disabled[-1])
        _C._push_saved_hooks((self.pack_hook, self.unpack_hook))

    def __exit__(self, *exc: object) -> None:
        _C._pop_saved_hooks()


_disabled: list[str] = []


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Makes it an error to enter ``saved_tensors_hooks`` inside.

    Args:
        error_message: the text of the RuntimeError.

    >>> with clew.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     y = clew.ones(1) * 2
    """
    _disabled.append(error_message)
    try:
        yield
    finally:
        _disabled.pop()


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors as copies in main memory.

    Args:
        pin_memory: accepted; there is nothing to pin for.
        device_type: the device the tensors come back to.

    >>> x = clew.ones(1, requires_grad=True)
    >>> with clew.autograd.graph.save_on_cpu():
    ...     y = x * x
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:
        super().__init__(self._pack, lambda packed: packed[0].restore(packed[1]).to(packed[2]))

    def _pack(self, t: Tensor) -> tuple[Layout, Tensor, Any]:
        layout = Layout(t)
        return layout, layout.copy(t), t.device


class allow_mutation_on_saved_tensors:
    """Within it tensors that backward needs may be written to: backward gets copies.

    A copy is made of everything that is saved.

    >>> x = clew.ones(2, requires_grad=True)
    >>> y = x.clone()
    >>> with clew.autograd.graph.allow_mutation_on_saved_tensors():
    ...     z = y.sin()
    ...     _ = y.fill_(7.0)
    >>> z.sum().backward()
    >>> x.grad
    tensor([0.5403, 0.5403])
    """

    def __enter__(self) -> allow_mutation_on_saved_tensors:
        self._hooks = saved_tensors_hooks(self._copy, lambda t: t)
        self._hooks.__enter__()
        return self

    def _copy(self, t: Tensor) -> Tensor:
        with no_grad():
            return t.clone()

    def __exit__(self, *args: Any) -> None:
        self._hooks.__exit__(*args)

    def clear(self) -> None:
        """Does nothing: the copies go when the graph does."""


class _GradientsOfOneBackward:
    """What a multi-grad hook has seen in one backward."""

    def __init__(self, count: int, wanted: int) -> None:
        self.got: list[Tensor | None] = [None] * count
        self.left = wanted
        self.called = False


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> Any:
    """Calls ``fn`` when the gradients of several tensors are computed in one backward.

    Args:
        tensors: the tensors; those that do not require grad are left out.
        fn: with mode "all" called with a list of the gradients, None for tensors left out; with
            "any" with the gradient that is computed first.
        mode: "all" waits for all gradients, "any" for the first.

    Returns:
        A handle whose remove() takes the hook out; also a context manager.

    Raises:
        ValueError: for another mode.

    A tensor that takes no part in a backward is not waited for: ``fn`` then runs when that backward
    is over, with None in its place, if at least one of the others took part.

    >>> a, b = (clew.ones(1, requires_grad=True) for _ in range(2))
    >>> handle = clew.autograd.graph.register_multi_grad_hook(
    ...     (a, b), lambda grads: print(grads)
    ... )
    >>> (a * b).sum().backward()
    [tensor([1.]), tensor([1.])]
    >>> (a * 3).sum().backward()
    [tensor([3.]), None]
    """
    from clew.autograd import _ends

    if mode not in ("all", "any"):
        raise ValueError(
            f"register_multi_grad_hook: expects mode to be one of ('all', 'any') but got {mode}"
        )
    _ends.watch()
    # Hooks name no tensor: one that is held by its own graph's hook would not be freed.
    count, wanted = len(tensors), [i for i, t in enumerate(tensors) if t.requires_grad]
    # By the backward's number; what waits for its end owns the value, so a failed one leaves none.
    running: WeakValueDictionary[int, _GradientsOfOneBackward] = WeakValueDictionary()

    def catch(index: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            number = _ends.running()
            call = running.get(number)
            if call is None:
                call = running[number] = _GradientsOfOneBackward(count, len(wanted))
                _ends.at_end(functools.partial(finish, call), own=True)
            call.got[index] = grad
            call.left -= 1
            if mode == "any" and not call.called:
                call.called = True
                fn(grad)
            elif call.left == 0:
                finish(call)

        return hook

    def finish(call: _GradientsOfOneBackward) -> None:
        if not call.called:
            call.called = True
            fn(call.got)

    handles = [tensors[i].register_hook(catch(i)) for i in wanted]

    class Handle:
        def remove(self) -> None:
            for h in handles:
                h.remove()

        def __enter__(self) -> Handle:
            return self

        def __exit__(self, *exc: object) -> None:
            self.remove()

    return Handle()


def increment_version(tensor: Any) -> None:
    """Tells autograd that the tensor (or tensors) was written by other means.

    Args:
        tensor: a tensor, or several.

    >>> x = clew.ones(1)
    >>> clew.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._bump_version(t)
