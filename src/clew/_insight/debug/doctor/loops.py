"""Loops as they are written: steps made by hand, a backward that stands behind its loop, a loss
with the wrong sign."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

from clew import Tensor
from clew._base.statements import names_in
from clew._insight.debug.doctor.reading import recorded
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Call, Pass, Watched
from clew._insight.debug.doctor.source import SourceRule, parsed, statements, within
from clew._insight.debug.holders import owner_of
from clew._insight.debug.place import Place

_IN_A_ROW = 3  # times that something must happen to be no accident


class NeverClearedByHand(Rule):
    """Of parameters that the program changes itself: in no optimizer."""

    mistake = "gradients are never cleared: they add up over the steps"

    FEW = 2  # parameters that are looked at
    SOME = 64  # numbers of each
    IDLE = 4  # backwards after which nobody steps

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By parameter: itself, its numbers, its gradient's identity and version, times in a row.
        self.last: dict[int, tuple[Tensor, Any, int, int, int]] = {}
        self.idle = 0  # backwards in a row between which nothing changed

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or self.run.optimizers or self.idle >= self.IDLE:
            return
        self.idle += 1
        now: dict[int, tuple[Tensor, Any, int, int, int]] = {}
        for p in pass_.leaves[: self.FEW]:
            some = values(p).reshape(-1)[: self.SOME].copy()
            grad = p.grad
            if grad is None or not values(grad).any():
                now[id(p)] = (p, some, 0, 0, 0)
                continue
            _, before, identity, version, times = self.last.get(id(p), (p, some, 0, 0, 0))
            # The backward in between wrote into it once; whoever steps changes the parameter.
            same = identity in (0, id(grad)) and (not identity or grad._version - version == 1)
            stepped = not np.array_equal(before, some, equal_nan=True)
            times = times + 1 if same and stepped else 0
            self.idle = 0 if stepped else self.idle
            now[id(p)] = (p, some, id(grad), grad._version, times)
            if times >= _IN_A_ROW:
                self.find(
                    pass_.place,
                    f"{times} times in a row {self.run.name_of(p)} was changed after backward, and "
                    "its .grad was not cleared: it still holds what the steps before had used, "
                    f"and has a norm of {float(np.linalg.norm(values(grad))):.4g}",
                    "set p.grad = None, or call p.grad.zero_(), after each step",
                    "by hand",
                )
        self.last = now


class NeverClearedInClosure(Rule):
    """Of a closure that an optimizer calls, perhaps several times in a step."""

    mistake = "gradients are never cleared: they add up over the steps"

    FEW = 4  # parameters that are looked at
    ENOUGH = 4  # backwards

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.inside: Watched | None = None
        self.times: dict[int, int] = {}  # by optimizer: backwards that found gradients

    def stepping(self, watched: Watched) -> None:
        self.inside = watched

    def stepped(self, watched: Watched) -> None:
        self.inside = None

    def backward(self, pass_: Pass) -> None:
        watched = self.inside
        if pass_.how == "grad":
            return
        if watched is None:
            # What is added up on purpose begins from nothing, before the step.
            known = [p for w in self.run.optimizers.values() for p in w.params[: self.FEW]]
            if all(p.grad is None or not values(p.grad).any() for p in known):
                self.times.clear()
            return
        reached = {id(leaf) for leaf in pass_.leaves}
        mine = [p for p in watched.params if id(p) in reached][: self.FEW]
        held = [p.grad for p in mine if p.grad is not None and values(p.grad).any()]
        if not mine or not held:
            self.times[id(watched)] = 0
            return
        times = self.times[id(watched)] = self.times.get(id(watched), 0) + 1
        if times >= self.ENOUGH:
            self.find(
                pass_.place,
                f"{times} times in a row this backward, in a closure that {watched.kind} calls, "
                "found gradients of the call before, and added to them",
                "call optimizer.zero_grad() in the closure, before backward",
                id(watched),
            )


class UsedUp(SourceRule):
    mistake = "the batches are used up after the first epoch"
    hint = re.compile(r"= *(zip|map|filter|iter|enumerate)\(|= *\(.* for .* in ")

    ONCE = ("zip", "map", "filter", "iter", "enumerate")

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        for outer in body:
            if not isinstance(outer, (ast.For, ast.While)):
                continue
            inside = list(within(outer))
            given = set().union(*map(_stored, inside))
            for inner in inside:
                if not isinstance(inner, ast.For):
                    continue
                name = self._gone_through(inner.iter)
                made = self._made_once(name, body, outer) if name and name not in given else None
                if made is not None:
                    self.find(
                        Place(None, file, made.lineno),
                        f"{name} is made once and can be gone through once: in the loop at line "
                        f"{outer.lineno} that of line {inner.lineno} has no batches from the "
                        "second time on",
                        f"make it a list: {name} = list(...), or make it anew in each epoch",
                    )

    @staticmethod
    def _gone_through(node: ast.expr) -> str:
        """The variable that a loop goes through, perhaps counted or with a progress bar."""
        while isinstance(node, ast.Call) and node.args:
            if ast.unparse(node.func).rpartition(".")[2] not in ("enumerate", "tqdm", "trange"):
                return ""
            node = node.args[0]
        return node.id if isinstance(node, ast.Name) else ""

    def _made_once(self, name: str, body: list[ast.AST], outer: ast.AST) -> ast.Assign | None:
        """The one statement before a loop that gives a variable its value, if that is used up."""
        found = [
            node
            for node in body
            if isinstance(node, ast.Assign) and any(name in _stored(n) for n in ast.walk(node))
        ]
        if len(found) != 1 or found[0].lineno > getattr(outer, "lineno", 0):
            return None
        value = found[0].value
        once = isinstance(value, ast.GeneratorExp) or (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id in self.ONCE
        )
        return found[0] if once and isinstance(found[0].targets[0], ast.Name) else None


def _stored(node: ast.AST) -> set[str]:
    """The variable that this node assigns, if it assigns one."""
    return {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()


_LIKELIHOODS = (
    "_cross_entropy",
    "_nll_loss",
    "_binary_cross_entropy",
    "_binary_cross_entropy_with_logits",
    "_mse_loss",
)


class Maximised(Rule):
    """Of programs with one loss and one optimizer: others may have two sides that compete."""

    mistake = "the loss is maximised: it is negated"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.lines: dict[Any, int] = {}  # of backwards: times in a row that the loss was negated
        self.seen: tuple[Place | None, str, float] | None = None
        self.other = False  # whether gradients were used otherwise

    def backward(self, pass_: Pass) -> None:
        if self.other:
            return
        root = pass_.roots[0]
        node = root.grad_fn
        plain = pass_.how != "grad" and len(pass_.roots) == 1 and root.numel() == 1
        if not plain or node is None or not node.name().startswith("Neg"):
            self.other = True
            return
        graph = recorded(pass_)
        last = len(graph.ops) - 1
        edge = graph.maker(last) if graph.ops[last] == "neg" else None
        known = self.run.optimized()
        whole = {id(p) for p in pass_.leaves}
        if edge is None or graph.ops[edge[0]] not in _LIKELIHOODS or not whole <= known:
            self.other = True
            return
        self.lines[pass_.key] = self.lines.get(pass_.key, 0) + 1
        number = float(values(root).reshape(-1)[0])
        self.seen = (graph.place(last), graph.ops[edge[0]].lstrip("_"), number)

    def finish(self) -> None:
        if self.other or self.seen is None or len(self.lines) != 1:
            return
        stepping = [w for w in self.run.optimizers.values() if w.steps]
        (times,) = self.lines.values()
        place, name, number = self.seen
        if times < _IN_A_ROW or len(stepping) != 1 or not number < 0:
            return
        if any(g.get("maximize") for g in stepping[0].optimizer.param_groups):
            return
        # What makes a trained model fail, such as a change of its inputs, is no mistake.
        models = self.run.models
        if any(owner_of(models, p) is None for p in stepping[0].params):
            return
        if any(not p.requires_grad for model in models for p in model.parameters()):
            return
        self.find(
            place,
            f"what is minimised is -{name}(...), {number:.4g} in the last of {times} steps looked "
            f"at: {name} is negative log-likelihood or error already, and each step makes it worse",
            f"leave the minus out: {name} is to become small",
        )


class OnlyTheLast(Rule):
    """Of a loop that computes a loss for each batch, and a backward that stands behind it."""

    mistake = "only the last of several losses gets a backward"
    operations = (*_LIKELIHOODS, "_distance", "_smooth_l1_loss", "_huber_loss")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By line: numbers of losses since the last backward; the targets of the first and last.
        self.made: dict[Any, list[int]] = {}
        self.targets: dict[Any, list[Any]] = {}
        self.places: dict[Any, Place | None] = {}
        self.times: dict[Any, int] = {}

    def operation(self, call: Call) -> None:
        node = call.outputs[0].grad_fn
        if node is not None:
            self.made.setdefault(call.key, []).append(node._sequence_nr())
            self.targets.setdefault(call.key, [call.inputs[1], None])[1] = call.inputs[1]
            if call.key not in self.places:
                self.places[call.key] = call.place

    def backward(self, pass_: Pass) -> None:
        made, self.made = self.made, {}
        targets, self.targets = self.targets, {}
        if pass_.how == "grad" or all(len(numbers) < 2 for numbers in made.values()):
            return
        mine = [n for n in pass_.sequences if n > 0]
        for key, numbers in made.items():
            if len(numbers) < 2 or numbers[-1] not in mine or set(numbers[:-1]) & set(mine):
                continue
            # What is refined step by step may be judged at the end: against one target for all.
            if min(mine) < numbers[-2] and not self._differ(*targets[key]):
                continue
            loss = self.places[key]
            if loss is None or pass_.place is None or not self._is_behind(pass_.place, loss):
                continue
            times = self.times[key] = self.times.get(key, 0) + 1
            if times >= _IN_A_ROW:
                self.find(
                    pass_.place,
                    f"{len(numbers)} losses were computed at {loss.short} before this backward, "
                    f"which goes through the last one alone, {times} times in a row: what the "
                    f"other {len(numbers) - 1} batches would teach is lost",
                    "call backward() in the loop, for each loss; step() where it belongs to them",
                    key,
                )

    @staticmethod
    def _differ(one: Any, two: Any) -> bool:
        if not isinstance(one, Tensor) or not isinstance(two, Tensor):
            return False
        return one.shape == two.shape and not np.array_equal(values(one), values(two))

    @staticmethod
    def _is_behind(backward: Place, loss: Place) -> bool:
        """Whether a variable gets the loss in a loop, anew in each round, and the backward of that
        variable comes after the loop."""
        if backward.file != loss.file:
            return False
        for node in ast.walk(parsed(backward.file)):
            for at, after in enumerate(body := statements(node)):
                called = after.value if isinstance(after, ast.Expr) else None
                if getattr(after, "lineno", 0) != backward.line or not isinstance(called, ast.Call):
                    continue
                owner = getattr(called.func, "value", None)
                if isinstance(owner, ast.Name) and _set_in_a_loop(body[:at], owner.id):
                    return True
        return False


def _set_in_a_loop(statements: list[ast.stmt], name: str) -> bool:
    """Whether the last of the statements that set a variable is a loop, in which it is set to
    something that it is not itself a part of."""
    for statement in reversed(statements):
        stores = [
            n
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        ]
        if not stores:
            continue
        if not isinstance(statement, ast.For):
            return False
        if any(isinstance(n, ast.Break) for n in ast.walk(statement)):
            return False  # it looks for one that will do
        sets = [n for n in ast.walk(statement) if isinstance(n, ast.Assign)]
        sets = [n for n in sets if any(s in ast.walk(t) for t in n.targets for s in stores)]
        return len(sets) == len(stores) and not any(name in names_in(n.value) for n in sets)
    return False
