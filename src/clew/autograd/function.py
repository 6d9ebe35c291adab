"""Operations whose forward and backward a user writes in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew import _C
from clew._C import Tensor, zeros
from clew.autograd._of_tasks import note_leaf
from clew.autograd._outlines import Outlines, outlines_of
from clew.autograd.grad_mode import no_grad

__all__ = ["Function", "FunctionCtx", "NestedIOFunction", "once_differentiable"]


class FunctionCtx(_C.Node):
    """What forward and backward of a Function share; it is also the grad_fn of the outputs.

    Example:
        >>> from clew.autograd.function import FunctionCtx
        >>> class Square(clew.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx: FunctionCtx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**2
        ...     @staticmethod
        ...     def backward(ctx: FunctionCtx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * grad
        >>> x = clew.tensor([3.0], requires_grad=True)
        >>> Square.apply(x).backward()
        >>> x.grad
        tensor([6.])
    """

    _function: type[Function]
    needs_input_grad: tuple[bool, ...] = ()
    _no_tensors: tuple[int, ...] = ()
    _outlines: Outlines | None = None  # where distributed tensors take part

    if TYPE_CHECKING:  # forward leaves what it likes for backward: ctx.dim = dim

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self) -> None:
        self._to_save: tuple[Any, ...] = ()
        self._to_save_forward: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._materialize = True
        self._in_jvp = False
        # Inside vmap: the saved tensors, batched as they were.
        self._replayed: tuple[Any, ...] | None = None

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors kept by save_for_backward (in ``jvp``: by save_for_forward)."""
        if self._in_jvp:
            return self._to_save_forward or self._to_save
        if self._replayed is not None:
            return self._replayed
        found: tuple[Tensor, ...] = _C.Node.saved_tensors.__get__(self)
        return found if self._outlines is None else self._outlines.saved(found)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for backward, where they are ``ctx.saved_tensors``.

        Args:
            tensors: inputs or outputs of forward, or None.

        Raises:
            TypeError: if one is something else; keep such values as attributes of ctx.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type "
                    f"{type(t).__name__}; keep other "
                    "values as attributes of ctx"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors for ``jvp``, where they are ``ctx.saved_tensors``.

        Args:
            tensors: inputs or outputs of forward, or None.
        """
        self._to_save_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Tells that forward wrote these inputs in place.

        Args:
            args: the inputs.
        """
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Tells that these outputs have no gradient.

        Args:
            args: the outputs.
        """
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Chooses what backward gets for outputs without a gradient.

        Args:
            value: True for zeros (the default), False for None.
        """
        self._materialize = value

    def _is_passed_by(self) -> bool:
        """Whether tangents are looked for that the Function's own rule has given already."""
        from clew.autograd._tangents import open_levels

        return self._function.jvp is not Function.jvp and any(x.sweeping for x in open_levels())

    def _run_backward(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        function = self._function
        if self._outlines is not None:
            grads = self._outlines.gradients(grads)
        if function.vjp is not Function.vjp:
            if function.backward is not Function.backward:
                raise RuntimeError(
                    f"{function.__name__}: Implementing both 'backward' and 'vjp' for a custom "
                    f"Function is not allowed"
                )
            got = function.vjp(self, *grads)
        elif function.backward is Function.backward and self._is_passed_by():
            return (None,) * len(self.needs_input_grad)
        else:
            got = function.backward(self, *grads)
        got = got if isinstance(got, tuple) else (got,)
        n = len(self.needs_input_grad)
        # Surplus Nones at the end are forgiven, as in PyTorch.
        while len(got) > n and got[-1] is None:
            got = got[:-1]
        for i in self._no_tensors if len(got) == n else ():
            if got[i] is not None:
                raise RuntimeError(
                    f"{function.__name__}: backward returned a gradient at position {i + 1}, but "
                    "the argument of forward there is no tensor; return None for it"
                )
        return got if self._outlines is None else self._outlines.parts(got)


class _Metaclass(type):
    """Gives every Function its own context class, named as PyTorch names it."""

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._ctx_class = type(
            f"{name}Backward", (FunctionCtx,), {"_function": cls, "__module__": cls.__module__}
        )


class Function(metaclass=_Metaclass):
    """An operation with its own gradient: subclass it, write ``forward`` and ``backward``, call
    ``apply``.

    ``forward(ctx, *args)`` computes the outputs; or ``forward(*args)`` together with
    ``setup_context(ctx, inputs, output)``.
    ``backward(ctx, *grad_outputs)`` returns a gradient (or None) for each argument of forward.

    >>> class Square(clew.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = clew.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    _ctx_class: type[FunctionCtx]
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__}: a Function is not instantiated; call "
            f"{type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Prepares ctx after a forward that does not take it; what it returns is not used.

        Args:
            ctx: what backward gets too.
            inputs: forward's arguments.
            output: its result.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """Computes the gradients of forward's arguments: ``backward(ctx, *grad_outputs)``."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward "
            "mode AD."
        )

    @staticmethod
    def vjp(*args: Any, **kwargs: Any) -> Any:
        """Another name for backward."""
        raise NotImplementedError("vjp is not implemented.")

    @staticmethod
    def jvp(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs' tangents from the arguments': ``jvp(ctx, *grad_inputs)``; used by
        forward-mode differentiation.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward and records the operation."""
        if _C._vmap_depth() and any(isinstance(a, Tensor) and _C._levels(a) for a in args):
            return cls._apply_batched(args, kwargs)
        ctx = cls._ctx_class()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        ctx._no_tensors = tuple(i for i, a in enumerate(args) if not isinstance(a, Tensor))
        recording = _C.is_grad_enabled() and any(ctx.needs_input_grad)
        separate = cls.setup_context is not Function.setup_context
        pushed = None
        if recording and cls.jvp is not Function.jvp:
            from clew.autograd._tangents import tangents_by_rule, tangents_of_inputs

            pushed = tangents_of_inputs(args)
        trace = _C._trace_running() and _C._trace_begin_call(cls.__name__)
        try:
            with no_grad():
                if separate:
                    output = cls.forward(*args, **kwargs)
                    cls.setup_context(ctx, args, output)
                else:
                    output = cls.forward(ctx, *args, **kwargs)
        finally:
            if trace:
                _C._trace_end(trace)
        outputs = output if isinstance(output, tuple) else (output,)
        if recording:
            _refuse_structured(cls, args, outputs, ctx)
            ctx._outlines = outlines_of(args, outputs, ctx._to_save)
        for o in outputs:
            if not isinstance(o, Tensor) and o is not None and not isinstance(output, tuple):
                raise TypeError(
                    f"{cls.__name__}.forward: expected a Tensor or tuple of Tensors; got "
                    f"{type(o).__name__}"
                )
        tangents = None
        if pushed is not None:
            tangents = tangents_by_rule(cls, ctx, args, outputs, pushed)
        if recording:
            written = {id(t) for t in ctx._dirty}
            inputs = tuple(a if isinstance(a, Tensor) else None for a in args)
            outputs = _C._attach_function(
                ctx,
                f"{cls.__name__}Backward",
                inputs,
                outputs,
                ctx._to_save,
                ctx._dirty,
                ctx._non_differentiable,
                ctx._materialize,
            )
            ctx._to_save = ctx._dirty = ctx._non_differentiable = ()
            if tangents is not None:
                outputs = _with_tangents(outputs, tangents, written)
        else:
            given = {id(a) for a in args if isinstance(a, Tensor)} - {id(t) for t in ctx._dirty}
            outputs = tuple(
                o.view_as(o) if isinstance(o, Tensor) and id(o) in given else o for o in outputs
            )
        return outputs if isinstance(output, tuple) else outputs[0]

    @classmethod
    def _apply_batched(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from clew.autograd import _batched

        return _batched.apply(cls, Function, args, kwargs)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The function for a whole batch, where it is not the one for each sample.

        Without it, forward and backward run as they stand on tensors that stand for a sample.

        Args:
            info: has `batch_size` and `randomness`.
            in_dims: the batch dim of every argument; None where it has none.
            args: the arguments, batched.

        Returns:
            The output and its batch dims.
        """
        raise NotImplementedError("vmap is not implemented.")


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a backward whose result must not be differentiated again; doing so raises.

    Args:
        backward: backward(ctx, *grads), which runs without recording.

    Returns:
        The backward to use in its place.

    >>> class Double(clew.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...
    ...     @staticmethod
    ...     @clew.autograd.function.once_differentiable
    ...     def backward(ctx, g):
    ...         return 2 * g
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        recorded = _C.is_grad_enabled() and any(
            isinstance(g, Tensor) and g.requires_grad for g in grads
        )
        with no_grad():
            got = backward(ctx, *grads)
        if not _C.is_grad_enabled():
            return got
        saved = any(ctx.needs_input_grad)
        if not recorded and not saved:
            return got
        many = got if isinstance(got, tuple) else (got,)
        trigger = zeros((), requires_grad=True)
        marked = tuple(_Twice.apply(g, trigger) if isinstance(g, Tensor) else g for g in many)
        return marked if isinstance(got, tuple) else marked[0]

    return wrapper


def _refuse_structured(cls: Any, args: Any, outputs: Any, ctx: FunctionCtx) -> None:
    """Sparse and ragged tensors have their history in their values, which forward does not see:
    gradients would end here unseen.
    """
    known = {id(t) for t in ctx._non_differentiable}
    given = [a for a in args if hasattr(type(a), "_placeholder") and a.requires_grad]
    made = [o for o in outputs if hasattr(type(o), "_placeholder") and id(o) not in known]
    for t in [*given, *made]:
        raise NotImplementedError(
            f"{cls.__name__}.apply: gradients cannot pass through {t._kind} that a Function takes "
            "or returns; give it .values(), and make the tensor of the values that it returns"
        )


class _Twice(Function):
    """Passes a gradient on; its own backward explains that there is none."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, trigger: Tensor) -> Tensor:
        return g.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


class _Gate(Function):
    """A tensor whose tangent at a level is given, not found: gradients pass, but while that level's
    tangents are looked for they go to a root, a leaf that has the tangent.
    """

    @staticmethod
    def forward(ctx: Any, level: Any, output: Tensor, root: Tensor | None) -> Tensor:
        ctx.level = level
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        if ctx.level.sweeping:
            return None, None, grad if ctx.needs_input_grad[2] else None
        return None, grad if ctx.needs_input_grad[1] else None, None


class _GateOfWritten(_Gate):
    """The same for a tensor that was written into: it stays that tensor."""

    @staticmethod
    def forward(ctx: Any, level: Any, output: Tensor, root: Tensor | None) -> Tensor:
        ctx.level = level
        ctx.mark_dirty(output)
        return output


class _GateOfOther(_Gate):
    """The same as another tensor in the same memory, which may be written into."""

    @staticmethod
    def forward(ctx: Any, level: Any, output: Tensor, root: Tensor | None) -> Tensor:
        ctx.level = level
        return output.detach()


def dual_of(level: Any, gate: type[_Gate], tensor: Tensor, tangent: Tensor | None) -> Tensor:
    """A tensor as one with a tangent at a level.

    Args:
        level: where the tangent counts.
        gate: what the result is to the tensor.
        tensor: the tensor.
        tangent: None: it has none, whatever it was made of.
    """
    root = None
    if tangent is not None:
        root = tensor.detach().requires_grad_()
        note_leaf(root)
        level.roots.append((root, tangent))
    made: Tensor = gate.apply(level, tensor, root)
    if tangent is not None and isinstance(made.grad_fn, gate._ctx_class):
        level.known[made.grad_fn] = tangent
    return made


def _with_tangents(
    outputs: tuple[Any, ...], tangents: tuple[Any, ...], written: set[int]
) -> tuple[Any, ...]:
    """The recorded outputs of a custom Function as dual tensors at the innermost level."""
    from clew.autograd._tangents import open_levels

    return tuple(
        dual_of(open_levels()[-1], _GateOfWritten if id(o) in written else _Gate, o, t)
        if isinstance(o, Tensor) and o.requires_grad
        else o
        for o, t in zip(outputs, tangents)
    )


class NestedIOFunction(Function):
    """Raises NotImplementedError where it is applied: return a flat tuple of tensors from forward.

    Example:
        >>> from clew.autograd.function import NestedIOFunction
        >>> NestedIOFunction.apply([clew.ones(1)])
        Traceback (most recent call last):
        NotImplementedError: NestedIOFunction is not offered; ...
    """

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "NestedIOFunction is not offered; flatten the inputs and outputs of an "
            "autograd.Function"
        )
