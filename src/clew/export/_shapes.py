"""Which sizes of the examples may vary, and further examples made from the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.export._errors import ExportError

__all__ = ["Dim", "dims", "examples", "read_shapes"]


class _Hint:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Dim.{self.name}"


class Dim:
    """A size that may vary, by name: dims of one name have one size.

    Args:
        name: an identifier.
        min: the smallest size.
        max: the largest; None without a bound.

    >>> clew.export.Dim("batch", min=1, max=64)
    Dim('batch', min=1, max=64)
    """

    AUTO: Any = _Hint("AUTO")
    DYNAMIC: Any = _Hint("DYNAMIC")
    STATIC: Any = _Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"Dim: the name must be an identifier; got {name!r}")
        low = 0 if min is None else min
        if max is not None and max < low:
            raise ValueError(f"Dim {name}: max must be at least min; got {low} and {max}")
        self.__name__ = name
        self.min, self.max = low, max
        self.root: Dim = self
        self.scale, self.shift = 1, 0

    def __repr__(self) -> str:
        if self.root is not self:
            return self.label
        bounds = f", min={self.min}" if self.min else ""
        bounds += f", max={self.max}" if self.max is not None else ""
        return f"Dim({self.__name__!r}{bounds})"

    def _derived(self, scale: int, shift: int) -> Dim:
        made = Dim(self.root.__name__, min=self.root.min, max=self.root.max)
        made.root, made.scale, made.shift = self.root, scale, shift
        return made

    def __mul__(self, other: int) -> Dim:
        return self._derived(self.scale * other, self.shift * other)

    __rmul__ = __mul__

    def __add__(self, other: int) -> Dim:
        return self._derived(self.scale, self.shift + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        return self + -other

    @property
    def label(self) -> str:
        """``batch`` or ``2*batch + 1``."""
        name = self.root.__name__
        text = name if self.scale == 1 else f"{self.scale}*{name}"
        return text if not self.shift else f"{text} {'+' if self.shift > 0 else '-'} " + str(
            abs(self.shift)
        )  # fmt: skip


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several Dims.

    Args:
        names: of each.
        min: the smallest size of all of them.
        max: the largest.

    >>> batch, length = clew.export.dims("batch", "length")
    """
    return tuple(Dim(n, min=min, max=max) for n in names)


def read_shapes(
    shapes: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: list[str],
    rest: str | None = None,
) -> list[dict[int, Any]]:
    """For each tensor among the arguments, in order: a Dim or a hint by dim.

    Args:
        names: of the positional arguments.
        rest: the name of the function's ``*args``, whose shapes may be given as one tuple.
    """
    found: list[dict[int, Any]] = []
    names = names[: len(args)]
    if isinstance(shapes, dict) and rest in shapes and rest not in names:
        shapes = dict(shapes)
        given = shapes.pop(rest)
        behind = [n for n in names if n not in shapes and n == f"arg{names.index(n)}"]
        if not isinstance(given, (tuple, list)) or len(given) != len(behind):
            raise ExportError(
                f"dynamic_shapes: {rest} needs a tuple of {len(behind)} entries; got {given!r}"
            )
        shapes |= dict(zip(behind, given))
    if isinstance(shapes, dict):
        unknown = set(shapes) - set(names) - set(kwargs)
        if unknown:
            raise ExportError(
                f"dynamic_shapes: {sorted(unknown)} are no arguments; the arguments are "
                f"{names + list(kwargs)}"
            )
        per_arg = [shapes.get(n) for n in names]
        per_kwarg = {k: shapes.get(k) for k in kwargs}
    elif shapes is None:
        per_arg, per_kwarg = [None] * len(args), {}
    elif isinstance(shapes, (tuple, list)):
        if len(shapes) > len(args) + len(kwargs):
            raise ExportError(
                f"dynamic_shapes: {len(shapes)} entries for {len(args) + len(kwargs)} arguments"
            )
        entries = [*shapes, *[None] * (len(args) + len(kwargs) - len(shapes))]
        per_arg = entries[: len(args)]
        per_kwarg = dict(zip(kwargs, entries[len(args) :]))
    else:
        raise ExportError(
            f"dynamic_shapes must be a dict by argument or a tuple; got {type(shapes).__name__}"
        )
    for i, (a, s) in enumerate(zip(args, per_arg)):
        _read(a, s, found, names[i] if i < len(names) else f"argument {i}")
    for k, a in kwargs.items():
        _read(a, per_kwarg.get(k), found, k)
    return found


def _read(x: Any, shape: Any, found: list[dict[int, Any]], what: str) -> None:
    if isinstance(x, Tensor):
        found.append(_of_tensor(x, shape, what))
    elif isinstance(x, dict):
        if shape is not None and (not isinstance(shape, dict) or not shape.keys() <= x.keys()):
            raise ExportError(f"dynamic_shapes: {what} is a dict of {list(x)}; got {shape!r}")
        for k, v in x.items():
            _read(v, None if shape is None else shape.get(k), found, f"{what}[{k!r}]")
    elif isinstance(x, (tuple, list)):
        parts = [None] * len(x) if shape is None else shape
        if not isinstance(parts, (tuple, list)):
            raise ExportError(
                f"dynamic_shapes: {what} has {len(x)} elements and needs a tuple; got {shape!r}"
            )
        if len(parts) != len(x):
            raise ExportError(f"dynamic_shapes: {what} has {len(x)} elements; got {len(parts)}")
        for i, (v, s) in enumerate(zip(x, parts)):
            _read(v, s, found, f"{what}[{i}]")
    elif shape is not None:
        raise ExportError(f"dynamic_shapes: {what} is no tensor; give None for it")


def _of_tensor(x: Tensor, shape: Any, what: str) -> dict[int, Any]:
    if shape is None:
        return {}
    if isinstance(shape, (tuple, list)):
        if len(shape) != x.dim():
            raise ExportError(
                f"dynamic_shapes: {what} has {x.dim()} dims; got {len(shape)} entries"
            )
        shape = dict(enumerate(shape))
    if not isinstance(shape, dict):
        raise ExportError(f"dynamic_shapes: {what}: a dict by dim or a tuple is needed")
    marks: dict[int, Any] = {}
    for d, mark in shape.items():
        if not isinstance(d, int) or not -x.dim() <= d < max(x.dim(), 1):
            raise ExportError(f"dynamic_shapes: {what} has {x.dim()} dims; there is no dim {d!r}")
        if isinstance(mark, str):
            mark = Dim(mark)
        if mark is None or mark is Dim.STATIC:
            continue
        if isinstance(mark, int):
            if x.shape[d] != mark:
                raise ExportError(
                    f"dynamic_shapes: {what} has size {x.shape[d]} in dim {d}, not {mark}"
                )
            continue
        if not isinstance(mark, (Dim, _Hint)):
            raise ExportError(f"dynamic_shapes: {what}[{d}] is {mark!r}; use a Dim or Dim.AUTO")
        marks[d % max(x.dim(), 1)] = mark
    return marks


class Sizes:
    """Symbols for the sizes that vary.

    Args:
        tensors: the example.
        marks: as read_shapes() gives them.
        tied: places (tensor, dim) of Dim.AUTO that are one symbol: those of one number.

    Attributes:
        of: for each tensor, by dim: (symbol, scale, shift).
        now: the example's size of each symbol.
        bounds: (min, max) of each.
        hints: symbols of Dim.AUTO, which may turn out to be fixed.
    """

    def __init__(
        self,
        tensors: list[Tensor],
        marks: list[dict[int, Any]],
        tied: dict[tuple[int, int], int] | None = None,
    ) -> None:
        self.of: list[dict[int, tuple[str, int, int]]] = []
        self.now: dict[str, int] = {}
        self.bounds: dict[str, tuple[int, int | None]] = {}
        self.hints: set[str] = set()
        by_size: dict[Any, str] = {}
        for t, mark in zip(tensors, marks):
            table = {}
            for d, m in sorted(mark.items()):
                size = int(t.shape[d])
                if isinstance(m, _Hint):
                    # Equal sizes may be one size, those in `tied`, or happen to be equal.
                    place = (len(self.of), d)
                    key = (tied or {}).get(place, place)
                    name = by_size.setdefault(key, f"s{len(by_size)}")
                    self.hints.add(name)
                    table[d] = (name, 1, 0)
                    self.now[name] = size
                    self.bounds[name] = (0, None)
                    continue
                root = m.root
                if (size - m.shift) % m.scale:
                    raise ExportError(f"dynamic_shapes: {size} is not {m.label} for any size")
                value = (size - m.shift) // m.scale
                name = root.__name__
                if self.now.setdefault(name, value) != value:
                    raise ExportError(
                        f"dynamic_shapes: {name} is {self.now[name]} in one example dim and "
                        f"{value} in another"
                    )
                if value < root.min or (root.max is not None and value > root.max):
                    raise ExportError(
                        f"dynamic_shapes: the example's {name} is {value}, outside of its range "
                        f"[{root.min}, {root.max}]"
                    )
                self.bounds[name] = (root.min, root.max)
                table[d] = (name, m.scale, m.shift)
            self.of.append(table)

    def without(self, names: set[str]) -> None:
        """Fixes symbols."""
        self.of = [{d: s for d, s in t.items() if s[0] not in names} for t in self.of]
        self.now = {n: size for n, size in self.now.items() if n not in names}
        self.bounds = {n: b for n, b in self.bounds.items() if n not in names}

    def places(self, names: set[str]) -> list[tuple[int, int]]:
        """Where symbols stand: (tensor, dim)."""
        return [
            (i, d) for i, t in enumerate(self.of) for d, (n, _, _) in t.items() if n in names
        ]  # fmt: skip

    def shapes(self, tensors: list[Tensor], sizes: dict[str, int]) -> list[tuple[int, ...]]:
        """The tensors' shapes with other sizes."""
        found = []
        for t, table in zip(tensors, self.of):
            shape = list(map(int, t.shape))
            for d, (name, scale, shift) in table.items():
                shape[d] = sizes.get(name, self.now[name]) * scale + shift
            found.append(tuple(shape))
        return found

    def labels(self) -> list[dict[int, str]]:
        """What each dim that varies is called."""
        found = []
        for table in self.of:
            labels = {}
            for d, (name, scale, shift) in table.items():
                text = name if scale == 1 else f"{scale}*{name}"
                labels[d] = text if not shift else f"{text}{shift:+d}"
            found.append(labels)
        return found

    def far(self, only: set[str] | None = None) -> Iterator[dict[str, int]]:
        """Sizes about twice the example's, or half of them: what a stride or a pooling leaves of
        sizes that are near each other may agree, and would pass for a constant."""
        names = [n for n in self.now if only is None or n in only]
        for double in (True, False):
            made = {}
            for k, n in enumerate(names):
                size, (low, high) = self.now[n], self.bounds[n]
                up = 2 * size + 1 + k
                up = up if high is None else min(up, high)
                down = max(low, 1, size // 2 - k)
                made[n] = up if up > size and (double or down == size) else down
            if any(made[n] != self.now[n] for n in names) and self._apart(made):
                yield made

    def others(self, only: set[str] | None = None, more: int = 0) -> Iterator[dict[str, int]]:
        """Sizes to try instead of the example's."""
        names = [n for n in self.now if only is None or n in only]

        def fit(name: str, value: int) -> int:
            low, high = self.bounds[name]
            if high is not None and value > high:
                value = max(low, self.now[name] - (value - self.now[name]))
                value = min(value, high)
            return max(value, low)

        for step, factor in ((1, 0), (2, 0), (0, 1), (4, 0), (8, 0), (16, 0), (32, 0), (64, 0),
                             (0, 2)):  # fmt: skip
            made = {}
            for k, n in enumerate(names):
                size = self.now[n]
                add = step * (1 + k + more) if step else size * (factor + k + more)
                made[n] = fit(n, size + add)
            if self._apart(made):
                yield made
        made = {n: fit(n, max(self.bounds[n][0], self.now[n] - 1)) for n in names}
        if self._apart(made):
            yield made

    def _apart(self, made: dict[str, int]) -> bool:
        """Whether sizes of Dim.AUTO that are equal in the example differ here: only then does the
        model let them differ."""
        pairs = [(self.now[n], made[n]) for n in made if n in self.hints]
        return len(set(pairs)) == len(pairs)


def resampled(t: Tensor, shape: tuple[int, ...], rng: np.random.Generator, how: str) -> Tensor:
    """A tensor of another shape with values like those of an example."""
    x = t.detach().float().numpy() if t.dtype in (clew.bfloat16,) else t.detach().numpy()
    count = int(np.prod(shape))
    if x.size == 0 or count == 0:
        made = np.zeros(shape, x.dtype)
    elif how == "resample":
        made = x.reshape(-1)[rng.integers(0, x.size, count)].reshape(shape)
        if x.dtype.kind == "f" and not np.array_equal(x, np.round(x)):
            made = made * (1 + 0.1 * rng.standard_normal(shape)).astype(x.dtype)
    elif x.shape == tuple(shape):
        made = x.copy()
    else:
        made = np.resize(x, shape) if x.ndim < 2 else _tiled(x, shape)
    if x.ndim and x.dtype.kind in "iuf" and x.shape[-1] > 1:
        steps = np.diff(x.astype(float))
        if np.all(steps >= 0):
            made = np.sort(made, axis=-1)  # borders and offsets stay in order
        elif np.all(steps <= 0):
            made = np.sort(made, axis=-1)[..., ::-1]  # lengths of packed sequences, too
    return clew.tensor(np.ascontiguousarray(made)).to(t.dtype).reshape(shape)


def _tiled(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    for d, n in enumerate(shape):
        x = np.take(x, np.arange(n) % x.shape[d], axis=d)
    return x


_SMALL = 1 << 16  # elements that are few, however many the example has


def examples(
    tensors: list[Tensor], sizes: Sizes, rng: np.random.Generator, more: int = 0,
    only: set[str] | None = None,
) -> Iterator[list[Tensor]]:  # fmt: skip
    """Examples of other sizes and values, the likeliest to be accepted first."""
    tried = set()
    near = sizes.others(only, more)
    choices = [*([] if more else sizes.far(only)), *near] if sizes.now else [{}]
    for made in choices:
        shapes = tuple(sizes.shapes(tensors, made))
        if shapes in tried or any(
            np.prod(s, dtype=float) > 64 * t.numel() + _SMALL for s, t in zip(shapes, tensors)
        ):  # fmt: skip
            continue
        tried.add(shapes)
        for how in ("resample", "tile"):
            yield [resampled(t, s, rng, how) for t, s in zip(tensors, shapes)]
