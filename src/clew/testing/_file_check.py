"""Checks that a text holds others, in their order."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = ["FileCheck"]

_KINDS = {
    "CHECK": "check", "CHECK-NOT": "check_not", "CHECK-SAME": "check_same",
    "CHECK-NEXT": "check_next", "CHECK-DAG": "check_dag", "CHECK-REGEX": "check_regex",
    "CHECK-SOURCE-HIGHLIGHTED": "check_source_highlighted",
}  # fmt: skip
_LINE = re.compile(r"#\s*(CHECK(?:-[A-Z-]+)?):\s*(.*)$")
_COUNTED = re.compile(r"#\s*CHECK-COUNT-(?:(EXACTLY)-)?(\d+):\s*(.*)$")


class FileCheck:
    """Checks of a text, each of which goes on where the one before has found something.

    Example:
        >>> from clew.testing import FileCheck
        >>> text = "a = relu(x)\\nb = tanh(a)\\nreturn b"
        >>> FileCheck().check("relu").check_next("tanh").check_not("sigmoid").run(text)
    """

    def __init__(self) -> None:
        self._checks: list[tuple[str, str, Any]] = []

    def _with(self, kind: str, text: str, more: Any = None) -> FileCheck:
        if not isinstance(text, str):
            raise TypeError(f"FileCheck.{kind}: expected a string; got {type(text).__name__}")
        self._checks.append((kind, text, more))
        return self

    def check(self, text: str) -> FileCheck:
        """The text comes next, somewhere.

        Args:
            text: what is looked for.
        """
        return self._with("check", text)

    def check_not(self, text: str) -> FileCheck:
        """The text does not come before what the next check finds; before the end if it is the
        last.

        Args:
            text: what is looked for.
        """
        return self._with("check_not", text)

    def check_same(self, text: str) -> FileCheck:
        """The text comes on the line on which the check before it ended.

        Args:
            text: what is looked for.
        """
        return self._with("check_same", text)

    def check_next(self, text: str) -> FileCheck:
        """The text comes on the line behind that on which the check before it ended.

        Args:
            text: what is looked for.
        """
        return self._with("check_next", text)

    def check_count(self, text: str, count: int, exactly: bool = False) -> FileCheck:
        """The text comes several times.

        Args:
            text: what is looked for.
            count: how many times.
            exactly: it does not come again behind these, before what the next check finds.
        """
        self._with("check_count", text, count)
        return self.check_not(text) if exactly else self

    def check_dag(self, text: str) -> FileCheck:
        """The text comes next; checks of this kind behind one another in any order.

        Args:
            text: what is looked for.
        """
        return self._with("check_dag", text)

    def check_source_highlighted(self, text: str) -> FileCheck:
        """The text comes next, and the line below it underlines it with `~`.

        Args:
            text: what is looked for.
        """
        return self._with("check_source_highlighted", text)

    def check_regex(self, text: str) -> FileCheck:
        """Something that the regular expression matches comes next.

        Args:
            text: the expression.

        Returns:
            This object, as all checks do.
        """
        return self._with("check_regex", text)

    def __repr__(self) -> str:
        return "FileCheck checks:\n" + "".join(
            f"\t{_shown(kind)}: {text}\n" for kind, text, _ in self._checks
        )

    def run(self, *texts: Any) -> None:
        """Goes through the checks.

        Args:
            texts: the text, or something whose text is checked; or first a text with checks in
                comments (`# CHECK: relu`), which come behind this object's own.

        Raises:
            RuntimeError: one does not hold.
        """
        if len(texts) not in (1, 2):
            raise TypeError(f"FileCheck.run: expected one or two texts; got {len(texts)}")
        own = self
        if len(texts) == 2:
            own = FileCheck()
            own._checks = [*self._checks, *_read(str(texts[0]))]
        if not own._checks:
            raise RuntimeError("FileCheck.run: there are no checks")
        _Run(str(texts[-1])).all(own._checks)


def _shown(kind: str) -> str:
    return "CHECK" if kind == "check" else "CHECK-" + kind[6:].replace("_", "-").upper()


def _read(text: str) -> list[tuple[str, str, Any]]:
    """The checks in a text's comments."""
    made = FileCheck()
    for line in text.splitlines():
        counted, found = _COUNTED.search(line), _LINE.search(line)
        if counted is not None:
            made.check_count(counted[3].strip(), int(counted[2]), bool(counted[1]))
        elif found is not None:
            if found[1] not in _KINDS:
                raise RuntimeError(f"FileCheck: there is no {found[1]}")
            made._with(_KINDS[found[1]], found[2].strip())
    return made._checks


class _Run:
    def __init__(self, text: str) -> None:
        self.text = text
        self.start = self.end = 0  # of what the last check has found

    def all(self, checks: list[tuple[str, str, Any]]) -> None:
        nots: list[str] = []
        k = 0
        while k < len(checks):
            kind, text, more = checks[k]
            k += 1
            if kind == "check_not":
                nots.append(text)
                continue
            before = self.end
            if kind == "check_dag":
                group = [text]
                while k < len(checks) and checks[k][0] == "check_dag":
                    group.append(checks[k][1])
                    k += 1
                self._dag(group)
            elif kind == "check_count":
                for n in range(more):
                    self._find(kind, text)
                    if n == 0:
                        first = self.start
                self.start = first if more else self.start
            else:
                self._find(kind, text)
            self._absent(nots, before, self.start)
            nots = []
        self._absent(nots, self.end, len(self.text))

    def _fail(self, what: str, kind: str, text: str, begin: int = 0) -> RuntimeError:
        part = self.text[begin : begin + 2000]
        return RuntimeError(
            f"Expected {what} {text!r}\nSearched string:\n{part}\nFrom {_shown(kind)}: {text}"
        )

    def _absent(self, nots: list[str], begin: int, end: int) -> None:
        for text in nots:
            if self.text.find(text, begin, end) >= 0:
                raise self._fail("to not find", "check_not", text, begin)

    def _line(self, behind: int) -> tuple[int, int]:
        """Where the line of the last find begins and ends, or one behind it."""
        end = self.text.find("\n", self.end)
        begin = self.end
        for _ in range(behind):
            if end < 0:
                return len(self.text), len(self.text)
            begin, end = end + 1, self.text.find("\n", end + 1)
        return begin, len(self.text) if end < 0 else end

    def _find(self, kind: str, text: str) -> None:
        begin, end = self.end, len(self.text)
        if kind in ("check_same", "check_next"):
            begin, end = self._line(kind == "check_next")
        if kind == "check_regex":
            found = re.compile(text).search(self.text, begin)
            if found is None:
                raise self._fail("to find a match of", kind, text, begin)
            self.start, self.end = found.span()
            return
        accepts: Callable[[int], bool] = lambda at: True  # noqa: E731
        if kind == "check_source_highlighted":
            accepts = lambda at: self._underlined(at, len(text))  # noqa: E731
        at = self.text.find(text, begin, end)
        while at >= 0 and not accepts(at):
            at = self.text.find(text, at + 1, end)
        if at < 0:
            raise self._fail("to find", kind, text, begin)
        self.start, self.end = at, at + len(text)

    def _underlined(self, at: int, length: int) -> bool:
        column = at - (self.text.rfind("\n", 0, at) + 1)
        below = self.text.find("\n", at) + 1
        return below > 0 and self.text[below + column : below + column + length] == "~" * length

    def _dag(self, group: list[str]) -> None:
        begin, spans = self.end, []
        for text in group:
            at = self.text.find(text, begin)
            if at < 0:
                raise self._fail("to find", "check_dag", text, begin)
            spans.append((at, at + len(text)))
        self.start, self.end = min(s for s, _ in spans), max(e for _, e in spans)
