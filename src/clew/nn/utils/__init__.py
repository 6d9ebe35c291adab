"""Utilities of nn: gradient clipping, packed sequences, parametrizations, pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import rnn as rnn
from .clip_grad import clip_grad_norm as clip_grad_norm
from .clip_grad import clip_grad_norm_ as clip_grad_norm_
from .clip_grad import clip_grad_value_ as clip_grad_value_
from .clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from .clip_grad import get_total_norm as get_total_norm
from .convert_parameters import parameters_to_vector as parameters_to_vector
from .convert_parameters import vector_to_parameters as vector_to_parameters

# These two functions hide the files of the same names, so they are imported here and not later.
from .spectral_norm import remove_spectral_norm as remove_spectral_norm
from .spectral_norm import spectral_norm as spectral_norm
from .weight_norm import remove_weight_norm as remove_weight_norm
from .weight_norm import weight_norm as weight_norm

if TYPE_CHECKING:
    from . import fusion as fusion
    from . import init as init
    from . import memory_format as memory_format
    from . import parametrizations as parametrizations
    from . import parametrize as parametrize
    from . import prune as prune
    from . import stateless as stateless
    from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
    from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
    from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
    from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
    from .init import skip_init as skip_init
    from .memory_format import (
        convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format,
    )
    from .memory_format import (
        convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format,
    )

# The rest is imported at its first use.
_LATER = {
    "skip_init": "init",
    "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
}
_MODULES = (
    "parametrizations",
    "parametrize",
    "prune",
    "stateless",
    "fusion",
    "init",
    "memory_format",
)


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        import importlib
        import sys

        if name in _LATER:
            found = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
            setattr(sys.modules[__name__], name, found)
            return found
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        from clew._namespace import missing_name

        raise missing_name(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES} - {"Any", "TYPE_CHECKING", "annotations"})
