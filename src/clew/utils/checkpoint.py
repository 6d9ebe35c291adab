"""Checkpointing: less memory for more time, by computing a part of the graph again in backward.

The form with use_reentrant=False packs every tensor that the function's operations save into an
empty place; the first place that backward looks into runs the function again and fills them all.
The older form runs the function without recording, as one node whose backward runs it again.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import clew
from clew import _C, Tensor
from clew._base.arguments import is_structured
from clew._base.provenance import _LIBRARY, describe, user_level
from clew.autograd import Function
from clew.autograd._backward import chosen
from clew.autograd._kept import in_budget, kept_by_node
from clew.autograd.graph import saved_tensors_hooks
from clew.utils import _second_runs
from clew.utils._selective import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]


class CheckpointError(RuntimeError):
    """The function did something else when it was run again."""


class _Stop(BaseException):
    """Everything that backward needs has been computed; what follows in the function is not."""


_UNSTATED = "checkpoint: state use_reentrant; False is recommended, the default is True as yet"
_early_stop = True
_debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Within the block, chooses whether recomputing ends once everything needed is there.

    Args:
        enable: True is the default; False runs functions to their end.

    Example:
        >>> with clew.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     pass
    """
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Within the block, overrides the `debug` argument of `checkpoint`.

    Args:
        enabled: True or False; None leaves it to the argument.

    Example:
        >>> with clew.utils.checkpoint.set_checkpoint_debug_enabled(True):
        ...     pass
    """
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing.

    Example:
        >>> from clew.utils.checkpoint import noop_context_fn
        >>> len(noop_context_fn())
        2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs with tensors cut off from their graph, keeping `requires_grad`.

    Args:
        inputs: tensors and anything else.

    Example:
        >>> from clew.utils.checkpoint import detach_variable
        >>> detach_variable((clew.ones(1, requires_grad=True), 3))[0].requires_grad
        True
    """
    out = []
    for value in inputs:
        if isinstance(value, Tensor):
            cut = value.detach()
            cut.requires_grad = value.requires_grad
            out.append(cut)
        else:
            out.append(value)
    return tuple(out)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no input needs a gradient, since the parameters would get none either.

    Args:
        inputs: tensors and anything else.

    Example:
        >>> from clew.utils.checkpoint import check_backward_validity
        >>> check_backward_validity([clew.ones(1, requires_grad=True)])
    """
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn(
            "checkpoint: none of the inputs have requires_grad=True; gradients will be None",
            stacklevel=user_level(),
        )


@contextlib.contextmanager
def _rng(state: Any) -> Iterator[None]:
    """Runs the block from an earlier random state, and returns to the present one."""
    if state is None:
        yield
        return
    present = clew.get_rng_state()
    clew.set_rng_state(state)
    try:
        yield
    finally:
        clew.set_rng_state(present)


@contextlib.contextmanager
def _autocast(state: Any) -> Iterator[None]:
    """Runs the block with autocast as it was when the function ran first."""
    present = _C._autocast_state()
    _C._set_autocast(*state)
    _C.autocast_increment_nesting()
    try:
        yield
    finally:
        _C.autocast_decrement_nesting()
        _C._set_autocast(*present)


class CheckpointFunction(Function):
    """The autograd function behind `checkpoint(..., use_reentrant=True)`.

    Example:
        >>> from clew.utils.checkpoint import CheckpointFunction
        >>> x = clew.ones(2, requires_grad=True)
        >>> y = CheckpointFunction.apply(lambda t: t.exp(), True, x)
        >>> y.sum().backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Runs the function without recording it, and keeps its inputs.

        Args:
            ctx: keeps what backward needs.
            run_function: the function.
            preserve_rng_state: whether backward draws the same random numbers.
            args: the function's arguments.

        Returns:
            What the function returns.
        """
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.around = _second_runs.present()
        ctx.rng_state = clew.get_rng_state() if preserve_rng_state else None
        ctx.autocast_state = _C._autocast_state()
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with clew.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Runs the function again, recording it, and goes back through it.

        Args:
            ctx: what `forward` kept.
            grads: the gradients of the function's outputs.

        Returns:
            The gradients of forward's arguments; None for the function and the random state.
        """
        if chosen.depth:
            raise RuntimeError(
                "checkpoint: use_reentrant=True is incompatible with autograd.grad() and with "
                "inputs= of backward(): it would fill the .grad of other leaves; pass "
                "use_reentrant=False"
            )
        args = list(ctx.others)
        for i, tensor in zip(ctx.places, ctx.saved_tensors):
            args[i] = tensor
        inputs = detach_variable(tuple(args))
        # Under saved-tensor hooks the kept tensors themselves do not say it.
        for x, needed in zip(inputs, ctx.needs_input_grad[2:]):
            if needed:
                x.requires_grad_()
        with _second_runs.entered(ctx.around):
            with _rng(ctx.rng_state), _autocast(ctx.autocast_state), clew.enable_grad(), _noted():
                outputs = ctx.run_function(*inputs)
            if isinstance(outputs, Tensor):
                outputs = (outputs,)
            pairs = [
                (out, grad)
                for out, grad in zip(outputs, grads)
                if isinstance(out, Tensor) and out.requires_grad
            ]
            if not pairs:
                raise RuntimeError(
                    "checkpoint: none of the outputs have requires_grad=True, this checkpoint() is "
                    "not necessary"
                )
            clew.autograd.backward([out for out, _ in pairs], [grad for _, grad in pairs])
        found = tuple(x.grad if isinstance(x, Tensor) else None for x in inputs)
        return (None, None, *found)


class _SaveInputs(Function):
    """Keeps tensors as saved tensors of a node, so that an outer checkpoint may drop them too."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return clew.empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("internal error in clew, please report it: _SaveInputs.backward")


class _Place:
    """Where a saved tensor would be."""

    __slots__ = ("__weakref__", "index")

    def __init__(self, index: int) -> None:
        self.index = index


class _Frame:
    """One call of a checkpointed function: what it saved, and how to run it again."""

    def __init__(
        self,
        run: Callable[[], Any],
        early_stop: bool,
        check: Callable[[Tensor], Any] | None,
        debug: bool,
    ) -> None:
        self.run = run
        self.early_stop = early_stop
        self.check = check
        self.debug = debug
        self.places: list[weakref.ref[_Place]] = []
        self.facts: list[Any] = []
        self.traces: list[str] = []
        self.found: dict[int, Callable[[], Tensor]] = {}
        self.depth = _C._vmap_depth()
        self.returned = False  # the first run

    def _trace(self) -> str:
        # The library's frames would crowd out the program's where modules lie in modules.
        frames = [f for f in traceback.extract_stack() if not f.filename.startswith(_LIBRARY)]
        return "".join(traceback.format_list(frames[-12:]))

    def pack(self, tensor: Tensor) -> _Place:
        """A tensor saved by the first run: forget it."""
        place = _Place(len(self.places))
        self.places.append(weakref.ref(place))
        if self.check is not None:
            self.facts.append(self.check(tensor))
        if self.debug:
            self.traces.append(self._trace())
        if _second_runs.watched.saved is not None:
            _second_runs.watched.saved.append(tensor)
        return place

    def unpack(self, place: _Place) -> Tensor:
        """The tensor of a place: from the second run, which happens now if it must."""
        if place.index not in self.found:
            if _C._vmap_depth() > self.depth:
                # A derivative inside of a vmap inside of the function, which has not returned yet.
                # The second run must not find that vmap open; a thread has none.
                _in_a_thread(self._recompute)
            else:
                self._recompute()
        # Given out once and forgotten: a second backward runs the function again.
        return self.found.pop(place.index)()

    def _recompute(self) -> None:
        again = _SecondRun(self)
        try:
            with saved_tensors_hooks(again.pack, _given), _noted():
                self.run()
        except _Stop:
            pass
        facts, count = again.facts, len(self.places)
        # A derivative inside of the function runs it again before it has saved everything.
        if len(facts) < count or (self.returned and len(facts) > count):
            raise CheckpointError(
                "checkpoint: the function must do the same when it is run again for backward; it "
                f"saved {count} tensors at first and {len(facts)} now"
                + self._traces(None, again.traces)
            )
        for i, (before, now) in enumerate(zip(self.facts, facts)):
            if before != now:
                raise CheckpointError(
                    "checkpoint: the function must do the same when it is run again for backward; "
                    f"saved tensor {i} was {before} at first and is {now} now"
                    + self._traces(i, again.traces)
                )
        for tensor, version, saver in again.saved:
            if tensor._version != version:
                raise RuntimeError(_written_text(tensor, version, saver))
        self.found = again.found

    def _traces(self, index: int | None, again: list[str]) -> str:
        if not self.debug:
            return "; pass debug=True to see where"
        if index is None:
            index = min(len(again), len(self.traces)) - 1
        text = ""
        for name, list_ in (("first run", self.traces), ("second run", again)):
            if 0 <= index < len(list_):
                text += f"\n\n{name}, saved tensor {index}:\n{list_[index]}"
        return text


def _given(kept: Callable[[], Tensor]) -> Tensor:
    return kept()


@contextlib.contextmanager
def _noted() -> Iterator[None]:
    """A memory budget may give up what is made in this context, though backward runs."""
    before = _C._note_second_run(True)
    try:
        yield
    finally:
        _C._note_second_run(before)


class _SecondRun:
    """What a checkpointed function saves when it is run again."""

    def __init__(self, frame: _Frame) -> None:
        self.frame = frame
        self.found: dict[int, Callable[[], Tensor]] = {}
        self.saved: list[tuple[Tensor, int, Any]] = []  # those, their versions and places
        self.facts: list[Any] = []
        self.traces: list[str] = []
        self.in_budget = in_budget()

    def pack(self, tensor: Tensor) -> Callable[[], Tensor]:
        """A tensor saved by the second run: keep it if its place is still there."""
        frame, index = self.frame, len(self.facts)
        cut = tensor.detach()
        self.facts.append(frame.check(cut) if frame.check is not None else None)
        if frame.debug:
            self.traces.append(frame._trace())
        kept = kept_by_node(cut) if self.in_budget else lambda: cut
        if index < len(frame.places) and frame.places[index]() is not None:
            self.found[index] = kept
            if not self.in_budget:  # a node sees writes when it gives out what it saved
                self.saved.append((cut, cut._version, _C._here()))
        if frame.early_stop and index + 1 == len(frame.places):
            raise _Stop
        return kept


def _in_a_thread(function: Callable[[], None]) -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="clew-checkpoint")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def _written_text(tensor: Tensor, version: int, saver: Any) -> str:
    text = (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: {_facts_of(tensor)}, which was saved when checkpoint ran the function again, "
        f"is at version {tensor._version}; expected version {version} instead"
    )
    for verb, place in (("saved", saver), ("written", _C._place_of_write(tensor))):
        if place is not None:
            text += f"\n  {verb} at {describe(place[0], place[1], place[2] or '', place[3] or '')}"
    return text + ("\n  write into a clone() of it, or use the out-of-place form of the operation")


def _needing(tensor: Tensor, need: bool) -> Tensor:
    """An input of the second run, which must need a gradient if it did in the first."""
    return tensor if tensor.requires_grad == need else tensor.detach().requires_grad_(need)


def _facts_of(tensor: Tensor) -> Any:
    return f"{tensor.dtype}{list(tensor.shape)} on {tensor.device}"


_CHECKS: dict[str, Callable[[Tensor], Any] | None] = {"default": _facts_of, "none": None}


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Runs a function without keeping what its backward needs; backward runs it again.

    Args:
        function: what to run; it must do the same every time it is given the same.
        args: its arguments.
        use_reentrant: False is recommended (any structure of arguments, keyword arguments,
            `autograd.grad`, nesting); True is the older form, of one node.
        context_fn: makes two contexts, one for the first run and one for the second.
        determinism_check: "default" compares shape, dtype and device of what the two runs save;
            "none" does not.
        debug: when the two runs differ, show where they saved the tensors in question.
        early_stop: end the second run once everything needed is there.
        kwargs: the function's keyword arguments; `preserve_rng_state=True` runs it again with the
            random numbers of the first time.

    Returns:
        What the function returned.

    Example:
        >>> from clew.utils.checkpoint import checkpoint
        >>> x = clew.ones(2, requires_grad=True)
        >>> checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum().backward()
        >>> x.grad
        tensor([1.2534, 1.2534])
    """
    if use_reentrant is None:
        warnings.warn(_UNSTATED, stacklevel=user_level())
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError(
                f"checkpoint: unexpected keyword arguments {sorted(kwargs)}; they need "
                "use_reentrant=False"
            )
        if context_fn is not noop_context_fn or debug:
            raise ValueError("checkpoint: context_fn and debug need use_reentrant=False")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in _CHECKS:
        raise ValueError(
            f"checkpoint: determinism_check must be one of {sorted(_CHECKS)}; "
            f"got {determinism_check!r}"
        )
    forward_context, recompute_context = context_fn()
    if not clew.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)

    rng_state = clew.get_rng_state() if preserve else None
    autocast_state, around = _C._autocast_state(), _second_runs.present()
    # The tensors among the inputs are kept as saved tensors of a node of their own: within an
    # outer checkpoint they are then forgotten and computed again like all others.
    tensors: list[Any] = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    needs = [x.requires_grad for x in tensors]
    anchor = clew.empty(0, requires_grad=True)
    # Of sparse and ragged tensors it keeps the values.
    frames = [x._frame() if is_structured(x) else None for x in tensors]
    values = [x if f is None else x._elements for x, f in zip(tensors, frames)]
    keeper = _SaveInputs.apply(anchor, *values)
    others = [None if isinstance(x, Tensor) else x for x in args]
    other_kwargs = {k: None if isinstance(x, Tensor) else x for k, x in kwargs.items()}
    places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
    names = [k for k, x in kwargs.items() if isinstance(x, Tensor)]

    def run() -> None:
        again, again_kwargs = list(others), dict(other_kwargs)
        kept = [
            _needing(t if f is None else f._with(t), n)
            for t, f, n in zip(keeper.grad_fn.saved_tensors, frames, needs)
        ]
        for i, tensor in zip(places, kept):
            again[i] = tensor
        for name, tensor in zip(names, kept[len(places) :]):
            again_kwargs[name] = tensor
        with (
            _second_runs.entered(around),
            _rng(rng_state),
            _autocast(autocast_state),
            recompute_context,
            clew.enable_grad(),
        ):
            function(*again, **again_kwargs)

    frame = _Frame(
        run,
        early_stop and _early_stop,
        _CHECKS[determinism_check],
        debug if _debug is None else _debug,
    )
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        made = function(*args, **kwargs)
    frame.returned = True
    return made


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Runs modules one after the other in checkpointed segments; the last is kept as usual.

    Args:
        functions: an `nn.Sequential` or a list of functions of one argument.
        segments: how many.
        input: what the first gets.
        use_reentrant: as for `checkpoint`.
        kwargs: `preserve_rng_state`.

    Returns:
        What the last function returned.

    Example:
        >>> from clew.utils.checkpoint import checkpoint_sequential
        >>> x = clew.ones(1, requires_grad=True)
        >>> checkpoint_sequential([clew.sin, clew.cos, clew.exp], 2, x, use_reentrant=False).shape
        clew.Size([1])
    """
    if use_reentrant is None:
        warnings.warn(_UNSTATED, stacklevel=user_level())
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(f"checkpoint_sequential: unexpected keyword arguments {sorted(kwargs)}")
    layers: Sequence[Any] = list(
        functions.children() if hasattr(functions, "children") else functions
    )
    if not 1 <= segments <= max(1, len(layers)):
        raise ValueError(
            f"checkpoint_sequential: segments must be between 1 and {len(layers)}; got {segments}"
        )
    size = len(layers) // segments

    def runner(begin: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for layer in layers[begin:end]:
                value = layer(value)
            return value

        return run

    for begin in range(0, size * (segments - 1), size):
        input = checkpoint(
            runner(begin, begin + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return runner(size * (segments - 1), len(layers))(input)


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The random states of the devices that tensors are on, besides the CPU: none.

    Args:
        args: the tensors.
    """
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: Any = None) -> None:
    """Sets the random states of devices.

    Args:
        devices: the devices: none.
        states: the states: none.
        device_type: accepted.
    """
    if list(states):
        raise RuntimeError("set_device_states: there is no device but the CPU")


class DefaultDeviceType:
    """The kind of device that a checkpoint keeps random states of, where tensors do not say."""

    _default = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Chooses it."""
        DefaultDeviceType._default = device

    @staticmethod
    def get_device_type() -> str:
        """The kind."""
        return DefaultDeviceType._default
