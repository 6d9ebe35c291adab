"""Losses that get something else than they expect."""

from __future__ import annotations

import re
import weakref
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import numpy as np

from clew import _C, Tensor
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Batch, Call, Pass, Watched
from clew._insight.debug.holders import owner_of
from clew._insight.debug.place import Place

# Nodes that only hand values on, so that what made them lies behind.
_HANDED_ON = (
    "View Reshape Squeeze Unsqueeze Transpose Permute Slice Select Clone ToDtype Flatten Index "
    "T Expand Alias Contiguous Movedim Narrow Unflatten"
).split()
_MANY = 4  # elements that are enough to judge by


def behind(node: Any) -> Any:
    """The first node, from this one on, that does more than hand values on."""
    while node is not None and _name(node) in _HANDED_ON:
        node = node.next_functions[0][0] if node.next_functions else None
    return node


def _name(node: Any) -> str:
    return str(node.name()).removesuffix("0").removesuffix("Backward")


def maker(t: Tensor) -> str:
    """The operation that made the values of t, such as "Softmax"; empty for leaves."""
    node = behind(t.grad_fn)
    return "" if node is None else _name(node)


def made_of(node: Any, name: str, depth: int = 4) -> bool:
    """Whether an operation of this name is among the last few that made a value."""
    below = [fn for fn, _ in node.next_functions if fn is not None]
    return any(fn.name().startswith(f"{name}Backward") for fn in below) or (
        depth > 0 and any(made_of(fn, name, depth - 1) for fn in below)
    )


def leaves_of(node: Any, without: Collection[int] = ()) -> dict[int, Tensor]:
    """The leaves that a node's value is made of, by their identities.

    Args:
        node: of a graph.
        without: numbers of nodes that are not gone through.
    """
    seen, pending = {node}, [node]
    found: dict[int, Tensor] = {}
    while pending:
        at = pending.pop()
        if without and at._sequence_nr() in without:
            continue
        leaf = getattr(at, "variable", None)
        if leaf is not None:
            found[id(leaf)] = leaf
        below = {fn for fn, _ in at.next_functions if fn is not None} - seen
        seen |= below
        pending += below
    return found


def is_scaled(node: Any, scaler: Any) -> bool:
    """Whether a node is that of a loss times the factor of a GradScaler, and nothing else."""
    if not node.name().startswith("Mul") or len(node.next_functions) != 2:
        return False
    factors = [t for t in node.saved_tensors if t is not None]
    return (
        node.next_functions[0][0] is not None
        and node.next_functions[1][0] is None
        and any(t.numel() == 1 and float(values(t)) == scaler.get_scale() for t in factors)
    )


def class_dim(t: Tensor) -> int:
    return 0 if t.dim() == 1 else 1


def on_simplex(t: Tensor) -> bool:
    """Whether the values are probabilities that add up to one over the classes."""
    if t.dim() == 0 or t.shape[class_dim(t)] < 2 or t.numel() < _MANY:
        return False
    v = values(t)
    if not (v.min() >= 0 and v.max() <= 1):
        return False
    tolerance = 0.02 if t.dtype.itemsize < 4 else 1e-3
    return bool(np.abs(v.sum(class_dim(t)) - 1).max() < tolerance)


def span(v: Any) -> str:
    return f"[{v.min():.4g}, {v.max():.4g}]"


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
        self.find(
            call.place,
            f"the scores come from {what}: they lie in {span(values(x))}{sums}; "
            "cross_entropy takes their softmax again, so that the gradient stays small",
            f"give the scores themselves: leave the {what} out, cross_entropy applies log_softmax",
        )

    def _by_hand(self, call: Call) -> None:
        """The logarithm of a softmax, perhaps with a small number added, of a softmax."""
        node = behind(call.inputs[0].grad_fn)
        while node is not None and _name(node) in ("Add", "Clamp", "ClampMin", "Maximum"):
            parts = [fn for fn, _ in node.next_functions if fn is not None]
            node = behind(parts[0]) if len(parts) == 1 else None
        if node is None or _name(node) != "Softmax":
            return
        inner = behind(node.next_functions[0][0])
        if inner is None or _name(inner) != "Softmax":
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
        squashed = v.min() >= 0 and v.max() <= 1 and v.size >= _MANY
        by_hand = by in ("Div", "Reciprocal", "Pow") and squashed and made_of(x.grad_fn, "Exp")
        if by not in ("Sigmoid", "Softmax") and not by_hand:
            return
        self.find(
            call.place,
            f"the scores come from {'1 / (1 + exp(-x))' if by_hand else by.lower()} and lie in "
            f"{span(v)}; the loss applies sigmoid again, so that every probability lies between "
            "0.5 and 0.731",
            "give the scores themselves: leave the sigmoid out, or use binary_cross_entropy",
        )


_DISTANCES = ("_distance", "_mse_loss", "_smooth_l1_loss", "_huber_loss")


class BroadcastLoss(Rule):
    mistake = "prediction and target are broadcast against each other"
    operations = few = (*_DISTANCES, "sub", "mul")

    def operation(self, call: Call) -> None:
        a, b = call.inputs[:2]
        if not isinstance(b, Tensor) or a.requires_grad == b.requires_grad:
            return
        if call.name == "mul" and a.grad_fn is None and b.grad_fn is None:
            return  # an outer product with a parameter
        out = call.outputs[0]
        if call.name in _DISTANCES:
            sizes, shapes = self._unbroadcast(a, b)
        elif call.name == "sub" and self._is_l1(call):  # it broadcasts before it subtracts
            sizes, shapes = self._unbroadcast(a, b)
        else:
            sizes, shapes = (a.shape, b.shape), (tuple(a.shape), tuple(b.shape))
        one, two = sizes
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
        text = call.place.text if call.place else ""
        if call.name in ("sub", "mul") and ("None]" in text or "unsqueeze(" in text):
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
        return (one, one), (one, two)


LOSSES = (
    "_cross_entropy",
    "_nll_loss",
    "_binary_cross_entropy",
    "_binary_cross_entropy_with_logits",
    *_DISTANCES,
)


class TargetRequiresGrad(Rule):
    mistake = "the target of a loss requires grad"
    operations = (*LOSSES, "sub")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.judged: dict[Any, int] = {}  # lines whose target's model was looked for

    def operation(self, call: Call) -> None:
        if len(call.inputs) < 2:
            return
        x, y = call.inputs[:2]
        if not isinstance(y, Tensor) or not y.requires_grad or not x.requires_grad:
            return
        if call.name == "sub":
            # A loss by hand: only what can hardly be anything else.
            kinds = {self._returns(x), self._returns(y)}
            if "maximum" in kinds:
                self._tell(call, "a maximum over")
            elif kinds & {"value of steps that end"}:
                self._tell(call, "a later one of")
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
        self.find(
            call.place,
            f"the target, of shape {shape}, is computed from {what} {whose}, and its gradient "
            "flows back through them too",
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
            ends = ends or (factor.size >= _MANY and len(np.unique(factor)) == 2 and 0 in factor)
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


class LabelsOutside(Rule):
    mistake = "labels outside of what the loss is made for"
    operations = (
        "_binary_cross_entropy",
        "_binary_cross_entropy_with_logits",
        "_cross_entropy",
        "_nll_loss",
    )

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what != "refused":
            return
        outside = re.search(r"target (-?\d+) is out of bounds for (\d+) classes", str(subject))
        if outside is None:
            return
        label, classes = map(int, outside.groups())
        self.find(
            place,
            f"there is a label {label}; the scores are for {classes} classes, 0 to {classes - 1}",
            "give the model one output more for each class that is missing, or count labels from "
            "0; what is to be left out is marked with the loss's ignore_index (-100)",
        )

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if y.numel() == 0 or x.grad_fn is None:
            return
        if not y.is_floating_point():
            return
        v = values(y)
        if v.min() < 0 or v.max() > 1:
            self.find(
                call.place,
                f"targets lie in {span(v)}; the loss wants probabilities between 0 and 1, and has "
                "no lower bound for others",
                self._change(v),
            )

    @staticmethod
    def _change(v: Any) -> str:
        if v.min() >= 0 and v.max() > 2:
            highest = 255 if 100 < v.max() <= 255 else f"{v.max():g}"
            return f"bring the targets to 0 to 1: y / {highest}; for classes use cross_entropy"
        return "map the labels to 0 and 1: (y + 1) / 2 for labels -1 and 1, y - 1 for 1 and 2"


class ConstantLabels(Rule):
    mistake = "the labels are constant"
    operations = ("_cross_entropy", "_nll_loss", "_binary_cross_entropy_with_logits")

    ROUNDS = 4
    ENOUGH = 16

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, tuple[set[float], int, set[int], Place | None, int]] = {}

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if x.grad_fn is None or y.numel() == 0 or self._is_joined(x):
            return
        v = values(y)
        low, high = float(v.min()), float(v.max())
        key = call.key
        kinds, count, rounds, place, classes = self.seen.get(key, (set(), 0, set(), None, 0))
        kinds |= {low, high}
        rounds.add(self.run.round)
        binary = y.is_floating_point()
        classes = 2 if binary else (x.shape[class_dim(x)] if x.dim() else 0)
        self.seen[key] = (kinds, count + v.size, rounds, place or call.place, classes)

    @staticmethod
    def _is_joined(x: Tensor) -> bool:
        """Whether scores were put together, perhaps scaled since: in contrastive losses the right
        one always stands first."""
        node = x.grad_fn
        while node is not None and node.name().startswith(("Div", "Mul", *_HANDED_ON)):
            node = node.next_functions[0][0] if node.next_functions else None
        return node is not None and node.name().startswith(("Cat", "Stack"))

    def finish(self) -> None:
        if not any(owner_of(self.run.models, p) for p in self.run.optimized_tensors()):
            return  # an image is optimized, for one class
        # A GAN's targets are constant on each line, and differ between its lines.
        every = set().union(*(kinds for kinds, *_ in self.seen.values())) if self.seen else set()
        if len(every) != 1:
            return
        for kinds, count, rounds, place, classes in self.seen.values():
            if len(rounds) >= self.ROUNDS and count >= self.ENOUGH and classes > 1:
                (only,) = kinds
                left_out = only < 0 < classes
                self.find(
                    place,
                    f"all {count} labels of {len(rounds)} steps are {only:g}"
                    + (
                        ", which the loss leaves out: its mean is over nothing"
                        if left_out
                        else f", of {classes} classes"
                    ),
                    "check how labels are read; shuffle the data if they are sorted",
                )


class OneClassBatches(Rule):
    """Sorted labels without shuffling, where the data set cannot be looked at."""

    mistake = "labels rise through the batches: sorted data that is not shuffled"
    operations = ("_cross_entropy", "_nll_loss", "_binary_cross_entropy_with_logits")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, list[tuple[float, float, int, bool]]] = {}
        self.places: dict[Any, Place | None] = {}
        self.last: Batch | None = None

    def batch(self, batch: Batch) -> None:
        self.last = batch

    def _source(self, labels: Any) -> Place | None:
        """Where the loader was made that gave these labels."""
        given = self.last.tensors if self.last is not None else []
        mine = any(np.array_equal(values(t).reshape(-1), labels) for t in given)
        return self.last.place(self.run) if self.last is not None and mine else None

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if x.grad_fn is None or y.numel() < _MANY or y.dim() > 2:
            return
        v = values(y).reshape(-1)
        rising = bool((np.diff(v) >= 0).all())
        batches = self.seen.setdefault(call.key, [])
        if not batches:
            self.places[call.key] = self._source(v) or call.place
        batches.append((float(v[0]), float(v[-1]), v.size, rising))

    def finish(self) -> None:
        if len(self.seen) != 1:
            return  # several losses: GANs, contrastive terms
        for key, batches in self.seen.items():
            if len(batches) < 4:
                continue
            kinds = {b[0] for b in batches} | {b[1] for b in batches}
            rising = sum(b[3] for b in batches)
            ordered = sum(a[1] <= b[0] for a, b in pairwise(batches))
            if len(kinds) < 2 or rising < len(batches) or ordered < 0.6 * (len(batches) - 1):
                continue
            if len({b[:2] for b in batches}) == 1:
                continue  # one batch again and again: nothing to shuffle
            pure = sum(b[0] == b[1] for b in batches)
            self.find(
                self.places[key],
                f"in all {len(batches)} batches the labels rise from first to last, {pure} of them "
                f"hold one class only, and most begin where the one before ended",
                "shuffle: DataLoader(..., shuffle=True), or draw the indices with randperm()",
            )


class UnscaledAccumulation(Rule):
    mistake = "gradients of several batches are added up without dividing the loss"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.calls: dict[Any, list[Any]] = {}
        self.history: dict[Any, list[int]] = {}

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or len(pass_.roots) != 1:
            return
        root = pass_.roots[0]
        node = root.grad_fn
        if node is None or root.numel() != 1:
            return
        known = self.run.optimized()
        mine = [leaf for leaf in pass_.leaves if id(leaf) in known]
        if not mine:
            return  # copies that the program steps itself
        trained = {id(leaf) for leaf in mine}
        if all(leaf.grad is None or not values(leaf.grad).any() for leaf in mine[:_MANY]):
            # Cleared since: nothing of before adds up, as in LBFGS or adversarial training.
            for key in [k for k, call in self.calls.items() if call[3] & trained]:
                del self.calls[key]
        calls = self.calls.setdefault(pass_.key, [0, 0, pass_.place, trained])
        plain = calls[0] == calls[1]  # all so far
        calls[0] += 1
        # Losses of several tasks, each with a head of its own, are added on purpose.
        calls[1] += plain and trained == calls[3] and self._is_plain_mean(pass_, node)

    def _is_plain_mean(self, pass_: Pass, node: Any) -> bool:
        scaled = self.run.scaler is not None and is_scaled(node, self.run.scaler)
        if scaled:
            node = node.next_functions[0][0]
        name = node.name().removesuffix("Backward0")
        if name == "Mean":
            return True
        columns = pass_.columns
        index = columns["roots"][0][0]
        if scaled:
            index = columns["sequence"].index(node._sequence_nr())
        attributes = columns["attributes"][index] or {}
        kind = attributes.get("reduction", attributes.get("mean"))
        return kind in ("mean", True)

    def stepped(self, watched: Watched) -> None:
        for key, (count, plain, place, _) in self.calls.items():
            history = self.history.setdefault(key, [])
            history.append(count if plain == count else 0)
            if len(history) >= 2 and min(history[-2:]) >= 2 and history[-1] == history[-2]:
                self.find(
                    place,
                    f"backward runs {count} times for each step, on the mean over a batch each "
                    f"time: the gradient is {count} times that of one batch",
                    f"divide before backward: (loss / {count}).backward()",
                )
        self.calls.clear()


class IntegerDivision(Rule):
    mistake = "integer division where a fraction was meant"
    PICKS = ("_index", "index_select", "gather")
    operations = (
        "floor_divide",
        "_div_floor",
        "_div_trunc",
        *("_to_dtype", "add", "sub", "mul", "div"),
        *PICKS,
    )
    few = ("add", "sub", "mul", "div")  # it looks at integers alone

    LOST = 0.95  # share of the quotients that are 0 although what was divided was not

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Quotients that are nearly all 0: where an index is meant, that may be right.
        self.doubtful: dict[int, tuple[weakref.ref[Tensor], Place | None, str]] = {}

    def _doubt(self, x: Any) -> tuple[Any, Place | None, str] | None:
        doubt = self.doubtful.get(id(x))
        return doubt if doubt is not None and doubt[0]() is x else None

    def _used(self, call: Call) -> None:
        """A quotient that is used as a float was meant as one; picked out, it is still one."""
        if not self.doubtful:
            return
        out = call.outputs[0]
        for x in call.inputs[:1] if call.name in self.PICKS else call.inputs:
            doubt = self._doubt(x)
            if doubt is None:
                continue
            if out.is_floating_point():
                self.find(doubt[1], doubt[2], "divide with /, or convert first: x.float() / n")
            else:
                self.doubtful[id(out)] = (weakref.ref(out), *doubt[1:])

    def operation(self, call: Call) -> None:
        x, *_ = call.inputs
        out = call.outputs[0]
        if "_div" not in call.name:
            self._used(call)
            return
        if out.is_floating_point():
            if x.requires_grad and out.numel():
                self.find(
                    call.place,
                    "floor division of a value that requires grad: its gradient is zero everywhere",
                    "divide with /",
                )
            return
        if x.numel() == 0 or x.dtype.name == "bool":
            return
        v, w = values(x), values(out)
        lost = v.max() > 0 and not w.any()
        fraction = lost and ((x.dim() == 0 and not self._is_period(call)) or self._is_share(call))
        pixels = x.dtype.name == "uint8" and x.numel() > 16 and v.max() > 1 and w.max() <= 1
        doubtful = w.size > 16 and v.max() >= 16 and 0 <= w.min() and w.max() <= 1
        doubtful = doubtful and (w == 0).mean() > self.LOST
        doubtful = (doubtful or not w.any()) and (v != 0).mean() > 0.5
        if not fraction and not pixels and not doubtful:
            return
        seen = (
            f"integers in {span(v)} become {sorted(set(w.reshape(-1).tolist()))[:3]}: what lies "
            "after the point is dropped"
        )
        if fraction or pixels:  # nothing else can be meant
            self.find(call.place, seen, "divide with /, or convert first: x.float() / n")
        else:
            self.doubtful[id(out)] = (weakref.ref(out), call.place, seen)

    @staticmethod
    def _is_period(call: Call) -> bool:
        """Whether the line divides by a number that it names, as who counts periods does."""
        return call.place is not None and bool(re.search(r"//\s*\d", call.place.text))

    @staticmethod
    def _is_share(call: Call) -> bool:
        """Whether several numbers are divided by their own sum."""
        x, y = call.inputs[0], call.inputs[1] if len(call.inputs) > 1 else None
        if not isinstance(y, Tensor) or y.numel() != 1 or x.numel() < 2:
            return False
        return bool(values(x).sum() == values(y).reshape(-1)[0])
