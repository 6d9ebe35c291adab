"""Losses that get something else than they expect."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

from clew import _C, Tensor
from clew._insight.debug.doctor.nodes import (
    DISTANCES,
    LOSSES,
    MANY,
    behind,
    class_dim,
    leaves_of,
    made_of,
    maker,
    name_of,
    on_simplex,
    span,
)
from clew._insight.debug.doctor.rule import CALLS, Rule, values
from clew._insight.debug.doctor.run import Call, Pass
from clew._insight.debug.place import Place, placed


def squashed_at(x: Tensor, call: Call) -> tuple[Place | None, str]:
    """The line to change where a loss gets what a softmax or a sigmoid gave: theirs, where they
    are written there, else that of the loss. And words about the loss for the evidence."""
    node = behind(x.grad_fn)
    made = placed(node._place) if node is not None else None
    if made is None or call.place is None or made.line == call.place.line:
        return call.place, ""
    if not re.search(r"softmax|sigmoid|expit|Softmin", made.source, re.IGNORECASE):
        return call.place, f"; made at {made.short}"
    return made, f"; the loss is at {call.place.short}"


class SoftmaxBeforeCrossEntropy(Rule):
    mistake = "softmax before cross_entropy"
    operations = ("_cross_entropy", "log_softmax", "log")

    def operation(self, call: Call) -> None:
        x = call.inputs[0]
        if not isinstance(x, Tensor) or x.grad_fn is None:
            return
        if call.name == "log":
            self._by_hand(call)
            return
        by = maker(x)
        if by == "Sigmoid":
            what, sums = "sigmoid", ""
        elif by == "LogSoftmax" or not on_simplex(x):
            return
        else:
            what, sums = "softmax", ", each row adds up to 1"
        place, loss = squashed_at(x, call)
        self.find(
            place,
            f"the scores come from {what}: they lie in {span(values(x))}{sums}; cross_entropy "
            f"takes their softmax again, so that the gradient stays small{loss}",
            f"give the scores themselves: leave the {what} out, cross_entropy applies log_softmax",
        )

    def _by_hand(self, call: Call) -> None:
        """The logarithm of a softmax, perhaps with a small number added, of a softmax."""
        node = behind(call.inputs[0].grad_fn)
        while node is not None and name_of(node) in ("Add", "Clamp", "ClampMin", "Maximum"):
            parts = [fn for fn, _ in node.next_functions if fn is not None]
            node = behind(parts[0]) if len(parts) == 1 else None
        if node is None or name_of(node) != "Softmax":
            return
        inner = behind(node.next_functions[0][0])
        if inner is None or name_of(inner) != "Softmax":
            return
        # Over other dimensions each has a meaning of its own.
        columns = _C._export_graph((call.inputs[0],))
        numbers = {node._sequence_nr(), inner._sequence_nr()}
        found = [i for i, number in enumerate(columns["sequence"]) if number in numbers]
        ranks = [len(columns["outputs"][i][0][0]) for i in found]
        dims = {columns["attributes"][i]["dim"] % rank for i, rank in zip(found, ranks) if rank}
        if len(dims) != 1 or len(set(ranks)) != 1:
            return
        v = values(call.inputs[0])
        self.find(
            call.place,
            f"the logarithm is taken of a softmax of a softmax: its values lie in {span(v)}, and "
            "can never come near 0 and 1, so that the gradient stays small",
            "leave one softmax out: log_softmax(scores, dim=1) of the scores themselves",
        )


class ProbabilitiesInNLL(Rule):
    mistake = "log_softmax missing before nll_loss"
    operations = ("_nll_loss",)

    def operation(self, call: Call) -> None:
        x = call.inputs[0]
        if x.dim() == 0 or x.numel() < 2 or x.grad_fn is None:
            return
        v = values(x).astype(np.float64)
        if not np.isfinite(v).any():
            return
        if on_simplex(x):
            seen = f"the input holds probabilities in {span(v)}, each row adds up to 1"
            change = "give their logarithms: log_softmax(scores, dim=1) instead of softmax"
        else:
            with np.errstate(over="ignore"):
                sums = np.exp(v).sum(class_dim(x))
            off = np.abs(sums - 1).max()
            if not off > 0.05:
                return
            seen = (
                f"the input lies in {span(v)}; exp() of a row adds up to {sums.min():.4g} to "
                f"{sums.max():.4g}, not to 1: these are no log-probabilities"
            )
            change = "give log_softmax(scores, dim=1), or use cross_entropy on the scores"
        self.find(call.place, seen, change)


class SigmoidBeforeLogits(Rule):
    mistake = "sigmoid before binary_cross_entropy_with_logits"
    operations = ("_binary_cross_entropy_with_logits", "nn.functional.logsigmoid")

    def operation(self, call: Call) -> None:
        x = call.inputs[0]
        if x.grad_fn is None or x.numel() == 0:
            return
        by = maker(x)
        v = values(x)
        squashed = v.min() >= 0 and v.max() <= 1 and v.size >= MANY
        by_hand = by in ("Div", "Reciprocal", "Pow") and squashed and made_of(x.grad_fn, "Exp")
        if by not in ("Sigmoid", "Softmax") and not by_hand:
            return
        place, loss = (call.place, "") if by_hand else squashed_at(x, call)
        self.find(
            place,
            f"the scores come from {'1 / (1 + exp(-x))' if by_hand else by.lower()} and lie in "
            f"{span(v)}; the loss applies sigmoid again, so that every probability lies between "
            f"0.5 and 0.731{loss}",
            "give the scores themselves: leave the sigmoid out, or use binary_cross_entropy",
        )


def pairs(text: str, name: str) -> bool:
    """Whether a statement gives an operand of a difference or a product a dimension of 1 where it
    stands, so that each meets each."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return "None]" in text or "unsqueeze(" in text
    kind = {"add": ast.Add, "sub": ast.Sub, "mul": ast.Mult}[name]
    for node in ast.walk(tree):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
            operands = [node.left, node.right]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == name:
                operands = [node.func.value, *node.args]
        if any(_is_widened(operand) for operand in operands):
            return True
    return False


def _is_widened(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_widened(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_widened(node.left) or _is_widened(node.right)
    if isinstance(node, ast.Subscript):
        found = [n for n in ast.walk(node.slice) if isinstance(n, ast.Constant)]
        return any(n.value is None for n in found) or _is_widened(node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    of_module = isinstance(node.func.value, ast.Name) and node.func.value.id in _MODULES
    return node.func.attr == "unsqueeze" or (not of_module and _is_widened(node.func.value))


_MODULES = {"F", "torch", "clew", "nn", "functional"}


class BroadcastLoss(Rule):
    mistake = "prediction and target are broadcast against each other"
    operations = few = (*DISTANCES, "sub", "mul")

    def operation(self, call: Call) -> None:
        a, b = call.inputs[:2]
        if not isinstance(b, Tensor) or a.requires_grad == b.requires_grad:
            return
        if call.name == "mul" and a.grad_fn is None and b.grad_fn is None:
            return  # an outer product with a parameter
        out = call.outputs[0]
        if call.name in DISTANCES:
            sizes, shapes = self._unbroadcast(a, b)
        elif call.name == "sub" and self._is_l1(call):  # it broadcasts before it subtracts
            sizes, shapes = self._unbroadcast(a, b)
        else:
            sizes, shapes = (a.shape, b.shape), (tuple(a.shape), tuple(b.shape))
        one, two = sizes
        if min(len(one), len(two)) > 1 and out.dim() and call.name in DISTANCES:
            return  # each with each, where all the distances are asked for
        if one == two or (1 in (len(one) * len(two), 0) and len(one) == len(two)):
            return
        big, small = (one, two) if len(one) > len(two) else (two, one)
        if len(small) < 1 or len(big) != len(small) + 1:
            return
        n = small[0]
        # (N, 1) against (N,): the result pairs everything with everything.
        if n < 2 or big[0] != n or 1 not in big[1:] or small[-1] == 1:
            return
        if tuple(out.shape) in (tuple(one), tuple(two)):
            return
        if call.name in ("sub", "mul") and call.place and pairs(call.place.source, call.name):
            return  # each with each, as the line itself says
        paired = np.broadcast_shapes(tuple(one), tuple(two))
        self.find(
            call.place,
            f"shapes {shapes[0]} and {shapes[1]} are broadcast to {paired}: every one of {n} "
            f"predictions is compared with all {n} targets, {np.prod(paired)} values instead of "
            f"{max(np.prod(one), np.prod(two))}",
            "bring both to one shape: prediction.squeeze(-1), or target.unsqueeze(-1)",
        )

    @staticmethod
    def _is_l1(call: Call) -> bool:
        at = call.instruction
        kind = at[3] if at is not None else None
        return kind == "L1Loss" or (call.place is not None and "l1_loss(" in call.place.text)

    @staticmethod
    def _unbroadcast(a: Tensor, b: Tensor) -> Any:
        """The shapes before broadcast_tensors(), as strides of 0 tell."""

        def own(t: Tensor) -> tuple[int, ...]:
            sizes = tuple(1 if s == 0 else n for n, s in zip(t.shape, t.stride()))
            return sizes

        one, two = own(a), own(b)
        # A vector was put in front of: (1, N) stands for (N,).
        if len(one) == 2 and one[0] == 1 and two[1] == 1 and one[1] == two[0]:
            return ((one[1],), two), ((one[1],), two)
        if len(two) == 2 and two[0] == 1 and one[1] == 1 and two[1] == one[0]:
            return (one, (two[1],)), (one, (two[1],))
        # So with more behind, where one has a dimension of 1 that the other has not.
        for first, second in ((one, two), (two, one)):
            n = first[1] if len(first) > 2 and len(second) == len(first) else 0
            if (first[0], second[:2]) == (1, (n, 1)) and first[2:] == second[2:]:
                pair = (first[1:], second) if first is one else (second, first[1:])
                return pair, pair
        return (one, one), (one, two)


class TargetRequiresGrad(Rule):
    mistake = "the target of a loss requires grad"
    operations = (*LOSSES, "sub")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.judged: dict[Any, int] = {}  # lines whose target's model was looked for
        # Differences that may be a loss by hand, by their nodes' numbers: backward shows.
        self.differences: dict[int, tuple[Call, str]] = {}

    def operation(self, call: Call) -> None:
        if len(call.inputs) < 2:
            return
        x, y = call.inputs[:2]
        if not isinstance(y, Tensor) or not y.requires_grad or not x.requires_grad:
            return
        if call.name == "sub":
            # A loss by hand: only what can hardly be anything else.
            kinds = {self._returns(x), self._returns(y)}
            node = call.outputs[0].grad_fn
            if node is not None and kinds & {"maximum", "value of steps that end"}:
                what = "a maximum over" if "maximum" in kinds else "a later one of"
                if len(self.differences) < CALLS:
                    self.differences[node._sequence_nr()] = (call, what)
            elif x.grad_fn is not None and x.grad_fn.name().startswith("Xlogy"):
                self._divergence(call, x.grad_fn, y.grad_fn)
            return
        from clew.nn import Parameter

        if y.grad_fn is None:
            if isinstance(y, Parameter) or id(y) in self.run.optimized():
                return
            self.find(
                call.place,
                f"the target, of shape {tuple(y.shape)}, is a leaf with requires_grad=True: "
                "backward computes and gathers a gradient for it that nobody uses",
                "make the target without requires_grad=True, or give target.detach()",
            )
        elif self._bootstrapped(y):
            self._tell(call, "a maximum over")
        elif self._returns(y):
            self._tell(call, "a later one of")
        else:
            self._foreign(call, x.grad_fn, y.grad_fn)

    def backward(self, pass_: Pass) -> None:
        differences, self.differences = self.differences, {}
        if differences:
            for number in differences.keys() & set(pass_.sequences):
                self._tell(*differences[number])

    def _divergence(self, call: Call, entropy: Any, cross: Any) -> None:
        """kl_div(), which is xlogy(target, target) - target * input."""
        parts = [fn for fn, _ in cross.next_functions] if cross is not None else []
        target = entropy.next_functions[0][0]
        if len(parts) == 2 and target in parts and cross.name().startswith("Mul"):
            self._foreign(call, parts[1 - parts.index(target)], target)

    def _foreign(self, call: Call, input_: Any, target: Any) -> None:
        """A target that a model makes which nothing optimizes: a teacher, a target network."""
        times = self.judged.get(call.key, 0)
        if input_ is None or not self.run.optimizers or self.run.round == 0 or times >= 2:
            return
        self.judged[call.key] = times + 1
        leaves = self._leaves_behind(input_, target)
        if not leaves:
            return
        self.find(
            call.place,
            "the target is made by a model of which no optimizer has a parameter: its gradient "
            f"goes back to {len(leaves)} of them, such as "
            f"{self.run.name_of(next(iter(leaves.values())))}, and nobody uses it",
            "compute the target under no_grad(), or give target.detach()",
        )

    def _leaves_behind(self, input_: Any, target: Any) -> dict[int, Tensor]:
        """The parameters that only a target is made with, if no optimizer has one of them."""
        from clew.nn import Parameter

        known = self.run.optimized() | self.run.earlier.keys()
        leaves = leaves_of(target)
        if not all(isinstance(leaf, Parameter) for leaf in leaves.values()):
            return {}
        # What the input is made with, too, belongs to what is trained.
        if known & leaves.keys() or leaves_of(input_).keys() & leaves.keys():
            return {}
        self.run.behind_targets |= leaves.keys()
        return leaves

    def _tell(self, call: Call, what: str) -> None:
        one, two = (t.grad_fn for t in call.inputs[:2])
        if call.place is not None and (call.place.file, call.place.line) in self.findings:
            return
        whose = "the model's own outputs"
        if one is not None and two is not None and self.run.optimizers:
            if self._leaves_behind(one, two) or self._leaves_behind(two, one):
                whose = "the outputs of a model that no optimizer has"
        shape = tuple(call.inputs[1].shape)
        made = placed(two._place) if two is not None else None
        apart = ""
        if made is not None and call.place is not None and made.line != call.place.line:
            apart = f"; it is made at {made.short}"
        self.find(
            call.place,
            f"the target, of shape {shape}, is computed from {what} {whose}, and its gradient "
            f"flows back through them too{apart}",
            "compute the target under no_grad(), or give target.detach()",
        )

    @staticmethod
    def _returns(y: Tensor) -> str:
        """What stands in a target that is reward + discount * value: "value", "maximum", or "value
        of steps that end" where some are multiplied by 0 and all others by the discount; empty for
        another target."""
        if y.dim() == 0 or y.numel() != y.shape[0]:
            return ""
        node = behind(y.grad_fn)
        if node is None or not node.name().startswith("Add") or len(node.next_functions) != 2:
            return ""
        parts = [fn for fn, _ in node.next_functions]
        if parts.count(None) != 1:
            return ""
        node, discount = behind(parts[0] or parts[1]), 1.0
        scaled = ends = False
        while node is not None and node.name().startswith("Mul"):
            factors = [t for t in node.saved_tensors if t is not None and t.numel()]
            if len(factors) != 1:
                return ""  # both factors are differentiated
            factor = values(factors[0])
            discount *= float(np.abs(factor).max())
            ends = ends or (factor.size >= MANY and len(np.unique(factor)) == 2 and 0 in factor)
            scaled = True
            node = behind(next((fn for fn, _ in node.next_functions if fn is not None), None))
        # A step of an equation is smaller.
        if not scaled or node is None or not 0.5 <= discount <= 1.0:
            return ""
        if node.name().startswith(("Max", "Amax")):
            return "maximum"
        if node.name().startswith("Gather"):  # of the action that was taken
            node = behind(node.next_functions[0][0])
        if node is None or not node.name().startswith(("Linear", "Addmm")):
            return ""
        return "value of steps that end" if ends else "value"

    @staticmethod
    def _bootstrapped(y: Tensor) -> bool:
        """Whether the target holds r + gamma * max(...)."""
        pending, seen = [y.grad_fn], 0
        while pending and seen < 12:
            node = pending.pop()
            seen += 1
            name = node.name()
            if name.startswith(("MaxBackward", "AmaxBackward")):
                return True
            if name.startswith(("Linear", "Addmm", "Mm")):
                continue
            pending += [fn for fn, _ in node.next_functions if fn is not None]
        return False
