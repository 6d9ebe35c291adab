"""Naming a class of data pipes as a method of all."""

from __future__ import annotations

from typing import Any

from clew._torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe


class functional_datapipe:
    """A decorator that makes a class a method of data pipes: `pipe.name(...)`.

    Args:
        name: the method's name.
        enable_df_api_tracing: accepted; there are no frames.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        if not isinstance(cls, type) or not issubclass(cls, IterDataPipe | MapDataPipe):
            raise TypeError("functional_datapipe: only a class of data pipes can be named")
        kind: Any = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        kind.register_datapipe_as_function(self.name, cls)
        return cls
