"""`match` statements as `if` and `elif`, before branches are looked for."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from clew.export._syntax import ask, assign, load, locate, store_name, tuple_of

__all__ = ["without_match"]


def without_match(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements with each `match` as a chain of `if` statements."""
    if not any(isinstance(n, ast.Match) for s in body for n in ast.walk(s)):
        return body
    changer = _Chains()
    made: list[ast.stmt] = []
    for s in body:
        found = changer.visit(s)
        made += found if isinstance(found, list) else [found]
    return made


class _Chains(ast.NodeTransformer):
    """Writes chains; inner functions are rewritten when their turn comes."""

    def __init__(self) -> None:
        self._count = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        self._count += 1
        subject, fits = f"_clew_subject_{self._count}", f"_clew_fits_{self._count}"
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            rest = self._case(case, load(subject), fits, rest)
        made = [assign(subject, node.subject), *rest]
        for s in made:
            _fill(s, node)
        return made

    def _case(
        self, case: ast.match_case, subject: ast.expr, fits: str, rest: list[ast.stmt]
    ) -> list[ast.stmt]:
        test = _all_of(list(_tests(case.pattern, subject)))
        names = dict(_captures(case.pattern, subject))
        bind: list[ast.stmt] = []
        if names:
            targets = tuple_of([store_name(n) for n in names], ast.Store())
            bind = [ast.Assign([targets], tuple_of(list(names.values())))]
        always = isinstance(test, ast.Constant)
        if case.guard is None:
            body = [*bind, *case.body]
            made: list[ast.stmt] = body if always else [_if(test, body, rest, case)]
        elif not bind:
            asked = case.guard if always else _all_of([test, case.guard])
            made = [_if(asked, case.body, rest, case)]
        elif always:
            made = [*bind, _if(case.guard, case.body, rest, case)]
        else:  # names are bound before the guard asks
            inner = _if(test, [*bind, assign(fits, case.guard)], [], case)
            chain = _if(load(fits), case.body, rest, case)
            made = [assign(fits, ast.Constant(False)), inner, chain]
        return made


def _if(test: ast.expr, body: list[ast.stmt], rest: list[ast.stmt], case: ast.match_case) -> ast.If:
    made = ast.If(test, body, rest)
    # The pattern's own line is the one that a message should name.
    made.lineno = made.end_lineno = case.pattern.lineno
    made.col_offset = made.end_col_offset = case.pattern.col_offset
    return made


def _fill(node: ast.AST, like: ast.AST) -> None:
    """Gives new parts the place of what they stand in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.expr)) and not hasattr(child, "lineno"):
            locate(child, like)
        _fill(child, child if hasattr(child, "lineno") else like)
    if isinstance(node, (ast.stmt, ast.expr)) and not hasattr(node, "lineno"):
        locate(node, like)


def _all_of(tests: list[ast.expr]) -> ast.expr:
    if not tests:
        return ast.Constant(True)
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _any_of(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)


def _part(subject: ast.expr, index: int) -> ast.expr:
    return ast.Subscript(copy.deepcopy(subject), ast.Constant(index), ast.Load())


def _parts(pattern: ast.MatchSequence, subject: ast.expr) -> Iterator[tuple[Any, ast.expr]]:
    """The patterns of a sequence, each with what it looks at."""
    count = len(pattern.patterns)
    star = next((k for k, p in enumerate(pattern.patterns) if isinstance(p, ast.MatchStar)), count)
    for k, p in enumerate(pattern.patterns):
        if k < star:
            yield p, _part(subject, k)
        elif k > star:
            yield p, _part(subject, k - count)
        else:
            after = count - 1 - star
            upper = ast.Constant(-after) if after else None
            cut = ast.Slice(ast.Constant(star), upper)
            rows = ast.Subscript(copy.deepcopy(subject), cut, ast.Load())
            yield p, ask("match_star", rows)


def _attributes(pattern: ast.MatchClass, subject: ast.expr) -> Iterator[tuple[Any, ast.expr]]:
    """The patterns of a class, each with what it looks at."""
    for k, p in enumerate(pattern.patterns):
        yield p, ask("match_part", copy.deepcopy(subject), copy.deepcopy(pattern.cls),
                     ast.Constant(k))  # fmt: skip
    for name, p in zip(pattern.kwd_attrs, pattern.kwd_patterns):
        yield p, ast.Attribute(copy.deepcopy(subject), name, ast.Load())


def _tests(pattern: Any, subject: ast.expr) -> Iterator[ast.expr]:
    """Conditions under which a pattern fits, in order."""
    seen = copy.deepcopy(subject)
    if isinstance(pattern, ast.MatchValue):
        yield ast.Compare(seen, [ast.Eq()], [pattern.value])
    elif isinstance(pattern, ast.MatchSingleton):
        yield ast.Compare(seen, [ast.Is()], [ast.Constant(pattern.value)])
    elif isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            yield from _tests(pattern.pattern, subject)
    elif isinstance(pattern, ast.MatchOr):
        yield _any_of([_all_of(list(_tests(p, subject))) for p in pattern.patterns])
    elif isinstance(pattern, ast.MatchSequence):
        starred = any(isinstance(p, ast.MatchStar) for p in pattern.patterns)
        least = ast.Constant(len(pattern.patterns) - starred)
        yield ask("match_sequence", seen, least, ast.Constant(starred))
        for p, part in _parts(pattern, subject):
            yield from _tests(p, part)
    elif isinstance(pattern, ast.MatchMapping):
        yield ask("match_mapping", seen, tuple_of([copy.deepcopy(k) for k in pattern.keys]))
        for key, p in zip(pattern.keys, pattern.patterns):
            yield from _tests(p, ast.Subscript(copy.deepcopy(subject), key, ast.Load()))
    elif isinstance(pattern, ast.MatchClass):
        yield ask("match_class", seen, copy.deepcopy(pattern.cls),
                  ast.Constant(len(pattern.patterns)),
                  tuple_of([ast.Constant(n) for n in pattern.kwd_attrs]))  # fmt: skip
        for p, part in _attributes(pattern, subject):
            yield from _tests(p, part)


def _captures(pattern: Any, subject: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that a pattern binds, each with its value."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            yield from _captures(pattern.pattern, subject)
        if pattern.name is not None:
            yield pattern.name, copy.deepcopy(subject)
    elif isinstance(pattern, ast.MatchStar):
        if pattern.name is not None:
            yield pattern.name, subject
    elif isinstance(pattern, ast.MatchSequence):
        for p, part in _parts(pattern, subject):
            yield from _captures(p, part)
    elif isinstance(pattern, ast.MatchMapping):
        for key, p in zip(pattern.keys, pattern.patterns):
            part = ast.Subscript(copy.deepcopy(subject), copy.deepcopy(key), ast.Load())
            yield from _captures(p, part)
        if pattern.rest is not None:
            keys = tuple_of([copy.deepcopy(k) for k in pattern.keys])
            yield pattern.rest, ask("match_rest", copy.deepcopy(subject), keys)
    elif isinstance(pattern, ast.MatchClass):
        for p, part in _attributes(pattern, subject):
            yield from _captures(p, part)
    elif isinstance(pattern, ast.MatchOr):
        found = [dict(_captures(p, subject)) for p in pattern.patterns]
        tests = [_all_of(list(_tests(p, subject))) for p in pattern.patterns]
        for name in found[0]:
            value = found[-1][name]
            for names, test in zip(reversed(found[:-1]), reversed(tests[:-1])):
                value = ast.IfExp(copy.deepcopy(test), names[name], value)
            yield name, value
