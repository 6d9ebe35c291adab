"""Results that cannot do what a loss asks of them: constant, out of reach, in the wrong place."""

from __future__ import annotations

import re
import weakref
from typing import Any

import numpy as np

from clew import _C, Tensor
from clew._insight.debug.doctor.nodes import LOSSES, behind, class_dim, maker, span
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Call, Pass, Watched
from clew._insight.debug.place import Place, placed

_ROUNDS = 3  # rounds in which something must be seen
_MANY = 4  # elements that are enough to judge by


class OneScore(Rule):
    """Classes of which there is one: its probability is 1 whatever the model says."""

    mistake = "a softmax over a single value"
    operations = ("_cross_entropy", "softmax", "log_softmax")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By line: the rounds with one class, the calls with several, the place and what was seen.
        self.seen: dict[Any, list[Any]] = {}

    def operation(self, call: Call) -> None:
        x = call.inputs[0]
        if x.grad_fn is None or x.dim() < 1 or x.numel() == 0:
            return
        if call.name == "_cross_entropy":
            single = x.shape[class_dim(x)] == 1
            what = "cross_entropy"
        else:
            # Attention over a sequence of one is no mistake: its scores are no layer's own.
            single = x.dim() >= 2 and x.shape[-1] == 1 and maker(x).startswith(("Linear", "Addmm"))
            single = single and (x.dim() == 2 or x.shape[-2] > 1)
            constant = 1 if call.name == "softmax" else 0
            single = single and bool((values(call.outputs[0]) == constant).all())
            what = call.name
        seen = self.seen.setdefault(call.key, [set(), 0, call.place, what, tuple(x.shape)])
        if single:
            seen[0].add(self.run.round)
        else:
            seen[1] += 1

    def finish(self) -> None:
        for rounds, others, place, what, shape in self.seen.values():
            if others or len(rounds) < _ROUNDS:
                continue
            loss = what == "cross_entropy"
            self.find(
                place,
                f"{what} gets values of shape {shape}, "
                + ("one class" if loss else "one value to choose from")
                + f", in all {len(rounds)} steps looked at: a softmax over one value is always 1, "
                + ("the loss always 0, " if loss else "")
                + "and so is its gradient always 0",
                "for two classes with one output use binary_cross_entropy_with_logits"
                + (", or give the model an output for each class" if loss else " and no softmax"),
            )


class ZeroGradients(Rule):
    mistake = "all gradients are zero"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By optimizer: itself, steps with zeros, all steps.
        self.steps: dict[int, tuple[Watched, list[int]]] = {}
        self.place: Place | None = None
        self.losses: list[float] = []

    def backward(self, pass_: Pass) -> None:
        root = pass_.roots[0]
        if pass_.how != "grad" and root.numel() == 1:
            self.place = pass_.place
            self.losses.append(float(values(root).reshape(-1)[0]))

    def stepping(self, watched: Watched) -> None:
        grads = [p.grad for p in watched.params if p.grad is not None]
        if not grads:
            return
        counts = self.steps.setdefault(id(watched), (watched, [0, 0]))[1]
        counts[1] += 1
        if counts[0] == counts[1] - 1:  # once one differs, no more are looked at
            counts[0] += not any(values(g).any() for g in grads)

    def finish(self) -> None:
        different = set(self.losses)
        # A loss that stays as it is may be as low as it can be: a hinge, an angle of 0.
        if len(different) < _ROUNDS or len(different) < 0.9 * len(self.losses):
            return
        if 0 in different or not np.isfinite(self.losses).all():
            return
        for key, (watched, (zeros, steps)) in self.steps.items():
            if steps >= _ROUNDS and zeros == steps:
                self.find(
                    self.place,
                    f"in all {steps} steps looked at, every gradient of the "
                    f"{len(watched.params)} parameters of this {watched.kind} is exactly 0, while "
                    f"the loss lies between {min(different):.4g} and {max(different):.4g}: nothing "
                    "is learned",
                    "look for what does not change with the parameters: a softmax over one value, "
                    "a ratio of a value to itself, a rounded or clamped result",
                    key,
                )


class ProbabilitiesInKL(Rule):
    mistake = "log_softmax missing before kl_div"
    operations = ("xlogy", "mul")
    few = ("mul",)

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.target: weakref.ref[Tensor] | None = None  # of the kl_div() that runs

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if call.name == "xlogy":
            self.target = weakref.ref(x) if x is y else None
            if x is y:
                self.run.closely()
            return
        target = None if self.target is None else self.target()
        self.target = None
        if target is None or x is not target or not isinstance(y, Tensor):
            return
        if y.grad_fn is None or y.numel() < _MANY or y.shape != x.shape:
            return
        v = values(y)
        if not (v.min() >= 0 and v.max() <= 1 and v.max() > 0):
            return
        if any(np.abs(v.sum(d) - 1).max() < 0.02 for d in range(v.ndim) if v.shape[d] > 1):
            self.find(
                call.place,
                f"the input holds probabilities in {span(v)} that add up to 1; kl_div wants their "
                "logarithms, which are never above 0",
                "give log_softmax(scores, dim=1) as the input; the target stays probabilities",
            )


class Swapped(Rule):
    mistake = "input and target of a loss are swapped"
    operations = (
        "_cross_entropy",
        "log_softmax",
        "mul",
        "_binary_cross_entropy",
        "_binary_cross_entropy_with_logits",
    )
    few = ("mul",)

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # The last logarithm of labels, which cross_entropy() with soft targets multiplies.
        self.labels: tuple[weakref.ref[Tensor], Tensor] | None = None

    def backward(self, pass_: Pass) -> None:
        if self.labels is not None and self.labels[0]() is None:
            self.labels = None
        if self.labels is not None:
            self.run.closely()

    def operation(self, call: Call) -> None:
        if call.name == "mul" and self.labels is None:
            return
        x = call.inputs[0]
        if call.name == "log_softmax":
            self.labels = None if x.requires_grad else (weakref.ref(call.outputs[0]), x)
            if self.labels is not None:
                self.run.closely()
            return
        y = call.inputs[1] if len(call.inputs) > 1 else None
        if call.name == "mul" and self.labels is not None:
            scores, labels = self.labels[0](), self.labels[1]
            if scores is x:
                x = labels
            elif scores is y:
                x, y = labels, x
            else:
                return
        if not isinstance(y, Tensor) or x.requires_grad or y.grad_fn is None:
            return
        v = values(x)
        if v.size < _MANY or not ((v == 0) | (v == 1)).all() or v.min() == v.max():
            return
        self.find(
            call.place,
            f"the first argument, of shape {tuple(x.shape)}, holds zeros and ones alone and no "
            "gradient flows into it; the second, the target, is what the model computed",
            "give the model's result first and the labels second: loss(output, target)",
        )


_REACH = {
    "Relu": (0.0, np.inf),
    "Sigmoid": (0.0, 1.0),
    "Softmax": (0.0, 1.0),
    "Tanh": (-1.0, 1.0),
}


class OutOfReach(Rule):
    mistake = "targets lie where the output cannot get"
    LAYERS = few = ("nn.functional.linear", "conv1d", "conv2d", "conv3d")
    operations = ("_mse_loss", "_smooth_l1_loss", "_huber_loss", "_distance", *LAYERS)

    SHARE = 0.1  # of the targets
    SLACK = 0.05

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, list[Any]] = {}  # by line: rounds with them, calls, the last evidence
        self.frozen = False  # whether a frozen layer ran, in which no graph shows, since backward

    def backward(self, pass_: Pass) -> None:
        self.frozen = False

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if call.name in self.LAYERS:
            self.frozen = self.frozen or not call.outputs[0].requires_grad
            return
        if self.frozen or not isinstance(y, Tensor) or x.grad_fn is None or y.requires_grad:
            return
        cut = _C._cut_of(y)
        if y.numel() < _MANY or (cut is not None and cut[0] != "made"):
            return  # what another model made, such as a teacher's features
        by = maker(x)
        reach = _REACH.get(by)
        seen = self.seen.setdefault(call.key, [set(), 0, call.place, ""])
        seen[1] += 1
        if reach is None:
            return
        v = values(y)
        share = ((v < reach[0] - self.SLACK) | (v > reach[1] + self.SLACK)).mean()
        if share >= self.SHARE:
            seen[0].add(self.run.round)
            if by == "Relu":  # which is no last layer's activation where numbers are to be met
                seen[2] = placed(behind(x.grad_fn)._place) or call.place
            bounds = "0 and more" if by == "Relu" else f"{reach[0]:g} to {reach[1]:g}"
            seen[3] = (
                f"the output comes from {by.lower()}, which gives {bounds}, and {share:.0%} of the "
                f"targets, in {span(v)}, lie outside"
            )

    def finish(self) -> None:
        for rounds, calls, place, evidence in self.seen.values():
            if len(rounds) >= _ROUNDS and len(rounds) >= 0.8 * calls:
                self.find(
                    place,
                    evidence + f", in {len(rounds)} steps looked at",
                    "leave the activation after the last layer out, or bring the targets into its "
                    "range",
                )


class ConstantTerm(Rule):
    mistake = "a term of the loss is made of gradients that were not recorded"
    operations = few = ("add", "sub")  # it looks at single numbers alone

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[int, tuple[Call, Tensor]] = {}  # by the sum's number, with what is constant

    def operation(self, call: Call) -> None:
        x, y = call.inputs if len(call.inputs) == 2 else (None, None)
        if not isinstance(x, Tensor) or not isinstance(y, Tensor):
            return
        if x.requires_grad == y.requires_grad or x.dim() or y.dim():
            return
        constant, loss = (y, x) if x.requires_grad else (x, y)
        node = call.outputs[0].grad_fn
        cut = _C._cut_of(constant)
        if loss.grad_fn is None or node is None or cut is None or cut[0] != "gradient":
            return
        self.seen[node._sequence_nr()] = (call, constant)

    def backward(self, pass_: Pass) -> None:
        seen, self.seen = self.seen, {}
        pending = [t.grad_fn for t in pass_.roots if t.grad_fn is not None] if seen else []
        while pending:  # from the loss through its terms
            node = pending.pop()
            if node._sequence_nr() in seen:
                self._tell(*seen[node._sequence_nr()])
            if node.name().startswith(("Add", "Sub", "Mul", "Div", "Neg")):
                pending += [fn for fn, _ in node.next_functions if fn is not None]

    def _tell(self, call: Call, constant: Tensor) -> None:
        cut = _C._cut_of(constant)
        made = placed(cut[2]) if cut is not None else None
        self.find(
            made or call.place,
            "autograd.grad() gave numbers without a graph, and what was computed from them, now "
            f"{float(values(constant)):.4g}, is added to a loss"
            + (f" at {call.place.short}" if call.place else "")
            + ": it is a constant there and trains nothing",
            "call autograd.grad(..., create_graph=True)",
        )


class SpreadOfOne(Rule):
    mistake = "the standard deviation of a single value"
    operations = ("std", "var")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: Call | None = None  # the first of this round

    def operation(self, call: Call) -> None:
        v = values(call.outputs[0])
        if v.size and np.isnan(v).any() and np.isfinite(values(call.inputs[0])).all():
            self.seen = self.seen or call

    def backward(self, pass_: Pass) -> None:
        call, self.seen = self.seen, None
        if call is None or all(np.isfinite(values(t)).all() for t in pass_.roots):
            return
        self.find(
            call.place,
            f"{call.name}() of a tensor of shape {tuple(call.inputs[0].shape)} is NaN, because it "
            "divides by n - 1 and there is one value; the loss is NaN with it",
            "leave samples of one value out, or use unbiased=False (correction=0)",
        )


class WeightedByAttached(Rule):
    """REINFORCE: the gradient of log_prob times an advantage that has one of its own."""

    mistake = "the advantage is not detached from its critic"
    operations = few = ("mul",)

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.drawn: dict[int, weakref.ref[Tensor]] = {}  # what was drawn without a gradient
        self.scored: dict[int, Any] = {}  # by their node's number, log-probabilities of that

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "drawn" and not subject.requires_grad:
            if len(self.drawn) > 256:
                self.drawn = {k: ref for k, ref in self.drawn.items() if ref() is not None}
            self.drawn[id(subject)] = weakref.ref(subject)
        elif what == "scored":
            value, result = subject
            known = self.drawn.get(id(value))
            if known is not None and known() is value and result.grad_fn is not None:
                self.scored[result.grad_fn._sequence_nr()] = None
                self.run.closely()

    def operation(self, call: Call) -> None:
        x, y = call.inputs if len(call.inputs) == 2 else (None, None)
        if not self.scored or not isinstance(y, Tensor):
            return
        if not isinstance(x, Tensor) or not (x.grad_fn and y.grad_fn) or x.dim() < 1:
            return
        if not (self._is_score(x) ^ self._is_score(y)) or x.shape != y.shape:
            return
        weight = y if self._is_score(x) else x
        # reward - value, which only a critic can have made.
        node = behind(weight.grad_fn)
        if node is None or not node.name().startswith(("Sub", "Rsub")):
            return
        if [fn for fn, _ in node.next_functions].count(None) != 1:
            return
        self.find(
            call.place,
            f"the logarithms of the probabilities of what was drawn, of shape {tuple(x.shape)}, "
            "are multiplied by a difference to a value that requires grad: the critic is trained "
            "by the policy's loss, too, towards values that make it small",
            "detach it: (returns - values).detach()",
        )

    def _is_score(self, t: Tensor) -> bool:
        node = t.grad_fn
        while node is not None and node._sequence_nr() not in self.scored:
            handed_on = node.name().startswith(("Neg", "Sum")) or behind(node) is not node
            node = node.next_functions[0][0] if handed_on else None
        return node is not None

    def backward(self, pass_: Pass) -> None:
        self.scored.clear()


class ScoresAsProbabilities(Rule):
    """Of programs whose one loss takes scores: what is above 0.5 is counted as a yes."""

    mistake = "scores are compared with 0.5 as if they were probabilities"
    operations = (*LOSSES, "gt", "ge", "eq")
    few = ("gt", "ge")

    ENOUGH = 3  # steps
    OUTSIDE = 0.05  # values below 0 that are no probabilities, however they were rounded

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.losses: dict[str, set[int]] = {}  # names of losses, and the steps that had them
        self.sizes: set[tuple[int, ...]] = set()  # of one sample's scores
        # Answers since the last backward: themselves, the comparison, how many would be others.
        self.answers: list[tuple[Any, Call, int]] = []
        # By line: the comparison, how many answers, how many of them would be others.
        self.seen: dict[Any, list[Any]] = {}

    def backward(self, pass_: Pass) -> None:
        self.answers.clear()

    def operation(self, call: Call) -> None:
        if call.name in ("gt", "ge"):
            self._asked(call)
        elif call.name == "eq":
            self._compared(call)
        elif call.inputs[0].requires_grad:
            self.losses.setdefault(call.name, set()).add(self.run.round)
            self.sizes.add(_sample(call.inputs[0]))

    def _asked(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if not isinstance(y, Tensor) or y.dim() or x.dim() < 1 or _sample(x) not in self.sizes:
            return
        if float(values(y)) != 0.5 or not x.is_floating_point() or x.numel() < _MANY:
            return
        if x.grad_fn is None and _C._cut_of(x) is None:
            return  # it is what the program was given, and no model's answer
        v = values(x)
        if not v.min() < -self.OUTSIDE or len(self.answers) >= _MANY:
            return
        others = int(((v > 0) & (v <= 0.5)).sum())
        self.answers.append((values(call.outputs[0]).reshape(-1).copy(), call, others))

    def _compared(self, call: Call) -> None:
        a, b = call.inputs[:2]
        if not self.answers or not isinstance(b, Tensor) or a.shape != b.shape:
            return
        one, two = values(a).reshape(-1), values(b).reshape(-1)
        if not (((one == 0) | (one == 1)).all() and ((two == 0) | (two == 1)).all()):
            return
        for answers, asked, others in self.answers:
            if np.array_equal(answers, one) or np.array_equal(answers, two):
                seen = self.seen.setdefault(asked.key, [asked.place, 0, 0])
                seen[1] += answers.size
                seen[2] += others

    def finish(self) -> None:
        # Another loss may train outputs that are meant to lie around 0.5.
        steps = self.losses.get("_binary_cross_entropy_with_logits", set())
        if len(self.losses) != 1 or len(steps) < self.ENOUGH:
            return
        for place, all_, others in self.seen.values():
            # Where the line names another threshold, the best one is searched for.
            if not others or place is None or not re.search(r">=?\s*0?\.5\b", place.text):
                continue
            self.find(
                place,
                f"{others} of {all_} answers are no, because the score is not above 0.5, although "
                "it is above 0: binary_cross_entropy_with_logits trains scores, whose sigmoid is "
                "the probability, and it is above 0.5 where the score is above 0",
                "compare the probability: scores.sigmoid() > 0.5, or scores > 0",
            )


def _sample(t: Tensor) -> tuple[int, ...]:
    """The sizes of one sample's values; a column of one number is as good as none."""
    return tuple(n for n in t.shape[1:] if n != 1)
