"""Models with weights of fewer bits: `quantize_dynamic`, and the marks that models carry."""

from __future__ import annotations

import copy
import warnings
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

    Example:
        >>> from clew.ao.quantization import QuantStub
        >>> QuantStub()(clew.ones(1))
        tensor([1.])
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

    Example:
        >>> from clew.ao.quantization import DeQuantStub
        >>> DeQuantStub()(clew.ones(1))
        tensor([1.])
    """


class QuantWrapper(nn.Module):
    """A module between such marks.

    Args:
        module: the module.

    Example:
        >>> from clew.ao.quantization import QuantWrapper
        >>> QuantWrapper(nn.ReLU())(clew.tensor([-1.0, 2.0]))
        tensor([0., 2.])
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
    """A model whose linear and recurrent modules have weights of 8 bits, or of 16.

    The model itself stays of its class: only what it contains is replaced.

    Args:
        model: the model.
        qconfig_spec: the classes or names of modules that are changed; if None all of Linear, LSTM,
            GRU, LSTMCell, GRUCell and RNNCell. A warning names others, which are not changed.
        dtype: qint8 or float16; qint8 if None.
        mapping: other classes for those of modules.
        inplace: change the model itself.

    Returns:
        The model, or a copy of it.

    Raises:
        NotImplementedError: for another dtype.

    Example:
        >>> from clew.ao.quantization import quantize_dynamic
        >>> model = quantize_dynamic(nn.Sequential(nn.Linear(4, 2), nn.ReLU()))
        >>> model[0].weight().dtype
        clew.int8
    """
    from clew.ao.nn.quantized import dynamic

    dtype = clew.qint8 if dtype is None else dtype
    if dtype not in (clew.qint8, clew.float16):
        raise NotImplementedError(f"quantize_dynamic: dtype must be qint8 or float16; got {dtype}")
    own = {getattr(nn, name): getattr(dynamic, name) for name in dynamic.__all__}
    table = {**own, **(mapping or {})}
    wanted = set(own if qconfig_spec is None else qconfig_spec)
    without = [one.__name__ for one in wanted if isinstance(one, type) and one not in table]
    if without:
        warnings.warn(
            f"quantize_dynamic: there is no form of fewer bits for {', '.join(sorted(without))}; "
            "such modules stay as they are",
            stacklevel=2,
        )
    made = model if inplace else copy.deepcopy(model)

    def change(module: Any, path: str, asked: bool) -> None:
        for name, child in list(module.named_children()):
            place = f"{path}.{name}" if path else name
            kind = type(child)
            within = asked or kind in wanted or place in wanted
            if kind in table and within:
                given = {"dtype": dtype} if table[kind] is own.get(kind) else {}
                setattr(module, name, table[kind].from_float(child, **given))
            else:
                change(child, place, within)

    change(made, "", "" in wanted)
    return made


def fuse_modules(model: Any, modules_to_fuse: Any, inplace: bool = False, **kwargs: Any) -> Any:
    """A model in evaluation mode whose batch norms are computed as part of the convolutions
    before them.

    Args:
        model: the model.
        modules_to_fuse: lists of names: a convolution, a batch norm, perhaps a ReLU.
        inplace: change the model itself.
        kwargs: accepted.

    Returns:
        The model, or a copy of it.

    Raises:
        RuntimeError: if the model is in training mode.

    Example:
        >>> from clew.ao.quantization import fuse_modules
        >>> model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
        >>> fuse_modules(model, ["0", "1", "2"])[1]
        Identity()
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
    call.__doc__ = f"""Raises NotImplementedError: only `quantize_dynamic` is part of clew.

    >>> clew.ao.quantization.{name}()
    Traceback (most recent call last):
    NotImplementedError: ao.quantization.{name}: only quantize_dynamic is part of clew
    """
    return call


prepare, prepare_qat, convert, get_default_qconfig, get_default_qat_qconfig, quantize = map(
    _not_here,
    "prepare prepare_qat convert get_default_qconfig get_default_qat_qconfig quantize".split(),
)


class ObserverBase(nn.Module):
    """What would watch the values of a module: none does."""


class FakeQuantizeBase(nn.Module):
    """What would round values in training: none does."""
