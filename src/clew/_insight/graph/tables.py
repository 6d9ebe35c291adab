"""Tables of what a graph costs by line, module or operation: rows as data, and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from clew._tensor.html import as_printed

WIDTH = 100
R = TypeVar("R", bound="Row")


def amount(value: int, unit: str = "") -> str:
    """A number in a few characters: "4.72 MB", "1.2 G", "38"."""
    if value < 1000:
        return f"{value} {unit}".strip()
    scaled = float(value)
    for prefix in ("k", "M", "G", "T", "P", "E"):
        scaled /= 1000
        if scaled < 999.5 or prefix == "E":
            break
    return f"{scaled:.3g} {prefix}{unit}"


def counted(count: int, word: str) -> str:
    """ "1 leaf", "3 leaves"."""
    many = word[:-1] + "ves" if word.endswith("f") else word + "s"
    return f"{count:,} {word if count == 1 else many}"


def shape_text(shape: Sequence[int]) -> str:
    """``(2, 3)``, ``(5,)``; ``()`` of a scalar."""
    return str(tuple(shape))


def fit(text: str, width: int) -> str:
    """The text padded to a width, its middle left out where it is longer."""
    if len(text) <= width:
        return text.ljust(width)
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + "…" + text[len(text) - tail :]


def fit_end(text: str, width: int) -> str:
    """The text padded to a width, its beginning left out where it is longer."""
    return text.ljust(width) if len(text) <= width else "…" + text[len(text) - width + 1 :]


def clip(text: str, width: int) -> str:
    """The text's beginning, as far as it has room."""
    return text if len(text) <= width else text[: width - 1] + "…"


@dataclass
class Row:
    """What the operations of one line, module or kind take.

    `held` is what they keep for backward, each storage counted with the operation that kept it
    first, storages of leaves left out; `outputs` is the memory of their results, views left out.
    """

    name: str
    kind: str = ""  # the line's text, the module's class
    count: int = 0
    flops: int = 0
    unknown: int = 0  # operations among them whose FLOPs no formula gives
    held: int = 0  # bytes
    outputs: int = 0  # bytes
    copies: int = 1  # how many equal modules the row stands for
    children: list[Row] = field(default_factory=list, repr=False)

    def look(self) -> tuple[Any, ...]:
        """Equal for modules that are built alike."""
        return (self.kind, self.count)

    def add(self, other: Row) -> None:
        """Counts another row's operations here, too."""
        self.count += other.count
        self.flops += other.flops
        self.unknown += other.unknown
        self.held += other.held
        self.outputs += other.outputs


SORTS = ("order", "count", "flops", "held", "outputs", "name")


class Table(Sequence[Row]):
    """Rows of a graph's table; printed, it is text of at most 100 columns.

    Args:
        title: what stands above the first column.
        rows: the rows, those of modules outermost first.
        nested: whether rows have children that are counted in them.
    """

    def __init__(self, title: str, rows: list[Row], nested: bool = False) -> None:
        self.title = title
        self.nested = nested
        self.top = rows
        self.rows = [row for row, _ in _walk(rows, None)] if nested else rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, which):
        """A row by its number or name."""
        if not isinstance(which, str):
            return self.rows[which]
        for row in self.rows:
            if row.name == which:
                return row
        raise KeyError(f"no row is named {which!r}; there are {[r.name for r in self.rows[:20]]}")

    def __contains__(self, name: object) -> bool:
        return any(row is name or row.name == name for row in self.rows)

    def text(self, sort: str = "order", limit: int = 50, depth: int | None = None) -> str:
        """The table as text.

        Args:
            sort: "order" of the program, or the column whose largest numbers come first: "count",
                "flops", "held", "outputs"; or "name".
            limit: rows shown at most.
            depth: levels of modules shown at most.

        Returns: text of at most 100 columns.

        Raises:
            ValueError: `sort` names no column.
        """
        check_sort(sort)
        top = fold(self.top) if self.nested else self.top
        shown = list(_walk(_sorted(top, sort), depth, sort))
        wide = max([len(self.title), *(2 * d + len(label(r)) for r, d in shown[:limit])])
        wide = min(wide, 44 if self.nested else 32)
        rest = WIDTH - wide - 40
        lines = [
            f"{fit(self.title, wide)} {'ops':>7} {'FLOPs':>9} {'held':>9} {'outputs':>9}  "
            f"{'class' if self.nested else ''}"
        ]
        for row, level in shown[:limit]:
            flops = amount(row.flops) + ("+" if row.unknown else "")
            if row.unknown == row.count:
                flops = "?"
            lines.append(
                f"{indented(row, level, wide)} {row.count:>7} {flops:>9} "
                f"{amount(row.held, 'B'):>9} {amount(row.outputs, 'B'):>9}  "
                f"{clip(row.kind, rest)}"
            )
        if len(shown) > limit:
            lines.append(f"... {len(shown) - limit} more rows")
        return "\n".join(line.rstrip() for line in lines)

    _repr_html_ = as_printed

    def __repr__(self) -> str:
        return self.text()


def check_sort(sort: str) -> None:
    if sort not in SORTS:
        raise ValueError(f"sort must be one of {', '.join(SORTS)}; got {sort!r}")


def label(row: Row) -> str:
    """The row's name, with how many it stands for."""
    return f"{row.name} x{row.copies}" if row.copies > 1 else row.name


def indented(row: Row, level: int, width: int) -> str:
    """The first column of a table: paths keep their end where they have no room."""
    left = "  " * min(level, 8)
    return left + fit_end(label(row), width - len(left))


def _sorted(rows: list[R], sort: str) -> list[R]:
    if sort == "order":
        return rows
    if sort == "name":
        return sorted(rows, key=lambda row: row.name)
    return sorted(rows, key=lambda row: -getattr(row, sort))


def _walk(
    rows: list[Row], depth: int | None, sort: str = "order", level: int = 0
) -> Iterator[tuple[Row, int]]:
    if depth is not None and level >= depth:
        return
    for row in rows:
        yield row, level
        yield from _walk(_sorted(row.children, sort), depth, sort, level + 1)


# Equal modules in one row ---------------------------------------------------------------------


def fold(rows: list[R]) -> list[R]:
    """Siblings with consecutive numbers and equal structure as one row with their sums."""
    out: list[R] = []
    group: list[R] = []

    def close() -> None:
        if len(group) > 1:
            stem = group[0].name[: len(group[0].name) - len(_number(group[0]))] + "*"
            out.append(_merged(group, f"{group[0].name}-{_number(group[-1])}", stem))
        elif group:
            only = group[0]
            out.append(_like(only, only.name, fold(only.children)))
        group.clear()

    for row in rows:
        follows = group and _follows(group[-1], row) and structure(group[-1]) == structure(row)
        if not follows:
            close()
        group.append(row)
    close()
    return out


def structure(row: Row) -> tuple[Any, ...]:
    """Equal for modules that are built alike, with all that is in them."""
    last = row.name.rpartition(".")[2]
    own = "#" if last.isdigit() else last
    return (own, row.look(), tuple(structure(child) for child in row.children))


def _number(row: Row) -> str:
    return row.name.rpartition(".")[2]


def _follows(before: Row, row: Row) -> bool:
    a, b = before.name.rpartition("."), row.name.rpartition(".")
    return a[0] == b[0] and a[2].isdigit() and b[2].isdigit() and int(b[2]) == int(a[2]) + 1


def _like(row: R, name: str, children: list[Any]) -> R:
    return replace(row, name=name, children=children)


def _merged(rows: list[R], name: str, stem: str) -> R:
    """One row of equal ones; `stem` is what its children's names begin with."""
    first = rows[0]
    merged = _like(first, name, [])
    for row in rows[1:]:
        merged.add(row)
    merged.copies = sum(row.copies for row in rows)
    for same in zip(*(row.children for row in rows)):
        below = stem + same[0].name[len(first.name) :]
        merged.children.append(_merged(list(same), below, below))
    merged.children = fold(merged.children)
    return merged
