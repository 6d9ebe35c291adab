"""`library.opcheck`: tries an operation that a program added, and sizes that only data knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import clew
from clew import Tensor
from clew.utils._pytree import tree_leaves, tree_map

__all__ = ["FakeContext", "OpCheckError", "get_ctx", "opcheck"]


class OpCheckError(RuntimeError):
    """An operation does not keep what it promises."""


class FakeContext:
    """What a rule for tensors without data asks. Sizes that data decides are known while an
    operation is checked or recorded on an example; else asking for one raises.
    """

    def __init__(self) -> None:
        self._given: Callable[[int, int | None], int] | None = None

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """A size that the data decides.

        Args:
            min: the least that it can be.
            max: the most that it can be.
        """
        if self._given is None:
            raise RuntimeError(
                "new_dynamic_size: the data decides this size, and tensors without data have none"
            )
        return self._given(min, max)

    create_unbacked_symint = new_dynamic_size


_context = FakeContext()


def get_ctx() -> FakeContext:
    """The context that a rule of `library.register_fake` asks for sizes that only data decides.

    Returns:
        A FakeContext.

    Example:
        >>> from clew.library import get_ctx
        >>> @clew.library.custom_op("doc_ctx::positive", mutates_args=())
        ... def positive(x: clew.Tensor) -> clew.Tensor:
        ...     return x[x > 0].clone()
        >>> @positive.register_fake
        ... def _(x):
        ...     return x.new_empty(get_ctx().new_dynamic_size())
        >>> result = clew.library.opcheck(positive, (clew.tensor([-1.0, 2.0]),))
        >>> result["test_faketensor"]
        'SUCCESS'
    """
    return _context


@contextmanager
def _sizes(given: Callable[[int, int | None], int]) -> Iterator[None]:
    before, _context._given = _context._given, given
    try:
        yield
    finally:
        _context._given = before


# Numbers that no size of an example is likely to be a multiple of.
_MARKS = (1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099, 1_000_117, 1_000_121)


def fake_results(operation: Any, args: Any, kwargs: Any, real: list[Any]) -> tuple[list[Any], int]:
    """What an operation's rule for tensors without data gives, and how many sizes it asked data
    for. Those sizes are found in the real results.

    Args:
        operation: whose rule it is.
        args: the arguments.
        kwargs: the named arguments.
        real: what the operation itself gave for them.
    """
    meta = tree_map(lambda t: t.detach().to("meta") if isinstance(t, Tensor) else t, (args, kwargs))
    asked: list[tuple[int, int | None]] = []

    def mark(least: int, most: int | None) -> int:
        if len(asked) == len(_MARKS):
            raise RuntimeError(f"new_dynamic_size: {len(_MARKS)} such sizes are the most")
        asked.append((least, most))
        return _MARKS[len(asked) - 1]

    with clew.no_grad(), _sizes(mark):
        found = tree_leaves(operation._fake(*meta[0], **meta[1]))
    if not asked:
        return found, 0
    known: dict[int, int] = {}
    for a, b in zip(real, found):
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() == b.dim():
            for n, marked in zip(a.shape, b.shape):
                for i, one in enumerate(_MARKS[: len(asked)]):
                    if marked and marked % one == 0:
                        known.setdefault(i, n // (marked // one))
    for i, n in known.items():
        least, most = asked[i]
        if n < least or (most is not None and n > most):
            raise AssertionError(
                f"the rule says that a size is from {least} to {'any' if most is None else most}; "
                f"it is {n}"
            )
    order = iter(range(len(asked)))

    def value(least: int, most: int | None) -> int:
        i = next(order)
        return known.get(i, _MARKS[i])

    with clew.no_grad(), _sizes(value):
        return tree_leaves(operation._fake(*meta[0], **meta[1])), len(asked)


_CHECKS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_static",
    "test_aot_dispatch_dynamic",
)
_USUAL = tuple(name for name in _CHECKS if name != "test_aot_dispatch_static")


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: Any = _USUAL,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Checks an operation on an example.

    Its schema: it writes to no input that the schema does not name, and no result shares an input's
    memory. Its registration: results require gradients where inputs do. Its rule for tensors
    without data: it gives the shapes and dtypes that the operation gives. And its calls: repeated
    on copies of the example, with the same random numbers, they give the same results and
    gradients, which have the inputs' shapes.

    Args:
        op: the operation.
        args: the example.
        kwargs: its named arguments.
        test_utils: which checks, or one of them.
        raise_exception: raise where one fails; else the result holds the exception.
        atol: how far results and gradients of two calls may be apart.
        rtol: the same, relative to their size.

    Returns:
        "SUCCESS", or the exception, for each check.

    Raises:
        OpCheckError: a check failed.

    Example:
        >>> from clew.library import opcheck
        >>> @clew.library.custom_op("doc_opcheck::twice", mutates_args=())
        ... def twice(x: clew.Tensor) -> clew.Tensor:
        ...     return 2 * x
        >>> twice.register_fake(lambda x: clew.empty_like(x)) is not None
        True
        >>> set(opcheck(twice, (clew.ones(2),)).values())
        {'SUCCESS'}
    """
    operation = getattr(op, "_opoverload", op)  # of what custom_op() has made
    if not isinstance(getattr(operation, "_qualname", None), str):
        raise ValueError(
            f"opcheck: op must be an operation such as ops.mine.name; got {type(op).__name__}"
        )
    wanted = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    unknown = sorted(set(wanted) - set(_CHECKS))
    if unknown:
        raise ValueError(f"opcheck: test_utils must be of {_CHECKS}; got {unknown}")
    if not isinstance(args, (tuple, list)):
        raise OpCheckError(f"opcheck: args must be a tuple; got {type(args).__name__}")
    results: dict[str, Any] = {}
    for name in wanted:
        try:
            if name == "test_schema":
                _check_schema(operation, args, kwargs or {})
            elif name == "test_autograd_registration":
                _check_gradient(operation, args, kwargs or {})
            elif name == "test_faketensor":
                _check_fake(operation, args, kwargs or {})
            else:
                _check_calls(operation, args, kwargs or {}, atol, rtol)
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck: {name} failed: {error}") from error
            results[name] = error
        else:
            results[name] = "SUCCESS"
    return results


def _copied(args: Any, kwargs: Any) -> Any:
    def copy(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        return t.detach().clone().requires_grad_(t.requires_grad)

    return tree_map(copy, (tuple(args), dict(kwargs)))


def _tensors(tree: Any) -> list[Tensor]:
    return [t for t in tree_leaves(tree) if isinstance(t, Tensor)]


def _check_schema(operation: Any, args: Any, kwargs: Any) -> None:
    schema = operation._given_schema
    allowed = set(schema.mutates) if schema else set()
    names = [a.name for a in schema.arguments if not a.keyword_only] if schema else []
    args, kwargs = _copied(args, kwargs)
    given = {**dict(zip(names, args)), **kwargs} if names else dict(enumerate(args))
    before = {n: [t.detach().clone() for t in _tensors(v)] for n, v in given.items()}
    with clew.no_grad():
        out = operation(*args, **kwargs)
    for name, was in before.items():
        now = _tensors(given[name])
        if name in allowed:
            continue
        if not all(clew.equal(a, b.detach()) for a, b in zip(was, now)):
            raise AssertionError(f"the argument {name} was written to; the schema says no")
        if "(" in (schema.returns.lstrip("(") if schema else ""):
            continue  # the schema speaks of memory that results share
        for t in _tensors(out):
            if any(t.numel() and t._storage_key() == b._storage_key() for b in now):
                raise AssertionError(f"a result shares the memory of the argument {name}")


def _check_gradient(operation: Any, args: Any, kwargs: Any) -> None:
    args, kwargs = _copied(args, kwargs)
    if not any(t.requires_grad for t in _tensors((args, kwargs))):
        return
    schema = operation._given_schema
    if schema is not None and schema.mutates:
        return
    outs = [o for o in _tensors(operation(*args, **kwargs)) if o.is_floating_point()]
    if outs and not any(o.requires_grad for o in outs):
        raise AssertionError("no result requires gradients although an input does")


def _check_fake(operation: Any, args: Any, kwargs: Any) -> None:
    if operation._fake is None and operation._strict and operation._schema._results == []:
        return  # it gives nothing, so that a rule has nothing to say
    if operation._fake is None and operation._strict:
        raise AssertionError("it has no rule for tensors without data; add one by register_fake")
    args, kwargs = _copied(args, kwargs)
    if operation._given_schema is not None:
        args, kwargs = operation._given_schema.bind(args, kwargs)
    with clew.no_grad():
        real = tree_leaves(operation(*_copied(args, kwargs)[0], **kwargs))
    if operation._fake is None:
        meta = tree_map(
            lambda t: t.detach().to("meta") if isinstance(t, Tensor) else t, (args, kwargs)
        )
        with clew.no_grad():
            fake = tree_leaves(operation._run(*meta[0], **meta[1]))
    else:
        fake, _ = fake_results(operation, args, kwargs, real)
    if len(real) != len(fake):
        raise AssertionError(f"the rule gives {len(fake)} results, not {len(real)}")
    for a, b in zip(real, fake):
        if isinstance(a, Tensor) != isinstance(b, Tensor):
            raise AssertionError(f"the rule gives {type(b).__name__}, not {type(a).__name__}")
        if isinstance(a, Tensor) and (a.shape != b.shape or a.dtype is not b.dtype):
            raise AssertionError(
                f"the rule gives {list(b.shape)} of {b.dtype}, not {list(a.shape)} of {a.dtype}"
            )


def _call(operation: Any, args: Any, kwargs: Any) -> tuple[list[Tensor], list[Tensor | None]]:
    """The results of a call, and the gradients of the inputs that want them."""
    args, kwargs = _copied(args, kwargs)
    leaves = [t for t in _tensors((args, kwargs)) if t.requires_grad]
    schema = operation._given_schema
    if schema is not None and schema.mutates:
        with clew.no_grad():
            return _tensors((operation(*args, **kwargs), args, kwargs)), []
    outs = _tensors(operation(*args, **kwargs))
    wanted = [o for o in outs if o.requires_grad]
    if not leaves or not wanted:
        return [o.detach() for o in outs], []
    grads = clew.autograd.grad([o.sum() for o in wanted], leaves, allow_unused=True)
    for leaf, grad in zip(leaves, grads):
        if grad is not None and grad.shape != leaf.shape:
            raise AssertionError(
                f"a gradient has shape {list(grad.shape)}, its input {list(leaf.shape)}"
            )
    return [o.detach() for o in outs], list(grads)


def _check_calls(operation: Any, args: Any, kwargs: Any, atol: Any, rtol: Any) -> None:
    with clew.enable_grad():
        state = clew.get_rng_state()
        first = _call(operation, args, kwargs)
        clew.set_rng_state(state)
        second = _call(operation, args, kwargs)
    for kind, one, other in (
        ("results", first[0], second[0]),
        ("gradients", first[1], second[1]),
    ):
        for a, b in zip(one, other):
            if (a is None) != (b is None):
                raise AssertionError(f"the {kind} of two calls are not alike")
            if a is not None:
                clew.testing.assert_close(
                    a, b, atol=atol, rtol=rtol, equal_nan=True, msg=f"two calls give other {kind}"
                )
