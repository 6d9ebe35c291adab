"""How many floating-point operations an op takes, from the shapes of its tensors.

A multiplication and an addition count as one each, so a product of (n, k) and (k, m) takes
2 * n * k * m, as in PyTorch; additions of a bias are left out there, as PyTorch leaves them out.
An elementwise op counts one for each element it makes, whatever its function; views and copies
count nothing. What no formula is known for gives None.

The formulas stand in the declarations of the ops, as expressions such as
"2 * numel(result) * weight[-1]". Their names are

- the parameters of the op's signature: a tensor's is its shape, or None where it was not given;
  another argument's is its value;
- `results`, the shapes of all results, and `result`, the first of them;
- the functions of this module in `_FUNCTIONS`;
- in a gradient rule's, `flops`, the count of the forward call, and `wanted(input, other)`, how many
  of these inputs want a gradient (`wanted()`: of all).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from clew import _C
from clew._ops.signatures import Parameter, parse

__all__ = ["backward_flops", "flops", "is_product"]

Shape = Sequence[int]


def numel(shape: Shape) -> int:
    """The number of elements."""
    return prod(shape)


def given(shape: Shape | None) -> bool:
    """Whether the tensor is there."""
    return shape is not None


def window(places: Shape, kernel_size: int | Sequence[int]) -> int:
    """The elements of a pooling window that is laid on places (batch, channels, spatial...)."""
    if isinstance(kernel_size, Sequence):
        return prod(kernel_size)
    return int(kernel_size) ** (len(places) - 2 if len(places) > 2 else 1)


# Arithmetic of one hidden unit, by the number of gates: sums, activations, the new state.
_GATE_WORK = {4: 13, 3: 10, 1: 2}


def _recurrent_parts(w_hh: Shape, w_hr: Shape | None) -> tuple[int, int]:
    """Weights of the state's products, and the gates' arithmetic, for one row."""
    hidden = int(w_hr[1] if w_hr is not None else w_hh[1])
    weights = prod(w_hh) + (prod(w_hr) if w_hr is not None else 0)
    return weights, _GATE_WORK[int(w_hh[0]) // hidden] * hidden


def recurrent(input: Shape, w_ih: Shape, w_hh: Shape, w_hr: Shape | None) -> int:
    """Of a recurrent layer: the products of every row, and its gates."""
    weights, gates = _recurrent_parts(w_hh, w_hr)
    return prod(input[:-1]) * (2 * (prod(w_ih) + weights) + gates)


def recurrent_backward(output: Shape, w_hh: Shape, w_hr: Shape | None) -> int:
    """Of its gradient, through the states; the products that make the weights' gradients are ops
    of their own.
    """
    weights, gates = _recurrent_parts(w_hh, w_hr)
    return prod(output[:-1]) * (2 * weights + 2 * gates)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (numel, given, window, recurrent, recurrent_backward)
}


class _Wanted(ast.NodeTransformer):
    """Gives wanted() the places of its inputs instead of their shapes."""

    def __init__(self, tensors: Sequence[str]) -> None:
        self.tensors = tensors

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "wanted":
            places = [self.tensors.index(ast.unparse(arg)) for arg in node.args]
            node.args = [ast.Constant(place) for place in places]
        return node


class Formula:
    """A compiled expression.

    Args:
        text: the expression.
        tensors: the names of the op's tensors, in order.

    Raises:
        ValueError: a name in wanted() that is no tensor's.
    """

    def __init__(self, text: str, tensors: Sequence[str]) -> None:
        tree = _Wanted(tensors).visit(ast.parse(text, mode="eval"))
        found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.names = sorted(found - _FUNCTIONS.keys())
        arguments = [ast.arg(name) for name in self.names]
        made = ast.Lambda(
            ast.arguments(
                posonlyargs=[], args=arguments, kwonlyargs=[], kw_defaults=[], defaults=[]
            ),
            tree.body,
        )
        code = compile(ast.fix_missing_locations(ast.Expression(made)), f"<{text}>", "eval")
        self._run = eval(code, {"__builtins__": {}, **_FUNCTIONS})

    def __call__(self, values: Mapping[str, Any]) -> int | None:
        """The count; None where a name has no value, or for shapes that no call of the op has."""
        try:
            return self._run(*[values[name] for name in self.names])
        except (IndexError, KeyError, TypeError):
            return None


class _Costs(NamedTuple):
    tensors: tuple[str, ...]
    optional: tuple[str, ...]
    flops: Formula | None
    backward: Formula | None
    is_product: bool


def _is_tensor(parameter: Parameter) -> bool:
    return parameter.kind.startswith(("Tensor", "Operand"))


def _compiled(name: str) -> _Costs:
    """What the declaration of an op says, by its full name."""
    signature, forward, backward, product = _C._operation_costs[name]
    parameters = [p for p in parse(signature)[0] if _is_tensor(p)]
    tensors = tuple(p.name for p in parameters)
    optional = tuple(p.name for p in parameters if "?" in p.kind)
    made = [None if text is None else Formula(text, tensors) for text in (forward, backward)]
    return _Costs(tensors, optional, made[0], made[1], product)


@functools.cache
def _full_names() -> dict[str, str]:
    """The native ops' names, by name with and without the module."""
    names = _C._operation_costs
    return {**{name.rsplit(".", 1)[-1]: name for name in names}, **{name: name for name in names}}


@functools.cache
def _costs(op_name: str) -> _Costs | None:
    """What the declaration says of an op or its in-place form."""
    names = _full_names()
    short = op_name.rsplit(".", 1)[-1]
    for name in (op_name, short, short.removesuffix("_")):
        if name in names:
            return _compiled(names[name])
    return None


def _values(
    costs: _Costs,
    input_shapes: Sequence[Shape | None],
    output_shapes: Sequence[Shape],
    attributes: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What the names in a formula stand for."""
    values = dict(attributes or {})
    values.update(dict.fromkeys(costs.optional))
    values.update(zip(costs.tensors, input_shapes))
    values["results"] = output_shapes
    if output_shapes:
        values["result"] = output_shapes[0]
    return values


def is_product(op_name: str) -> bool:
    """Whether an op's work is a product of matrices: these are the ops that PyTorch's
    FlopCounterMode counts.
    """
    costs = _costs(op_name)
    return costs is not None and costs.is_product


def flops(
    op_name: str,
    input_shapes: Sequence[Shape | None],
    output_shapes: Sequence[Shape],
    attributes: Mapping[str, Any] | None = None,
) -> int | None:
    """The floating-point operations of one call.

    Args:
        op_name: the op's name ("linear", "nn.functional.linear", "mul_").
        input_shapes: of its tensor arguments, in the signature's order; None where one is absent.
        output_shapes: of its results.
        attributes: its other arguments by name; pooling and `convolution` need them.

    Returns: the count, 0 for views and copies, or None where no formula is known or the formula
    needs an argument that is not there. Ops that consist of others (`layer_norm`) give None: their
    parts count.

    >>> from clew._ops.flops import flops
    >>> flops("linear", [(8, 32), (64, 32), (64,)], [(8, 64)])
    32768
    """
    costs = _costs(op_name)
    if costs is None or costs.flops is None:
        return None
    return costs.flops(_values(costs, input_shapes, output_shapes, attributes))


def backward_flops(
    op_name: str,
    input_shapes: Sequence[Shape | None],
    output_shapes: Sequence[Shape],
    attributes: Mapping[str, Any] | None = None,
    needs: Sequence[bool] | None = None,
) -> int | None:
    """The floating-point operations of one call's gradient rule.

    Args:
        op_name: the op's name.
        input_shapes: of the forward call.
        output_shapes: of the forward call.
        attributes: of the forward call.
        needs: for each input, whether its gradient is wanted; all of them when not given.

    Returns: the count, or None where no formula is known.

    >>> from clew._ops.flops import backward_flops
    >>> backward_flops("linear", [(8, 32), (64, 32), (64,)], [(8, 64)])
    65536
    """
    costs = _costs(op_name)
    if costs is None or costs.backward is None:
        return None

    def wanted(*places: int) -> int:
        which = places or range(len(input_shapes))
        return sum(needs is None or (i < len(needs) and bool(needs[i])) for i in which)

    values = _values(costs, input_shapes, output_shapes, attributes)
    values["wanted"] = wanted
    if costs.flops is not None:
        values["flops"] = costs.flops(values)
    return costs.backward(values)
