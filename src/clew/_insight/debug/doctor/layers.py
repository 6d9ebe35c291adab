"""Layers of which a part is left aside, or that several modules share without knowing."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from clew import _C
from clew._base import provenance as _provenance
from clew._insight.debug.doctor.reading import Reading, Recorded
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.source import parsed
from clew._insight.debug.place import Place


class FirstLayersState(Reading):
    mistake = "the last state of a lower layer is taken"

    def read(self, graph: Recorded) -> None:
        for i in graph.all("select"):
            edge = graph.maker(i)
            if edge is None or graph.ops[edge[0]] != "_cat":
                continue
            joined = edge[0]
            layers = graph.inputs[joined]
            index = graph.attributes(i).get("index")
            if graph.attributes(joined).get("dim") != 0 or len(layers) < 2:
                continue
            if not isinstance(index, int) or not 0 <= index < len(layers) - 1:
                continue
            if any(e is None or graph.ops[e[0]] != "_recurrent" or e[1] == 0 for e in layers):
                continue
            above = [e[0] for e in layers[index + 1 :]]
            if not self._feeds(graph, layers[index][0], set(above)):
                continue  # two directions of one layer
            if any(self._is_used(graph, at, joined) for at in above):
                continue
            others = [j for j, _ in graph.consumers(joined)]
            if any(graph.ops[j] != "select" for j in others):
                continue
            if max(graph.attributes(j).get("index", 0) for j in others) > index:
                continue
            self.find(
                graph.place(i),
                f"of the states of {len(layers)} recurrent layers that of number {index} is taken: "
                f"what the {len(above)} above it compute is used nowhere, and their weights get "
                "gradients of 0",
                "take that of the last layer: h[-1]",
            )

    @staticmethod
    def _feeds(graph: Recorded, i: int, above: set[int]) -> bool:
        """Whether a layer's outputs go into one of those above it."""
        pending, seen = [i], {i}
        while pending:
            for j, argument in graph.consumers(pending.pop()):
                edge = graph.maker(j, argument)
                if j in above and argument == 0:
                    return True
                if j not in seen and graph.ops[j] in ("_masked_dropout", "_cat"):
                    if edge is not None and edge[1] == 0 and len(graph.shape(j)) == 3:
                        seen.add(j)
                        pending.append(j)
        return False

    @staticmethod
    def _is_used(graph: Recorded, i: int, joined: int) -> bool:
        """Whether a layer's outputs are used by others than a layer above, or its states."""
        return any(
            j != joined and graph.ops[j] not in ("_recurrent", "_cat")
            for j, _ in graph.consumers(i)
        )


class ModuleAsDefault(Rule):
    mistake = "two modules are one: they share their weights"

    def finish(self) -> None:
        shared: dict[int, list[Any]] = {}  # by module: the class, the argument, its holders
        for holder in {id(m): m for model in self.run.models for m in model.modules()}.values():
            for name, given in _defaults(type(holder)).items():
                if any(child is given for child in holder._modules.values()):
                    shared.setdefault(id(given), [type(holder), name, given, 0])[3] += 1
        for kind, name, given, times in shared.values():
            count = sum(p.numel() for p in given.parameters())
            if times < 2 or not count:
                continue
            self.find(
                _place_of(kind, name),
                f"{times} modules of {kind.__name__} got the default of {name}, which was made "
                f"once: its {count:,} numbers are counted and trained once, not {times} times",
                f"make it in __init__: {name}=None, then {type(given).__name__}(...) if it is None",
                id(given),
            )


def _defaults(kind: type) -> dict[str, Any]:
    """The arguments of a class that have a module as their default."""
    from clew.nn import Module

    function = vars(kind).get("__init__")
    if not inspect.isfunction(function):
        return {}
    every = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in every if isinstance(p.default, Module)}


def _place_of(kind: type, name: str) -> Place | None:
    """The line of an argument's default."""
    code = inspect.unwrap(vars(kind)["__init__"]).__code__
    for node in ast.walk(parsed(code.co_filename)):
        if not isinstance(node, ast.FunctionDef) or node.name != "__init__":
            continue
        if not node.lineno - 8 < code.co_firstlineno <= node.lineno:
            continue
        line = next(
            (a.lineno for a in [*node.args.args, *node.args.kwonlyargs] if a.arg == name), 0
        )
        return Place(None, code.co_filename, line or node.lineno)
    return None


class LayerLeftOut(Rule):
    """Of a layer that is called twice where one like it stands unused beside it."""

    mistake = "a layer is called twice, and one like it never"

    def finish(self) -> None:
        known = self.run.optimized()
        for holder in {id(m): m for model in self.run.models for m in model.modules()}.values():
            unused = {
                name: child
                for name, child in holder._modules.items()
                if child is not None and self._is_idle(child, known)
            }
            if unused:
                self._judge(holder, unused)

    @staticmethod
    def _is_idle(child: Any, known: set[int]) -> bool:
        params = list(child.parameters())
        return bool(params) and all(
            id(p) in known and p.grad is None and _C._recorded_use(p) is None for p in params
        )

    def _judge(self, holder: Any, unused: dict[str, Any]) -> None:
        code = getattr(vars(type(holder)).get("forward"), "__code__", None)
        if code is None or code.co_filename.startswith(_provenance._LIBRARY):
            return
        tree = parsed(code.co_filename)
        calls: dict[str, list[int]] = {}
        for node in _own(tree, code):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if isinstance(node.func.value, ast.Name) and node.func.value.id == "self":
                    calls.setdefault(node.func.attr, []).append(node.lineno)
        for name, child in unused.items():
            for other, lines in calls.items():
                twin = holder._modules.get(other)
                if len(lines) != 2 or lines[0] == lines[1] or twin is None:
                    continue
                if type(twin) is not type(child) or _shapes(twin) != _shapes(child):
                    continue
                count = sum(p.numel() for p in child.parameters())
                self.find(
                    Place(None, code.co_filename, max(lines)),
                    f"self.{other} is called at lines {min(lines)} and {max(lines)}, and "
                    f"self.{name}, which is like it, nowhere: its {count:,} numbers never got a "
                    "gradient",
                    f"call self.{name} here, or leave it out of the module",
                    (id(holder), name),
                )


def _shapes(module: Any) -> list[tuple[int, ...]]:
    return [tuple(p.shape) for p in module.parameters()]


def _own(tree: ast.AST, code: Any) -> list[ast.AST]:
    """The nodes of a function's body outside of loops, where one call may run many times."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if node.lineno - 8 < code.co_firstlineno <= node.lineno:
                return [n for s in node.body if not isinstance(s, _LOOPS) for n in ast.walk(s)]
    return []


_LOOPS = (ast.For, ast.While)
