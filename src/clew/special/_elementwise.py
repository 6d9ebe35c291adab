"""How a function of numbers becomes an operation on tensors: promotion, broadcasting, out=."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew import _C
from clew._base.autocast import fit
from clew._base.overriding import asks_classes
from clew._base.sizes import broadcast_sizes
from clew._C import Tensor
from clew._ops.primitive import Context, broadcast_batch, in_memory_order, primitive, write_out

__all__ = ["COMPUTED", "elementwise", "evaluate", "unary"]

COMPUTED = (_C.float32, _C.float64)  # the dtypes that the functions are computed in


def elementwise(
    name: str,
    kernel: Callable[..., Any] | None,
    gradient: Callable[..., Any],
    native: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A primitive that is about single elements: tensors of one shape and dtype, float32 or
    float64, to one of the same.

    Args:
        name: what the graph shows, in CamelCase.
        kernel: a function of NumPy arrays and attributes.
        gradient, native: as for primitive().
    """

    def shapes(first: Tensor, *others: Tensor, **attrs: Any) -> Any:
        return [(first.shape, first.dtype)]

    return primitive(name, shapes=shapes, kernel=kernel, gradient=gradient, native=native)


def as_they_are(x: Any, y: Any) -> tuple[Tensor, Tensor] | None:
    """Two arguments as evaluate() would hand them to its function, with nothing left to do after
    it, so that the core's operation can have them; None where evaluate() has more to do.

    Args:
        x, y: tensors, or one of them a number.
    """
    if type(y) is int or type(y) is float:
        return (x, _filled(y, x)) if _C._plain(x) and _in_order(x) else None
    if type(x) is int or type(x) is float:
        return (_filled(x, y), y) if _C._plain(y) and _in_order(y) else None
    if not (_C._plain(x, y) and _in_order(x)):
        return None
    if fit(x, y) and not y.is_meta:
        return x, y
    if x.dtype is not y.dtype or not _in_order(y):
        return None
    sizes = broadcast_sizes((x.shape, y.shape))
    return (x.expand(*sizes), y.expand(*sizes)) if sizes else None


def _in_order(t: Tensor) -> bool:
    return t.dtype in COMPUTED and t.is_contiguous() and not t.is_meta


def _filled(number: float, like: Tensor) -> Tensor:
    return _C.tensor(number, dtype=like.dtype, device="cpu").expand(like.shape)


def evaluate(
    name: str,
    function: Callable[..., Tensor],
    *arguments: Any,
    out: Tensor | None = None,
    numbers: bool = True,
    records: bool = True,
    **attrs: Any,
) -> Tensor:
    """The function of tensors, or numbers, of any real dtype: they are promoted and broadcast;
    integers become the default dtype, half precision is computed in single.

    PyTorch has no derivative of most of these functions, so ``out`` is written although an input
    requires grad; not with records=False.

    Raises:
        TypeError: an argument is neither a tensor nor a number, or none is a tensor.
        NotImplementedError: an argument is complex.
    """
    tensors = [a for a in arguments if isinstance(a, Tensor)]
    if len(tensors) < len(arguments):
        _check_arguments(name, tensors, arguments, numbers)
    dtype = tensors[0].dtype if len(arguments) == 1 else _C._result_type(*arguments)
    working = dtype
    if dtype not in COMPUTED:
        if dtype.is_complex:
            raise NotImplementedError(f"special.{name}: is not implemented for {dtype.name}")
        if not dtype.is_floating_point:
            dtype = working = _C.get_default_dtype()
        if dtype in (_C.float16, _C.bfloat16):
            working = _C.float32
    device = tensors[0].device
    if len(tensors) > 1 and any(t.device != device for t in tensors):
        raise RuntimeError(
            f"special.{name}: expected all tensors to be on one device; got "
            f"{', '.join(str(t.device) for t in tensors)}"
        )
    if len(tensors) < len(arguments):
        tensors = [
            a if isinstance(a, Tensor) else _C.tensor(a, dtype=working, device=device)
            for a in arguments
        ]
    given: Sequence[Tensor] = [t if t.dtype is working else t.to(working) for t in tensors]
    if len(given) > 1:
        given = broadcast_batch(f"special.{name}", *given, core=(0,) * len(given))
    result = in_memory_order(function, *given, **attrs)
    made = result if dtype is working else result.to(dtype)
    if out is None:
        return made
    return write_out(f"special.{name}", made, out, converts=True, records=records)


def _check_arguments(
    name: str, tensors: Sequence[Tensor], arguments: Sequence[Any], numbers: bool
) -> None:
    for position, a in enumerate(arguments, start=1):
        if not isinstance(a, Tensor) and not (
            numbers and tensors and isinstance(a, (bool, int, float, complex))
        ):
            kinds = "Tensor or number" if numbers and len(arguments) > 1 else "Tensor"
            raise TypeError(
                f"special.{name}(): argument {position} must be {kinds}, not {type(a).__name__}"
                f"{'' if tensors else '; at least one must be a Tensor'}"
            )


def unary(
    module: str,
    name: str,
    doc: str,
    function: Callable[..., Tensor],
    argument: str,
    core: Callable[[Tensor], Tensor] | None = None,
    **attrs: Any,
) -> Callable[..., Tensor]:
    """The public function ``name(input, *, out=None)``, or ``name(x, *, out=None)``: PyTorch calls
    the argument either.

    Args:
        module, name, doc: of the public function.
        function: what evaluate() takes.
        argument: what the argument is called.
        core: the core's operation, for a call that needs nothing else.
        attrs: what function gets besides.
    """

    def of_input(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if core and out is None and _C._plain(input) and input.dtype in COMPUTED:
            return core(input)
        return evaluate(name, function, input, out=out, **attrs)

    def of_x(x: Tensor, *, out: Tensor | None = None) -> Tensor:
        if core and out is None and _C._plain(x) and x.dtype in COMPUTED:
            return core(x)
        return evaluate(name, function, x, out=out, **attrs)

    return published(of_x if argument == "x" else of_input, module, name, doc)


def published(call: Callable[..., Any], module: str, name: str, doc: str) -> Callable[..., Any]:
    """The function with its name and documentation."""
    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__doc__ = doc
    return asks_classes(call)


def only_in(c: Context, index: int, what: str) -> None:
    """Raises where a gradient is wanted of another input than that one."""
    for k, wanted in enumerate(c.needs):
        if wanted and k != index:
            raise NotImplementedError(f"the derivative for '{what}' is not implemented.")
