"""Variables that a function shares with functions in it or around it, which a branch may change.

A branch or a round becomes a function. Variables that only the rewritten function has are its
arguments and its results. A variable in which an inner function or a lambda reads or writes stays
where it is, in a cell: its value before and after a branch is taken from there.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Cell", "Scope", "declarations", "scope_of", "undeclared"]

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp)


class Scope:
    """What the functions around and in a function see of its variables.

    Attributes:
        shared: variables that stay in cells.
        moved: those of them that a call may change.
        declared: names after `global` and `nonlocal`, and which of both.
    """

    def __init__(self, shared: set[str], moved: set[str], declared: dict[str, type]) -> None:
        self.shared, self.moved, self.declared = shared, moved, declared


def scope_of(body: list[ast.stmt], own: set[str]) -> Scope:
    """The scope of a function whose variables are ``own``."""
    declared: dict[str, type] = {}
    captured: set[str] = set()
    moved: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            declared.update(dict.fromkeys(node.names, type(node)))
        if isinstance(node, _INNER):
            for n in ast.walk(node):
                if isinstance(n, ast.Name):
                    captured.add(n.id)
                elif isinstance(n, ast.Nonlocal):
                    moved.update(n.names)
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for s in body:
        visit(s)
    moved &= own
    return Scope((captured & own) | moved | {*declared}, moved | {*declared}, declared)


class _Undeclared(ast.NodeTransformer):
    """Takes `global` and `nonlocal` of the function itself out; they then stand at its top."""

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


def undeclared(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements without `global` and `nonlocal`."""
    return [_Undeclared().visit(s) for s in body]


def declarations(names: Iterable[str], scope: Scope) -> list[ast.stmt]:
    """`global` and `nonlocal` of a function that is made inside another."""
    here = [n for n in names if n in scope.shared]
    worldwide = [n for n in here if scope.declared.get(n) is ast.Global]
    around = [n for n in here if n not in worldwide]
    return [
        *([ast.Global(worldwide)] if worldwide else []),
        *([ast.Nonlocal(around)] if around else []),
    ]


class Cell:
    """Where a shared variable is: a cell of functions, or a module's table.

    Args:
        name: of the variable.
        reads: a function that reads it.
        unbound: what stands for no value.
    """

    def __init__(self, name: str, reads: Callable[[], Any], unbound: Any) -> None:
        assert isinstance(reads, types.FunctionType)
        self.name, self._unbound = name, unbound
        self._table = None if reads.__closure__ else reads.__globals__
        self._cell = reads.__closure__[0] if reads.__closure__ else None
        self.worldwide = self._cell is None
        self.key: Any = ("global", id(self._table), name) if self.worldwide else id(self._cell)

    def get(self) -> Any:
        """Its value."""
        if self._cell is None:
            assert self._table is not None
            return self._table.get(self.name, self._unbound)
        try:
            return self._cell.cell_contents
        except ValueError:
            return self._unbound

    def set(self, value: Any) -> None:
        """Gives it a value."""
        if self._cell is not None:
            if value is self._unbound:
                if self.get() is not self._unbound:
                    del self._cell.cell_contents
            else:
                self._cell.cell_contents = value
            return
        assert self._table is not None
        if value is self._unbound:
            self._table.pop(self.name, None)
        else:
            self._table[self.name] = value
