"""Rewrites of recorded models for faster inference."""

from __future__ import annotations

import copy
from typing import Any

from clew import fx, nn
from clew.nn.utils.fusion import fuse_conv_bn_eval

__all__ = ["fuse"]


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> Any:
    """Computes batch norms that follow a convolution as part of it.

    Args:
        model: a model in evaluation mode.
        inplace: change the model.
        no_trace: the model is a GraphModule already.
    """
    made = model if inplace else copy.deepcopy(model)
    traced = made if no_trace else fx.symbolic_trace(made)
    modules = dict(traced.named_modules())
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    convolutions = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    for node in list(traced.graph.nodes):
        if node.op != "call_module" or not isinstance(modules[node.target], norms):
            continue
        before = node.args[0]
        if before.op != "call_module" or len(before.users) > 1:
            continue
        if not isinstance(modules[before.target], convolutions):
            continue
        fused = fuse_conv_bn_eval(modules[before.target], modules[node.target])
        traced.add_submodule(before.target, fused)
        modules[before.target] = fused
        node.replace_all_uses_with(before)
        traced.graph.erase_node(node)
    traced.recompile()
    return traced
