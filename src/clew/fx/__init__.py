"""Programs as data: record a module's steps, change them, and run them again.

>>> class Scaled(nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.linear = nn.Linear(2, 2)
...     def forward(self, x):
...         return self.linear(x).relu() * 2
>>> traced = clew.fx.symbolic_trace(Scaled())
>>> print(traced.code.strip())
def forward(self, x):
    linear = self.linear(x);  x = None
    relu = linear.relu();  linear = None
    mul = relu * 2;  relu = None
    return mul
"""

from __future__ import annotations

from . import immutable_collections as immutable_collections
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
