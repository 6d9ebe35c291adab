"""doctor: the context manager, and what `clew run --doctor` uses."""

from __future__ import annotations

import sys
from typing import Any

from clew._insight.debug.doctor.finding import Finding, report

__all__ = ["doctor"]


class doctor:
    """Watches a training program and reports what is silently wrong with it.

    Looks at the first steps in full and at later ones now and then; when the block is left, it
    writes what it found to stderr, each finding with the line, what was seen and what to change.
    Where nothing is wrong it writes nothing. `clew run --doctor train.py` watches a whole program.

    Args:
        quiet: only keep the findings, write nothing.

    Attributes:
        findings: what was found, complete when the block is left.

    >>> net = nn.Linear(4, 3)
    >>> opt = clew.optim.SGD(net.parameters(), lr=0.1)
    >>> x, y = clew.randn(8, 4), clew.arange(8) % 3
    >>> with clew.debug.doctor(quiet=True) as watch:
    ...     for _ in range(4):
    ...         opt.zero_grad()
    ...         loss = nn.functional.cross_entropy(net(x).softmax(1), y)
    ...         loss.backward()
    ...         opt.step()
    >>> [found.mistake for found in watch.findings]
    ['softmax before cross_entropy']
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.findings: list[Finding] = []
        self._observer: Any = None

    def __enter__(self) -> doctor:
        from clew._insight.debug.doctor.observer import Observer

        if self._observer is not None:
            raise RuntimeError("doctor: this doctor watches already; make another for an inner one")
        self._observer = Observer()
        self._observer.install()
        return self

    def __exit__(self, kind: Any, *rest: object) -> None:
        observer, self._observer = self._observer, None
        observer.remove()
        failed = kind is not None and not issubclass(kind, SystemExit)
        self.findings = observer.finish(failed)
        if self.findings and not self.quiet:
            sys.stdout.flush()
            print(report(self.findings), file=sys.stderr)

    def __str__(self) -> str:
        return report(self.findings)
