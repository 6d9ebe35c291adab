"""Models with weights of 8 bits: `quantize_dynamic`, and the marks that models carry."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, NoReturn

import clew
from clew import nn

__all__ = [
    "DeQuantStub",
    "QConfig",
    "QuantStub",
    "QuantWrapper",
    "convert",
    "default_dynamic_qconfig",
    "fuse_modules",
    "get_default_qconfig",
    "prepare",
    "prepare_qat",
    "quantize_dynamic",
]


class QConfig(NamedTuple):
    """How the values and weights of a module would be observed."""

    activation: Any
    weight: Any


default_dynamic_qconfig = QConfig(None, None)


class QuantStub(nn.Module):
    """Marks where values would become integers; until a model is converted it changes nothing.

    Args:
        qconfig: how they would be observed.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        return x


class DeQuantStub(QuantStub):
    """Marks where values would become floating point again.

    Args:
        qconfig: how they would be observed.
    """


class QuantWrapper(nn.Module):
    """A module between such marks.

    Args:
        module: the module.
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.quant, self.dequant, self.module = QuantStub(), DeQuantStub(), module

    def forward(self, X: Any) -> Any:
        return self.dequant(self.module(self.quant(X)))


def quantize_dynamic(
    model: Any,
    qconfig_spec: Any = None,
    dtype: Any = None,
    mapping: Any = None,
    inplace: bool = False,
) -> Any:
    """A model whose Linear modules have weights of 8 bits.

    Args:
        model: the model.
        qconfig_spec: the classes or names of modules that are changed: Linear if None.
        dtype: qint8.
        mapping: other classes for those of modules.
        inplace: change the model itself.
    """
    from clew.ao.nn.quantized.dynamic import Linear

    if dtype not in (None, clew.qint8):
        raise NotImplementedError(f"quantize_dynamic: dtype must be qint8; got {dtype}")
    table = {nn.Linear: Linear, **(mapping or {})}
    wanted = set(qconfig_spec or {nn.Linear})
    for one in wanted:
        if isinstance(one, type) and one not in table:
            raise NotImplementedError(
                f"quantize_dynamic: only Linear has a form of 8 bits; got {one.__name__}"
            )
    made = model if inplace else copy.deepcopy(model)

    def change(module: Any, path: str) -> None:
        for name, child in list(module.named_children()):
            place = f"{path}.{name}" if path else name
            kind = type(child)
            if kind in table and (kind in wanted or place in wanted):
                setattr(module, name, table[kind].from_float(child))
            else:
                change(child, place)

    if type(made) in table and type(made) in wanted:
        return table[type(made)].from_float(made)
    change(made, "")
    return made


def fuse_modules(model: Any, modules_to_fuse: Any, inplace: bool = False, **kwargs: Any) -> Any:
    """A model in evaluation mode whose batch norms are computed as part of the convolutions
    before them.

    Args:
        model: the model.
        modules_to_fuse: lists of names: a convolution, a batch norm, perhaps a ReLU.
        inplace: change the model itself.
        kwargs: accepted.
    """
    from clew.nn.utils.fusion import fuse_conv_bn_eval

    made = model if inplace else copy.deepcopy(model)
    if made.training:
        raise RuntimeError("fuse_modules: the model must be in evaluation mode; call .eval() first")
    groups = [modules_to_fuse] if isinstance(modules_to_fuse[0], str) else modules_to_fuse
    for names in groups:
        parts = [made.get_submodule(n) for n in names]
        if "BatchNorm" in type(parts[1]).__name__:
            fused = fuse_conv_bn_eval(parts[0], parts[1])
            for name, part in zip(names, [fused, nn.Identity(), *parts[2:]]):
                parent, _, last = name.rpartition(".")
                setattr(made.get_submodule(parent), last, part)
    return made


def _not_here(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"ao.quantization.{name}: only quantize_dynamic is part of clew")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Raises: only `quantize_dynamic` is part of clew."
    return call


prepare, prepare_qat, convert, get_default_qconfig, get_default_qat_qconfig, quantize = map(
    _not_here,
    "prepare prepare_qat convert get_default_qconfig get_default_qat_qconfig quantize".split(),
)


class ObserverBase(nn.Module):
    """What would watch the values of a module: none does."""


class FakeQuantizeBase(nn.Module):
    """What would round values in training: none does."""
