"""How a function of numbers becomes an operation on tensors: promotion, broadcasting, out=."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import _C
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew._ops.primitive import Context, broadcast_batch, in_memory_order, primitive, write_out

__all__ = ["elementwise", "evaluate", "unary"]


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


def evaluate(
    name: str,
    function: Callable[..., Tensor],
    *arguments: Any,
    out: Tensor | None = None,
    numbers: bool = True,
    **attrs: Any,
) -> Tensor:
    """The function of tensors, or numbers, of any real dtype: they are promoted and broadcast;
    integers become the default dtype, half precision is computed in single.

    Raises:
        TypeError: an argument is neither a tensor nor a number, or none is a tensor.
        NotImplementedError: an argument is complex.
    """
    tensors = [a for a in arguments if isinstance(a, Tensor)]
    for position, a in enumerate(arguments, start=1):
        if not isinstance(a, Tensor) and not (
            numbers and tensors and isinstance(a, (bool, int, float, complex))
        ):
            kinds = "Tensor or number" if numbers and len(arguments) > 1 else "Tensor"
            raise TypeError(
                f"special.{name}(): argument {position} must be {kinds}, not {type(a).__name__}"
                f"{'' if tensors else '; at least one must be a Tensor'}"
            )
    dtype = tensors[0].dtype if len(arguments) == 1 else _C._result_type(*arguments)
    if dtype.is_complex:
        raise NotImplementedError(f"special.{name}: is not implemented for {dtype.name}")
    if not dtype.is_floating_point:
        dtype = _C.get_default_dtype()
    half = dtype in (_C.float16, _C.bfloat16)
    working = _C.float32 if half else dtype
    device = tensors[0].device
    if any(t.device != device for t in tensors):
        raise RuntimeError(
            f"special.{name}: expected all tensors to be on one device; got "
            f"{', '.join(str(t.device) for t in tensors)}"
        )
    given = [
        a.to(working) if isinstance(a, Tensor) else _C.tensor(a, dtype=working, device=device)
        for a in arguments
    ]
    given = list(broadcast_batch(f"special.{name}", *given, core=(0,) * len(given)))
    result = in_memory_order(function, *given, **attrs)
    made = result.to(dtype) if half else result
    return write_out(f"special.{name}", made, out, converts=True)


def unary(
    module: str, name: str, doc: str, function: Callable[..., Tensor], argument: str, **attrs: Any
) -> Callable[..., Tensor]:
    """The public function ``name(input, *, out=None)``, or ``name(x, *, out=None)``: PyTorch calls
    the argument either.
    """

    def of_input(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        return evaluate(name, function, input, out=out, **attrs)

    def of_x(x: Tensor, *, out: Tensor | None = None) -> Tensor:
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
