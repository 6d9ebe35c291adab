"""Rewritings of a graph, in one form."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple


class PassResult(NamedTuple):
    """What a rewriting gives."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A rewriting: its conditions are checked before and after `call`."""

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """Rewrites a graph.

        Args:
            graph_module: whose graph it is.
        """

    def requires(self, graph_module: Any) -> None:  # noqa: B027
        """Raises where the graph is not what the rewriting needs."""

    def ensures(self, graph_module: Any) -> None:  # noqa: B027
        """Raises where the rewriting went wrong."""
