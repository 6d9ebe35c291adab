"""DataParallel, for programs that wrap their model in it: with one processor it is the model."""

from __future__ import annotations

from typing import Any

from clew import device

from ..modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls the module; there is no second device to share the batch with.

    Args:
        module: the module; it is called as it is.
        device_ids: None, or devices that are the CPU.
        output_device: None, or the CPU.
        dim: the batch's dim; not used.

    Shapes:
        inputs, kwargs: what the module takes.
        returns: what the module gives.

    Raises:
        RuntimeError: for other devices.

    Example:
        >>> clew.nn.DataParallel(clew.nn.Linear(4, 3))(clew.ones(2, 4)).shape
        clew.Size([2, 3])
    """

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        wanted = [*(device_ids or ()), *([] if output_device is None else [output_device])]
        if not all(isinstance(d, (str, device)) and device(d).type == "cpu" for d in wanted):
            raise RuntimeError("DataParallel: this build of clew computes on the CPU only")
        self.module = module
        self.device_ids: list[int] = []
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """Calls a module, as DataParallel does.

    Args:
        module: the module.
        inputs: its arguments.
        device_ids: None, or devices that are the CPU.
        output_device: None, or the CPU.
        dim: the batch's dim; not used.
        module_kwargs: its named arguments.

    Returns:
        what the module returns.

    Example:
        >>> from clew.nn.parallel import data_parallel
        >>> data_parallel(nn.ReLU(), clew.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    made = DataParallel(module, device_ids, output_device, dim)
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    return made(*args, **(module_kwargs or {}))
