"""Settings along a chain of data pipes."""

from __future__ import annotations

from typing import Any

from clew._torch.utils.data.datapipes.datapipe import pipes_of
from clew.utils.data.sampler import _draw_seed


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = None
) -> Any:
    """Leaves one of several shares to this process."""
    datapipe._pipe_share(num_of_instances, instance_id)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switches shuffling on or off along a chain; without a shuffler, on adds one at the end."""
    return datapipe._pipe_settle(shuffle)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Seeds the pipes of a chain that draw, from a generator."""
    for pipe in pipes_of(datapipe):
        if hasattr(pipe, "set_seed"):
            pipe.set_seed(_draw_seed(rng))
    return datapipe


def get_all_graph_pipes(graph: Any) -> list[Any]:
    """The pipes of what `graph.traverse_dps` gives."""
    found: list[Any] = []
    for pipe, inner in graph.values():
        found += [p for p in (pipe, *get_all_graph_pipes(inner)) if not any(p is q for q in found)]
    return found
