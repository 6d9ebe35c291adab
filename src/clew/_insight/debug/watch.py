"""nan_watch: the operation that a NaN or infinity comes from."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from clew import _C
from clew._base.provenance import user_level
from clew._C import Tensor
from clew._tensor.html import as_printed

__all__ = ["NonFinite", "NonFiniteError", "nan_watch"]


class NonFinite(NamedTuple):
    """One birth of a NaN or infinity.

    Args:
        operation: ``"log"``, or ``"SqrtBackward0"`` for a gradient rule.
        kind: ``"NaN"`` or ``"infinity"``.
        backward: whether it happened in a backward pass.
        place: line, source and module of the operation (of a gradient rule: of its forward pass).
        inputs: one line of statistics for each tensor that went in.
        outputs: the same for each that came out.
    """

    operation: str
    kind: str
    backward: bool
    place: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        given, what = ("gradient", "gradient of input") if self.backward else ("input", "result")
        source = "finite" if self.kind == "infinity" else "NaN-free"
        lines = [f"{self.operation}: {self.kind} was born here, from {source} {given}s"]
        if self.place:
            lines.append(f"  {'made at ' if self.backward else 'at '}{self.place}")
        lines += [
            f"  {'incoming ' if self.backward else ''}{given} {i}: {text}"
            for i, text in enumerate(self.inputs)
        ]
        lines += [f"  {what} {i}: {text}" for i, text in enumerate(self.outputs)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return as_printed(self)


class NonFiniteError(RuntimeError):
    """Raised by nan_watch; ``.found`` is the NonFinite that it tells of."""

    __module__ = "clew.debug"

    def __init__(self, found: NonFinite) -> None:
        super().__init__(f"nan_watch: {found}")
        self.found = found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.found,)


# Operations of which only so many results are the program's. The others are kept for backward:
# ctc_loss has the logarithms of the paths' probabilities, of which those that cannot be are 0.
_FOR_BACKWARD = {"ctc_loss": 1}


class nan_watch:
    """Searches the result of every operation, forward and backward, for NaN and infinity, and tells
    of the first that was not there before.

    A NaN is new when no input had one, an infinity when all inputs were finite; constants such as
    masked_fill's ``-inf`` are not reported. Works as a context manager and as a decorator, for the
    thread that enters it.

    Args:
        nan: look for NaN.
        inf: look for infinity.
        action: ``"raise"`` a NonFiniteError, ``"warn"``, or ``"record"`` in ``.found`` only.

    Raises:
        NonFiniteError: with action="raise", at the operation that did it.

    >>> x = clew.tensor([1.0, 0.0], requires_grad=True)
    >>> with clew.debug.nan_watch(action="record") as watch:
    ...     y = x.sqrt().sum()
    ...     y.backward()
    >>> watch.found[0].operation
    'SqrtBackward0'
    """

    def __init__(self, *, nan: bool = True, inf: bool = True, action: str = "raise") -> None:
        if action not in ("raise", "warn", "record"):
            raise ValueError(
                f"nan_watch: action must be 'raise', 'warn' or 'record'; got {action!r}"
            )
        if not (nan or inf):
            raise ValueError("nan_watch: there is nothing to look for with nan=False and inf=False")
        self.nan = nan
        self.inf = inf
        self.action = action
        self.found: list[NonFinite] = []
        self._before: list[tuple[Any, bool, bool]] = []

    def __enter__(self) -> nan_watch:
        self._before.append(_C._watch(self._tell, self.nan, self.inf))
        return self

    def __exit__(self, *exc: object) -> None:
        _C._watch(*self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return watched

    def _tell(
        self,
        operation: str,
        kind: str,
        place: str,
        backward: bool,
        inputs: list[Tensor | None],
        outputs: list[Tensor | None],
    ) -> None:
        if not backward and operation in _FOR_BACKWARD:
            whole = [t for t in outputs[: _FOR_BACKWARD[operation]] if t is not None]
            if all(bool(t.isfinite().all()) for t in whole):
                return
        found = NonFinite(operation, kind, backward, place, _lines(inputs), _lines(outputs))
        self.found.append(found)
        if self.action == "raise":
            raise NonFiniteError(found)
        if self.action == "warn":
            warnings.warn(f"nan_watch: {found}", RuntimeWarning, stacklevel=user_level())


def _lines(tensors: list[Tensor | None]) -> tuple[str, ...]:
    from clew._insight.debug.summary import summary

    return tuple("none" if t is None else str(summary(t)) for t in tensors)
