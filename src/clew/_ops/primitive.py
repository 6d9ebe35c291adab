"""Operations whose kernel is a NumPy (or SciPy) function: shape rule, kernel and gradient in one
declaration. What `OpDef` is to the native core, `primitive` is to rare operations.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from clew import _C
from clew._base.out import write_out
from clew._base.sizes import broadcast_sizes
from clew._C import Tensor
from clew.autograd.function import Function, FunctionCtx
from clew.utils._pytree import tree_flatten, tree_unflatten

__all__ = [
    "Context",
    "broadcast_batch",
    "in_memory_order",
    "loops_in_vmap",
    "primitive",
    "scipy",
    "write_out",
]

_disabled_torch_function_impl = vars(_C)["_disabled_torch_function_impl"]

# From this many elements on a kernel's result becomes a tensor without a copy where that is safe.
_LARGE = 1 << 14

F = TypeVar("F", bound=Callable[..., Any])


class _Dtypes(dict[_C.dtype, Any]):
    """NumPy's dtypes of ours."""

    def __missing__(self, dtype: _C.dtype) -> Any:
        found = self[dtype] = np.dtype(dtype.name)
        return found


_NUMPY_DTYPES = _Dtypes()

Spec = tuple[Sequence[int], _C.dtype]  # shape and dtype of one output


class Context:
    """What a gradient rule of a primitive sees.

    Attributes:
        inputs: the tensor arguments.
        outputs: the results.
        attrs: the other arguments, by name.
        needs: for each input, whether its gradient is wanted.
    """

    def __init__(
        self,
        inputs: tuple[Tensor, ...],
        outputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        needs: tuple[bool, ...],
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.attrs = attrs
        self.needs = needs


class _Primitive(Function):
    """The recorded form; every primitive has a subclass of its own with these attributes."""

    kernel: Callable[..., Any]
    shapes: Callable[..., list[Spec]]
    gradient: Callable[..., Any] | None
    native: Callable[..., Any] | None
    constant_outputs: tuple[int, ...] = ()

    @classmethod
    def _run(
        cls, inputs: tuple[Tensor, ...], attrs: dict[str, Any], *, tried: bool = False
    ) -> tuple[Tensor, ...]:
        # tried: the native form gave nothing.
        specs = cls.shapes(*inputs, **attrs)
        for t in inputs:
            if t.is_meta:
                return tuple(
                    Tensor.new_empty(inputs[0], tuple(shape), dtype=dtype, device="meta")
                    for shape, dtype in specs
                )
        if cls.native is not None and not tried:
            made = cls.native(*inputs, **attrs)
            if made is not None:
                return tuple(made)
        arguments = [t.detach().numpy() if t.requires_grad else t.numpy() for t in inputs]
        with np.errstate(all="ignore"):  # infinities and nans are results, not warnings
            got = cls.kernel(*arguments, **attrs)
        arrays = got if isinstance(got, tuple) else (got,)
        owned: list[np.ndarray] = []
        outputs = []
        for array, (shape, dtype) in zip(arrays, specs, strict=True):
            array = np.asarray(array, dtype=_NUMPY_DTYPES[dtype])
            if array.shape != tuple(shape):
                raise RuntimeError(
                    f"internal error: {cls.__name__}: the kernel gave {array.shape}, the shape "
                    f"rule {tuple(shape)}; please report it"
                )
            outputs.append(_tensor_of(array, owned))
        return tuple(outputs)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        for t in args:
            kind = type(t)
            if kind is not Tensor and kind.__torch_function__ is not _disabled_torch_function_impl:
                from clew._base.overriding import handle_torch_function, has_torch_function

                if has_torch_function(args):
                    return handle_torch_function(cls.apply, args, *args, **kwargs)
                break
        if _C._vmap_depth() or _C._trace_running():
            return super().apply(*args, **kwargs)
        if _C.is_grad_enabled():
            for t in args:
                if t.requires_grad:
                    return super().apply(*args, **kwargs)
        # Nothing is recorded: no context is needed.
        return cls._run(args, kwargs)

    @classmethod
    def _apply_batched(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        levels = 0
        for t in args:
            levels |= _C._levels(t)
        shown = [_C._show_levels(t, levels) for t in args]
        outputs = cls.apply(*shown, **kwargs)
        return tuple(_C._hide_levels(o, levels) for o in outputs)

    @staticmethod
    def forward(ctx: FunctionCtx, *inputs: Any, **attrs: Any) -> tuple[Tensor, ...]:
        cls = ctx._function
        assert issubclass(cls, _Primitive)
        outputs = cls._run(inputs, attrs)
        ctx.attrs = attrs
        ctx.arity = len(inputs)
        ctx.save_for_backward(*inputs, *outputs)
        ctx.mark_non_differentiable(
            *(
                o
                for k, o in enumerate(outputs)
                if k in cls.constant_outputs or not (o.is_floating_point() or o.is_complex())
            )
        )
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        rule = ctx._function.gradient
        if rule is None:
            raise NotImplementedError(
                f"{ctx._function.__name__}: the derivative is not implemented"
            )
        if all(g is None for g in grads):
            return (None,) * ctx.arity
        kept = ctx.saved_tensors
        context = Context(
            kept[: ctx.arity], kept[ctx.arity :], ctx.attrs, ctx.needs_input_grad[: ctx.arity]
        )
        got = rule(context, *grads)
        return got if isinstance(got, tuple) else (got,)


def _tensor_of(array: np.ndarray, owned: list[np.ndarray]) -> Tensor:
    """A contiguous tensor with memory of its own: the array's, if nobody else has it.

    Args:
        array: what a kernel returned. It may be an input, read-only, or part of another array.
        owned: the memory that is a tensor's by now.
    """
    if array.size < _LARGE:
        return _C.from_numpy(np.array(array, order="C"))
    memory = array if array.base is None else array.base
    whole = isinstance(memory, np.ndarray) and memory.base is None and memory.size == array.size
    if not whole or not array.flags.writeable:
        return _C.from_numpy(np.array(array, order="C"))
    assert isinstance(memory, np.ndarray)
    if not array.flags.c_contiguous:
        if min(array.strides) < 0:
            array = np.array(array, order="C")
        return _C.from_numpy(array).contiguous()  # on all threads
    if not memory.flags.owndata or any(memory is o for o in owned):
        return _C.from_numpy(array).clone()
    owned.append(memory)
    return _C.from_numpy(array)


def primitive(
    name: str,
    *,
    shapes: Callable[..., list[Spec]],
    kernel: Callable[..., Any] | None,
    gradient: Callable[..., Any] | None,
    native: Callable[..., Any] | None = None,
    constant_outputs: tuple[int, ...] = (),
) -> Callable[..., Any]:
    """Makes a differentiable, meta- and vmap-capable operation of a NumPy function.

    The operation is about trailing dims: all inputs have the same dims before those (see
    broadcast_batch), and so has every output, which is how vmap runs all samples at once.

    Args:
        name: what the graph shows, in CamelCase ("Cholesky" gives CholeskyBackward).
        shapes: the shape rule: tensors and attributes to a list of (shape, dtype), one for each
            output. It checks the arguments.
        kernel: NumPy arrays (in the tensors' dtypes) and attributes to an array or a tuple of
            arrays; None where there is always a native one.
        gradient: ``rule(c, *grads)``: a gradient or None for every input, made with clew's own
            operations; a grad is None where nothing flowed into that output. None: there is no
            derivative.
        native: the kernel in the core, where it is present: of tensors and attributes, to a tuple
            of tensors. None, or where it gives None: ``kernel`` it is.
        constant_outputs: outputs without a derivative.

    Returns:
        A function of tensors (positional) and attributes (by name); a tensor, or a tuple of them
        when the shape rule lists several.
    """
    cls = type(
        name,
        (_Primitive,),
        {
            "kernel": staticmethod(kernel) if kernel else None,
            "shapes": staticmethod(shapes),
            "gradient": staticmethod(gradient) if gradient else None,
            "native": staticmethod(native) if native else None,
            "constant_outputs": constant_outputs,
            "__module__": shapes.__module__,
        },
    )

    def call(*inputs: Tensor, **attrs: Any) -> Any:
        if _C._plain(*inputs):
            outputs = native(*inputs, **attrs) if native is not None else None
            if outputs is None:
                outputs = cls._run(inputs, attrs, tried=True)  # type: ignore[attr-defined]
            return outputs[0] if len(outputs) == 1 else outputs
        for t in inputs:
            if not isinstance(t, Tensor):
                raise TypeError(f"{name}(): expected Tensors; got {type(t).__name__}")
        outputs = cls.apply(*inputs, **attrs)  # type: ignore[attr-defined]
        return outputs[0] if len(outputs) == 1 else outputs

    call.__name__ = call.__qualname__ = name
    return call


def broadcast_batch(name: str, *tensors: Tensor, core: Sequence[int]) -> tuple[Tensor, ...]:
    """The tensors with their batch dims (all but the last ``core[i]``) broadcast to one shape.

    Raises:
        RuntimeError: the batch dims do not broadcast.
    """
    for t, c in zip(tensors, core):
        if t.ndim != c:
            break
    else:
        return tensors  # no batch dims
    batches = [t.shape[:-c] if c else t.shape for t, c in zip(tensors, core)]
    first = batches[0]
    for b in batches:
        if b != first:
            break
    else:
        return tensors
    batch = broadcast_sizes(batches)
    if batch is None:
        raise RuntimeError(
            f"{name}: the batch dimensions do not broadcast; got shapes "
            f"{', '.join(str(list(t.shape)) for t in tensors)}"
        )
    return tuple(
        t.expand(*batch, *t.shape[-c:]) if c else t.expand(batch) for t, c in zip(tensors, core)
    )


def in_memory_order(function: Callable[..., Any], *tensors: Tensor, **attrs: Any) -> Any:
    """What an elementwise function makes of tensors of one shape: a tensor or a tuple of tensors,
    whose dims lie in memory in the order of those of the first tensor that is not expanded, or in
    their own order where there is none. So the core's elementwise operations have it.
    """
    for whole in tensors:
        if whole.is_contiguous():
            return function(*tensors, **attrs)
        strides = whole.stride()
        if 0 not in strides:
            break
    else:
        return function(*tensors, **attrs)
    order = sorted(range(len(strides)), key=strides.__getitem__, reverse=True)
    back = sorted(range(len(order)), key=order.__getitem__)
    made = function(*(t.permute(order) for t in tensors), **attrs)
    return tuple(t.permute(back) for t in made) if isinstance(made, tuple) else made.permute(back)


class _Underived(Function):
    """Results of an operation without a derivative: a gradient that reaches them is refused."""

    @staticmethod
    def forward(ctx: Any, name: str, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.name = name
        return tuple(t.detach() for t in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(
            f"{ctx.name}: the derivative is not implemented; call it on x.detach() where no "
            "gradient is meant to flow"
        )


def without_derivative(name: str, made: Sequence[Tensor], *inputs: Any) -> Sequence[Tensor]:
    """What an operation without a derivative made, requiring a gradient where an input does, so
    that backward() says what is missing instead of leaving it out.
    """
    if not _C.is_grad_enabled():
        return made
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        return made
    given: Sequence[Tensor] = _Underived.apply(name, len(made), *made, *wanted)
    return given


def loops_in_vmap(function: F) -> F:
    """For a function that looks at values: inside vmap it runs sample by sample."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not _C._vmap_depth():
            return function(*args, **kwargs)
        leaves, spec = tree_flatten((args, kwargs))
        levels = 0
        for x in leaves:
            levels |= _C._levels(x) if isinstance(x, Tensor) else 0
        if not levels:
            return function(*args, **kwargs)
        lead = tuple(n for i, n in enumerate(_C._vmap_sizes()) if levels >> i & 1)
        shown = [
            _C._show_levels(x, levels) if isinstance(x, Tensor) and _C._levels(x) else None
            for x in leaves
        ]
        rows = []
        out_spec = None
        for index in np.ndindex(*lead):
            sample = [x if s is None else s[index] for x, s in zip(leaves, shown)]
            given, named = tree_unflatten(sample, spec)
            row, out_spec = tree_flatten(function(*given, **named))
            rows.append(row)
        if out_spec is None:
            raise RuntimeError(f"vmap: {function.__name__} cannot be mapped over no samples")
        stack = _C.functions["stack"]
        whole = [stack(c).reshape(*lead, *c[0].shape) for c in zip(*rows)]
        return tree_unflatten([_C._hide_levels(w, levels) for w in whole], out_spec)

    return cast(F, wrapper)


_scipy: dict[str, Any] = {}


def scipy(module: str, what: str) -> Any:
    """A module of SciPy, loaded when first needed.

    Raises:
        ImportError: SciPy is not installed.
    """
    # A lookup, where importlib takes microseconds. sys.modules also has what another thread is
    # still importing.
    loaded = _scipy.get(module)
    if loaded is not None:
        return loaded
    try:
        found = _scipy[module] = importlib.import_module(f"scipy.{module}")
        return found
    except ImportError as e:
        raise ImportError(f"{what} needs SciPy: pip install scipy") from e
