"""Tensors that are described by other tensors: sparse and ragged ones.

To the core such a tensor is a placeholder on the meta device, which has a shape and no elements,
so that nothing can compute with it by mistake. Its parts are ordinary tensors, and operations on it
are rules written with operations on the parts: gradients of any order follow. What has no rule
raises.
"""

# mypy: disable-error-code="override"
from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from clew import _C
from clew._base.out import write_out
from clew._C import Tensor

__all__ = ["Structured", "as_text", "name_of", "of_own_class", "parts_of", "placeholder"]


_C_DATA = vars(Tensor)["data"]
_WHERE = vars(Tensor)["where"]


def placeholder(shape: Any, dtype: Any) -> Tensor:
    """A meta tensor of this shape. Its strides are 0: a shape may have more elements than there
    could be bytes.
    """
    sizes = tuple(shape)
    return _C.empty_strided(sizes, (0,) * len(sizes), dtype=dtype, device="meta")


def name_of(func: Any) -> str:
    """The name that rules are kept under: that of the operation."""
    name = getattr(func, "__name__", None) or type(func).__name__
    owner = getattr(func, "__self__", None)
    if name == "apply" and isinstance(owner, type):  # a function written in Python
        return owner.__name__
    if name == "__get__":
        return "a property"
    return str(name)


class Structured(Tensor):
    """The base of both."""

    _rules: ClassVar[dict[str, Callable[..., Any]]] = {}
    # Functions written in Python that have a rule themselves, not only what they are made of.
    _whole: ClassVar[frozenset[str]] = frozenset()
    _kind: ClassVar[str] = "structured tensors"
    _remedy: ClassVar[str] = ".to_dense()"
    # What the core may tell of the placeholder.
    _plain: ClassVar[frozenset[str]] = frozenset(
        "dim ndimension size numel nelement element_size is_floating_point is_complex is_signed "
        "__len__".split()
    )
    _elements: Tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not all(issubclass(t, Structured) for t in types):
            return NotImplemented
        name = name_of(func)
        out = kwargs.get("out")
        kwargs = {k: v for k, v in kwargs.items() if k != "out"}
        if func is _WHERE and len(args) > 1:  # the function has the condition first
            args = (args[1], args[0], *args[2:])
        rule = cls._rules.get(name) or _METHODS.get(name)
        if rule is not None:
            try:
                made = rule(*args, **kwargs)
            except (AttributeError, KeyError, TypeError) as error:
                cls._complain(func, args, kwargs, error)
            if made is not NotImplemented:
                return made if out is None else cls._written(name, made, out)
        elif name in cls._plain:
            return getattr(Tensor, name)(args[0]._placeholder(), *args[1:], **kwargs)
        cls._refuse(name)

    @classmethod
    def _written(cls, name: str, made: Any, out: Any) -> Any:
        if isinstance(made, Structured) or isinstance(out, Structured):
            raise NotImplementedError(
                f"{name}: out= is not offered for {cls._kind} but for dense results; use the "
                "result that is returned"
            )
        return write_out(name, made, out)

    @classmethod
    def _refuse(cls, name: str) -> NoReturn:
        raise NotImplementedError(
            f"{name}: there is no rule for {cls._kind} with these arguments; convert first with "
            f"{cls._remedy}"
        )

    @classmethod
    def _complain(cls, func: Any, args: Any, kwargs: Any, error: Exception) -> NoReturn:
        """Raises what the function says of arguments of these kinds where a rule failed over them:
        it is called with the placeholders, which compute nothing.
        """
        trace = error.__traceback__
        if isinstance(error, TypeError) and trace is not None and trace.tb_next is not None:
            raise error  # the rule's own words, not Python's about its signature
        try:
            func(*map(_as_placeholder, args), **{k: _as_placeholder(v) for k, v in kwargs.items()})
        except TypeError as plain:
            raise plain from None
        except Exception:
            pass  # of what it finds, the kinds only are meant
        if isinstance(error, TypeError):
            raise error
        try:
            cls._refuse(name_of(func))
        except NotImplementedError as refusal:
            raise refusal from error

    @classmethod
    def _over(cls, shape: Any, values: Tensor) -> Any:
        """A new one; the caller sets its parts."""
        made = Tensor._make_subclass(cls, placeholder(shape, values.dtype), False)
        made._elements = values
        return made

    def _placeholder(self) -> Tensor:
        return placeholder(self.shape, self.dtype)

    def _with(self, values: Tensor) -> Any:
        """Other values in the same places."""
        raise NotImplementedError

    def _of_gradient(self, values: Tensor) -> Any:
        """The tensor's gradient, of the gradient of its values."""
        return self._with(values)

    def _has_places_of(self, other: Any) -> bool:
        """Whether the elements of another one are in the same places, in the same order."""
        raise NotImplementedError

    def _frame(self) -> Any:
        """The tensor without its values' memory: nothing but `_with` may be asked of it."""
        return self._with(self._elements.detach()[:0])

    # ---- what is asked of the values ----

    @property
    def device(self) -> Any:
        return self._elements.device

    @property
    def is_cpu(self) -> bool:
        return bool(self._elements.is_cpu)

    @property
    def is_meta(self) -> bool:
        return bool(self._elements.is_meta)

    @property
    def nbytes(self) -> int:
        raise NotImplementedError(
            f"nbytes: ask the parts of {self._kind} instead, such as .values().nbytes"
        )

    @property
    def requires_grad(self) -> bool:
        return bool(self._elements.requires_grad)

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        self._own_values(on)
        self._elements.requires_grad = on

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        self._own_values(requires_grad)
        self._elements.requires_grad_(requires_grad)
        return self

    def _own_values(self, on: bool) -> None:
        """Before a gradient is asked for: the values may be a tensor of the user's, or be those of
        another sparse or ragged tensor, too, which do not ask for one.
        """
        if on is True and not self._elements.requires_grad:
            self._elements = self._elements.detach()

    @property
    def grad(self) -> Any:
        got = self._elements.grad
        return None if got is None else self._of_gradient(got)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is None:
            self._elements.grad = None
        elif isinstance(value, Structured) and self._has_places_of(value):
            self._elements.grad = value._elements
        else:
            raise RuntimeError(
                "grad: assigned grad must have the elements of the tensor, in the same places"
            )

    _grad = grad

    @property
    def grad_fn(self) -> Any:
        return self._elements.grad_fn

    @property
    def is_leaf(self) -> bool:
        return bool(self._elements.is_leaf)

    @property
    def retains_grad(self) -> bool:
        return bool(self._elements.retains_grad)

    @property
    def output_nr(self) -> int:
        return int(self._elements.output_nr)

    @property
    def _version(self) -> int:
        return int(self._elements._version)

    @property
    def data(self) -> Any:
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        if type(value) is not type(self) or not self._has_places_of(value):
            raise RuntimeError(
                "data: assigned data must have the elements of the tensor, in the same places"
            )
        _C_DATA.__set__(self, placeholder(self._placeholder().shape, value.dtype))
        self._elements.data = value._elements.detach()

    @property
    def real(self) -> Any:
        self._refuse("real")

    @property
    def imag(self) -> Any:
        self._refuse("imag")

    @property
    def T(self) -> Any:
        return self.t() if self.dim() == 2 else self._refuse("T")

    @property
    def mT(self) -> Any:
        return self.transpose(-2, -1)

    @property
    def H(self) -> Any:
        self._refuse("H")

    @property
    def mH(self) -> Any:
        self._refuse("mH")

    def retain_grad(self) -> None:
        self._elements.retain_grad()

    def register_hook(self, hook: Any) -> Any:
        def on_values(grad: Tensor) -> Any:
            got = hook(self._with(grad))
            return None if got is None else got._elements

        return self._elements.register_hook(on_values)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        return self._elements.register_post_accumulate_grad_hook(lambda values: hook(self))

    def detach(self) -> Any:
        return self._with(self._elements.detach())

    def clone(self, *, memory_format: Any = None) -> Any:
        return self._with(self._elements.clone())

    def backward(
        self,
        gradient: Any = None,
        retain_graph: Any = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        from clew.autograd._backward import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        got = self._elements.to(*args, **kwargs)
        return self if got is self._elements else self._with(got)

    def contiguous(self, memory_format: Any = None) -> Any:
        return self

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return bool(self._elements.is_contiguous())

    def cpu(self, memory_format: Any = None) -> Any:
        return self

    def get_device(self) -> int:
        return -1

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        got = self._elements.type() if dtype is None else self._elements.type(dtype)
        return got if isinstance(got, str) else self._with(got)

    def is_inference(self) -> bool:
        return bool(self._elements.is_inference())

    def is_conj(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return False

    def is_pinned(self, device: Any = None) -> bool:
        return False

    def resolve_conj(self) -> Any:
        return self

    def resolve_neg(self) -> Any:
        return self

    def storage_offset(self) -> int:
        return 0

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse("__array__")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse("__dlpack__")

    def __dlpack_device__(self) -> Any:
        self._refuse("__dlpack_device__")

    def __contains__(self, element: Any) -> bool:
        self._refuse("in")

    def __divmod__(self, other: Any) -> Any:
        self._refuse("divmod")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse("format")
        return repr(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "deepcopy: only tensors created by the user (graph leaves) can be copied; use "
                ".detach().clone()"
            )
        values = self._elements.detach().clone().requires_grad_(self.requires_grad)
        made = memo[id(self)] = self._with(values)
        if self._elements.grad is not None:
            values.grad = self._elements.grad.detach().clone()
        made.__dict__.update(copy.deepcopy(self._own_attributes(), memo))
        return made

    def _own_attributes(self) -> dict[str, Any]:
        """What the program has set; the names of parts begin with an underscore."""
        return {name: v for name, v in self.__dict__.items() if not name.startswith("_")}

    def _reduced(self) -> Any:
        """What makes it again, and of which arguments, for pickles."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (*self._reduced(), self._own_attributes() or None)


# What a method of Tensor comes to that is called unbound (`Tensor.float(x)`) where the classes have
# one of their own.
_METHODS: dict[str, Callable[..., Any]] = {
    "_to_dtype": lambda x, dtype: x.to(dtype),
    "contiguous": lambda x, *args, **kwargs: x.contiguous(*args, **kwargs),
}


def of_own_class(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of dense tensors that is that of the tensor's own class where a sparse or ragged
    one comes, as in `Tensor.to_dense(x)`.
    """
    name = method.__name__

    @functools.wraps(method)
    def called(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, Structured):
            return getattr(self, name)(*args, **kwargs)
        return method(self, *args, **kwargs)

    return called


def _as_placeholder(x: Any) -> Any:
    if isinstance(x, Structured):
        return x._placeholder()
    if isinstance(x, Tensor) and type(x) is Tensor:
        return x.detach().to("meta")
    return type(x)(map(_as_placeholder, x)) if type(x) in (list, tuple) else x


def _caster(name: str) -> Any:
    def cast(self: Structured) -> Any:
        return self.to(getattr(self._elements, name)().dtype)

    cast.__name__ = cast.__qualname__ = name
    return cast


for _name in "float double half bfloat16 int long short char byte bool cfloat cdouble".split():
    setattr(Structured, _name, _caster(_name))


def parts_of(tensors: Any) -> tuple[Any, ...]:
    """The tensors with the values of structured ones in their place, which the graph knows."""
    return tuple(t._elements if isinstance(t, Structured) else t for t in tensors)


def as_text(named: list[tuple[str, Any]]) -> str:
    """What tensors of several parts are printed as: a line for each part."""
    lines = []
    for name, value in named:
        text = f"{name}={value!r}"
        lines.append(re.sub(r"\n(?=[^\n])", "\n" + " " * (len(name) + 8), text))
    return "tensor(" + ",\n       ".join(lines)
