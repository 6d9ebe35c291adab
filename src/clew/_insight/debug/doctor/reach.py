"""Parameters that the loss does not reach, or that no optimizer has."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from clew import _C, Tensor
from clew._base import provenance as _provenance
from clew._base.statements import names_in
from clew._insight.debug.doctor.nodes import LOSSES, leaves_of
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Call, Pass, Watched
from clew._insight.debug.doctor.source import overwriting, parsed
from clew._insight.debug.holders import owner_of
from clew._insight.debug.place import Place, placed

_IN_A_ROW = 3  # times that something must happen to be no accident


class LossDoesNotReach(Rule):
    """Of an optimizer's parameters that never get a gradient, those that were cut off."""

    mistake = "parameters are cut off from the loss"
    operations = (*LOSSES, "mean")
    few = ("mean",)

    ROUNDS = 2

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.missing: dict[int, int] = {}
        # Of parameters, why no gradient comes: at the last backward before their optimizer
        # stepped, which is the one that was to reach them, or at any.
        self.reasons: dict[int, tuple[str, Any, str]] = {}
        self.latest: dict[int, tuple[str, Any, str]] = {}
        self.reached: set[int] = set()
        self.looked = 0
        self.leaf_losses: dict[Any, int] = {}
        self.numbers: dict[int, Tensor] = {}  # the leaves of a loss that is made of numbers
        # Parameters whose use came to nothing, and the losses that were made of them, by line.
        self.unused: dict[int, Tensor] = {}
        self.dropped: dict[Any, tuple[Place, int, dict[int, Tensor]]] = {}

    def operation(self, call: Call) -> None:
        if not self.unused:
            return
        node = call.outputs[0].grad_fn
        if node is None or call.outputs[0].numel() != 1 or call.place is None:
            return
        mine = {k: p for k, p in leaves_of(node).items() if k in self.unused}
        if mine:
            times = self.dropped[call.key][1] if call.key in self.dropped else 0
            self.dropped[call.key] = (call.place, times + 1, mine)

    def _is_leaf_loss(self, pass_: Pass) -> bool:
        """A loss that backward begins at and ends with: its value was taken out of its graph, and
        requires_grad was set afterwards."""
        root = pass_.roots[0]
        if len(pass_.roots) != 1 or root.numel() != 1:
            return False
        known = self.run.optimized()
        if root.grad_fn is not None:
            return self._is_made_of_numbers(pass_, known)
        if id(root) in known or not known:
            return False
        times = self.leaf_losses[pass_.key] = self.leaf_losses.get(pass_.key, 0) + 1
        if times == self.ROUNDS:
            from clew._insight.graph.why import cut_text

            cut = _C._cut_of(root)
            made = cut is not None and cut[0] != "made"
            at = placed(cut[2]) if cut is not None else None
            if at is not None and not made and "requires_grad" not in at.source:
                at = None  # of what it was computed from without a graph
            self.find(
                at or pass_.place,
                f"backward begins at a tensor that no operation made, with value "
                f"{float(values(root).reshape(-1)[0]):.4g}, and ends there"
                + (f": its history was cut off {cut_text(cut)}" if made else "")
                + "; no parameter gets a gradient",
                "leave requires_grad=True out: the loss has it where it is computed from the "
                "parameters with tensors all the way",
                "leaf",
            )
        return True

    def _is_made_of_numbers(self, pass_: Pass, known: set[int]) -> bool:
        """A loss of tensors alone that were made of numbers, with requires_grad set."""
        made = [_C._cut_of(leaf) for leaf in pass_.leaves if id(leaf) not in known]
        if not made or len(made) < len(pass_.leaves):
            return False
        if any(cut is None or cut[0] != "made" for cut in made):
            return False
        if any(id(leaf) in self.numbers for leaf in pass_.leaves):
            return False  # not made anew in each round: it is what is optimized
        self.numbers = {id(leaf): leaf for leaf in pass_.leaves}
        times = self.leaf_losses[pass_.key] = self.leaf_losses.get(pass_.key, 0) + 1
        if times == self.ROUNDS:
            cut = made[0]
            self.find(
                placed(cut[2]) if cut is not None else pass_.place,
                "backward ends at a tensor that is made of plain numbers here, in each round anew, "
                f"of shape {tuple(pass_.leaves[0].shape)}; no parameter gets a gradient",
                "clew.stack() the tensors instead: tensor(...) takes their numbers alone, and "
                "requires_grad=True gives them no history",
                "numbers",
            )
        return True

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or not self.run.optimizers or self._is_leaf_loss(pass_):
            return
        self.reached |= {id(leaf) for leaf in pass_.leaves}
        lost = [
            p
            for w in self.run.optimizers.values()
            if not (w.steps and w.step_place is None)  # it stepped while nobody looked
            for p in w.params
            if p.requires_grad and p.grad is None
            if id(p) not in self.reached and id(p) not in self.reasons
        ]
        if not lost or self.looked >= 6:
            return
        self.looked += 1
        from clew._insight.graph.graph import graph

        whole = graph(pass_.roots)
        for p in lost[:32]:
            answer = whole.why(p)
            if answer.kind in ("cut", "likely cut"):
                self.latest[id(p)] = (self.run.name_of(p), *self._cut(answer, whole))
            else:
                found = self._cut_later(p, whole)
                if found is not None:
                    self.latest[id(p)] = (self.run.name_of(p), *found)
                elif answer.kind == "not used":
                    self.unused[id(p)] = p

    def stepping(self, watched: Watched) -> None:
        for p in watched.params if self.latest else ():
            if id(p) in self.latest:
                self.reasons.setdefault(id(p), self.latest[id(p)])

    @staticmethod
    def _cut_later(p: Tensor, whole: Any) -> tuple[Any, str] | None:
        """Where a parameter's result was cut off on its way to this loss, if the parameter was used
        before an earlier backward, as a generator's is."""
        from clew._insight.graph.why import cut_text

        use = _C._recorded_use(p)
        if use is None or use[0] is None:
            return None
        made = _provenance.Location(*use[0][:2])
        for cut in whole._cuts:
            if cut[3] is None:
                continue
            at = _provenance.Location(*cut[3][:2])
            if (at.file, at.line) == (made.file, made.line):
                return cut[2], f"its value was cut off: {cut_text(cut)}"
        return None

    @staticmethod
    def _cut(answer: Any, whole: Any) -> tuple[Any, str]:
        from clew._insight.graph.why import cut_text

        if answer.kind == "likely cut" and answer.place is not None:
            # What the loss did receive from that line, and without its graph, is no guess.
            guess = _provenance.Location(*answer.place[:2])
            for cut in whole._cuts:
                if cut[3] is None or cut[0] not in ("no_grad", "inference_mode"):
                    continue
                at = _provenance.Location(*cut[2][:2])
                if (at.file, at.line) == (guess.file, guess.line):
                    return cut[2], f"its value was cut off: {cut_text(cut)}"
        return answer.place, answer.reason

    def _overwritten(self) -> None:
        """Losses that were computed of parameters that no backward reached, and whose name was
        given to something else."""
        for key, (loss, times, params) in self.dropped.items():
            idle = [p for k, p in params.items() if k not in self.reached]
            at = overwriting(loss.file, loss.line)
            if times < _IN_A_ROW or not idle or at is None:
                continue
            self.find(
                Place(None, loss.file, at[1]),
                f"{at[0]} got a loss at line {loss.line}, and gets another here, which is not made "
                f"of it: {', '.join(self.run.name_of(p) for p in idle[:3])} never got a gradient, "
                f"in {times} steps looked at",
                f"add them up: {at[0]} = {at[0]} + ...",
                key,
            )

    def finish(self) -> None:
        self._overwritten()
        places: dict[Any, list[tuple[str, Any, str]]] = {}
        for key, told in {**self.latest, **self.reasons}.items():
            if key not in self.reached:
                places.setdefault(told[1] and tuple(told[1][:2]), []).append(told)
        for group in places.values():
            names = [name for name, _, _ in group]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            place = placed(group[0][1])
            drawn = place is not None and ".sample(" in place.text
            self.find(
                place,
                f"{', '.join(names[:3])}{more} never got a gradient although an optimizer has "
                f"them: {group[0][2].removeprefix('does not reach the result: ')}",
                "draw with rsample(): sample() computes without gradients"
                if drawn
                else "compute with tensors all the way: leave out detach(), .data, item(), numpy() "
                "and no_grad() where gradients are to flow",
            )


def is_sifted(place: Place) -> bool:
    """Whether an optimizer is given what a condition on parameters leaves, and nothing in its file
    asks for the rest: then the rest is left out on purpose."""
    tree = parsed(place.file)
    sifting = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp))
        and any(part.ifs for part in node.generators)
        and "parameters()" in ast.unparse(node)
    ]
    if len(sifting) != 1:
        return False
    lines = [
        statement
        for statement in ast.walk(tree)
        if isinstance(statement, (ast.Assign, ast.Expr))
        and statement.lineno <= sifting[0].lineno <= (statement.end_lineno or statement.lineno)
    ]
    for statement in lines:
        if statement.lineno <= place.line <= (statement.end_lineno or statement.lineno):
            return True
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id in _given_at(tree, place.line) for t in targets):
            return True
    return False


def _given_at(tree: ast.AST, line: int) -> set[str]:
    """The variables that calls at a line are given."""
    return {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or line)
        for argument in node.args
        for name in names_in(argument)
    }


class ParameterRegistration(Rule):
    mistake = "parameters are in no optimizer"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.fed: dict[int, list[Any]] = {}  # parameter, passes, use, steps before the second
        self.first: dict[int, Any] = {}  # the first values of those that no optimizer has
        self.training: set[int] = set()  # models in training mode at some backward

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad":
            return
        from clew.nn import Parameter

        self.training |= {id(model) for model in self.run.models if model.training}
        for leaf in pass_.leaves:
            if isinstance(leaf, Parameter):
                entry = self.fed.setdefault(id(leaf), [leaf, 0, None, 0])
                entry[1] += 1
                if entry[1] == 2:
                    entry[3] = self._steps()
                entry[2] = _C._recorded_use(leaf)
                if entry[1] == 1 and id(leaf) not in self.run.optimized():
                    self.first[id(leaf)] = values(leaf).copy()

    def _steps(self) -> int:
        return sum(watched.steps for watched in self.run.optimizers.values())

    def finish(self) -> None:
        from clew._insight.debug.holders import assignment, hidden_in, put_into

        stepping = [w for w in self.run.optimizers.values() if w.steps]
        if sum(w.steps for w in stepping) < 2:
            return
        known = self.run.optimized()
        lost = [
            (entry[0], entry[2])
            for key, entry in self.fed.items()
            if key not in known and entry[1] >= 2 and key not in self.run.behind_targets
            if entry[3] < self._steps()  # else the gradients are for something else than training
        ]
        lost = [(p, use) for p, use in lost if p.requires_grad]
        if not lost or not (known & set(self.fed) or self._all_replaced(lost, stepping)):
            return  # nothing is missing, or the optimizers are for something else
        told: dict[Any, list[Any]] = {}
        for p, use in lost:
            holder = hidden_in(self.run.models, p)
            owner = owner_of(self.run.models, p)
            key = holder[:2] if holder else ("model", id(owner[0])) if owner else ("loose", 0)
            told.setdefault(key, []).append((p, use, holder, owner))
        for key, group in told.items():
            p, use, holder, owner = group[0]
            count = sum(q.numel() for q, *_ in group)
            what = "1 parameter" if len(group) == 1 else f"{len(group)} parameters"
            verbs = "gets gradients and is" if len(group) == 1 else "get gradients and are"
            many = f"{what} ({count:,} numbers) {verbs} in no optimizer"
            used = placed(use[0]) if use else None
            if holder:
                module, attribute, kind = holder
                set_at = assignment(type(module), attribute)
                near = set_at or used
                filled = near and put_into(getattr(module, attribute), near.file)
                place = set_at or filled or used
                self._found(
                    place,
                    "parameters lie in a plain " + kind,
                    f"{type(module).__name__}.{attribute} is a {kind}, which parameters() does not "
                    f"look into: {many}" + (f"; it is filled at {filled.short}" if filled else ""),
                    "use nn.ModuleList, nn.ModuleDict, nn.ParameterList or nn.ParameterDict",
                    key,
                )
                continue
            if not owner:
                place = used
                self._found(
                    place,
                    self.mistake,
                    f"{many}, nor in a model that was called",
                    "give them to the optimizer",
                    key,
                )
                continue
            self._tell_of_model(owner[0], [q for q, *_ in group], many, stepping, key)

    def _tell_of_model(
        self, model: Any, lost: list[Any], many: str, stepping: list[Watched], key: Any
    ) -> None:
        """Says which parameters of a model are in no optimizer, and why if that can be seen."""
        names = ", ".join(n for q in lost if (n := self.run.name_of(q)))[:120]
        mine = {id(q) for q in model.parameters()}
        stale = [
            w
            for w in stepping
            if any(id(q) not in mine and q.grad is None for q in w.params)
            and (any(id(q) in mine for q in w.params) or len(stepping) == 1)
        ]
        if stale:
            w = stale[0]
            old = sum(id(q) not in mine for q in w.params)
            self._found(
                w.place or w.step_place,
                "the optimizer has parameters that were replaced",
                f"{old} parameters of this {w.kind} are no longer in the model and get no "
                f"gradients, while {names} get gradients and are in no optimizer",
                "make the optimizer after the model is complete",
                key,
            )
        elif any(id(q) in mine for w in stepping for q in w.params):
            if any(w.place is not None and is_sifted(w.place) for w in stepping):
                return
            self._found(
                stepping[0].place or stepping[0].step_place,
                self.mistake,
                f"{many}: {names}",
                "give the optimizer all parameters, or freeze the others with "
                "requires_grad_(False)",
                key,
            )
        elif id(model) in self.training and self._is_left_out(model, lost, stepping):
            w = self._same_again(stepping)
            self._found(
                w.place or w.step_place,
                self.mistake,
                f"all of {type(model).__name__}, in training mode: {many}, and none has "
                f"changed: {names}",
                "give the optimizer its parameters too, or freeze them with requires_grad_(False)",
                key,
            )

    @staticmethod
    def _all_replaced(lost: list[Any], stepping: list[Watched]) -> bool:
        """Whether an optimizer has a tensor without gradients for each that gets some."""
        shapes = sorted(tuple(p.shape) for p, _ in lost)
        return any(
            all(p.grad is None for p in w.params)
            and sorted(tuple(p.shape) for p in w.params) == shapes
            for w in stepping
        )

    @staticmethod
    def _same_again(stepping: list[Watched]) -> Watched:
        """The optimizer that was given what another has already: likely the one that was meant."""
        ids = [[id(p) for p in w.params] for w in stepping]
        return next((w for i, w in enumerate(stepping) if ids[i] in ids[:i]), stepping[0])

    def _is_left_out(self, model: Any, mine: list[Tensor], stepping: list[Watched]) -> bool:
        """Whether a model as a whole is in no optimizer, and others that the program calls are."""
        if any(id(q) in self.run.optimized() for q in model.parameters()):
            return False
        if not any(owner_of(self.run.models, q) for w in stepping for q in w.params):
            return False  # what is optimized is no model: an image, a prompt
        return all(
            np.array_equal(values(q), self.first[id(q)]) for q in mine if id(q) in self.first
        )

    def _found(self, place: Any, mistake: str, evidence: str, change: str, key: Any) -> None:
        from clew._insight.debug.doctor.finding import made

        self.findings.setdefault(key, made(mistake, place, evidence, change))
