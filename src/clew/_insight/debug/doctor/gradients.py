"""Gradients that stop learning: vanishing, exploding, cut off by rounding, NaN-prone."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.nodes import leaves_of, maker
from clew._insight.debug.doctor.rule import Rule, size_of, values
from clew._insight.debug.doctor.run import Call, Pass, Watched
from clew._insight.debug.place import Place

_ROUNDS = 3  # rounds in which something must be seen


class LayerGradients(Rule):
    mistake = "gradients vanish or explode from layer to layer"

    VANISHING = 1e-4  # the first layer's gradient by the last one's
    EXPLODING = 1e4
    LOST = 1e-6  # the first layer's gradient by that of the last bias
    FADED = 1e-2  # every weight's gradient by that of the last bias
    OWN = 1e-1  # the last weight's: what biases before it have learned goes in

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[int, list[list[tuple[str, float]]]] = {}
        self.places: dict[int, Any] = {}
        # By optimizer, the gradients of the last layer's bias, which needs no input to have one.
        self.biases: dict[int, list[tuple[str, float]]] = {}

    def stepping(self, watched: Watched) -> None:
        if self.run.scaler is not None:
            return
        rows = []
        bias = ("", 0.0)
        for p in watched.params:
            if p.grad is None or p.grad.numel() == 0:
                continue
            size = size_of(values(p.grad)) / p.numel() ** 0.5
            if p.dim() < 2:
                bias = (self.run.name_of(p), size)
                continue
            rows.append((self.run.name_of(p), size, p))
            bias = ("", 0.0)
        if len(rows) >= 2:
            self.biases.setdefault(id(watched), []).append(bias)
            self.seen.setdefault(id(watched), []).append([(n, s) for n, s, _ in rows])
            if id(watched) not in self.places:
                from clew import _C

                self.places[id(watched)] = (_C._recorded_use(rows[0][2]), watched.step_place)

    def finish(self) -> None:
        from clew._insight.debug.place import placed

        for key, rounds in self.seen.items():
            if len(rounds) < _ROUNDS:
                continue
            use, step = self.places[key]
            place = placed(use[0]) if use else step
            firsts = [r[0][1] for r in rounds]
            lasts = [r[-1][1] for r in rounds]
            names = (rounds[-1][0][0], rounds[-1][-1][0])
            # From the first step on: after it, a learning rate may be the reason.
            largest, smallest = (pick((s, n) for n, s in rounds[0]) for pick in (max, min))
            at_once = np.isfinite(largest[0]) and largest[0] > self.EXPLODING
            bad = sum(not np.isfinite(s) for r in rounds for _, s in r)
            if bad and not at_once:
                continue  # told by who finds where a NaN comes from
            biases = self.biases[key]
            # That of one batch may be small by chance, as where its classes are balanced.
            bias = sorted(size for _, size in biases)[len(biases) // 2]
            if (
                not bad
                and len(rounds[0]) >= 4
                and all(
                    0 < row[0][1] < self.LOST * bias
                    and max(size for _, size in row[:-1]) < self.FADED * bias
                    and row[-1][1] < self.OWN * bias
                    for row in rounds
                )
            ):
                most = max(size for _, size in rounds[-1])
                self.find(
                    place,
                    f"the gradient of {names[0]} is {firsts[-1]:.3g} for each number, that of any "
                    f"weight at most {most:.3g}, and that of {biases[-1][0]} {biases[-1][1]:.3g}, "
                    f"in all {len(rounds)} steps looked at: what the layers hand on is next to "
                    "nothing when it comes to the last one",
                    "start with larger weights (kaiming, xavier), or use normalisation or residual "
                    "connections",
                    (key, "vanishing"),
                )
            elif (
                not bad
                and len(rounds[0]) >= 4
                and all(0 < f < self.VANISHING * last for f, last in zip(firsts, lasts))
                # One that is small by itself, such as a query, need not be the first layer.
                and all(r[1][1] < self.FADED * r[-1][1] for r in rounds)
            ):
                self.find(
                    place,
                    f"the gradient of {names[0]} is {firsts[-1]:.3g} for each number, that of "
                    f"{names[1]} {lasts[-1]:.3g}: {lasts[-1] / firsts[-1]:.2g} times as much, in "
                    f"all {len(rounds)} steps looked at",
                    "use ReLU instead of sigmoid or tanh, normalisation, residual connections, or "
                    "an initialisation that keeps sizes (kaiming, xavier)",
                    (key, "vanishing"),
                )
            elif (
                at_once
                and (bad or all(max(s for _, s in r) > self.EXPLODING for r in rounds[-_ROUNDS:]))
            ) or (
                not bad
                and len(rounds[0]) >= 4
                and all(f > last / self.VANISHING > 0 for f, last in zip(firsts, lasts))
            ):
                self.find(
                    place,
                    f"the gradient of {largest[1]} is {largest[0]:.3g} for each number, that of "
                    f"{smallest[1]} is {smallest[0]:.3g}",
                    "clip gradients (clip_grad_norm_), start with smaller weights, lower the "
                    "learning rate",
                    (key, "exploding"),
                )


# At which values of the input a slope is infinite or NaN.
def _zero(v: Any) -> Any:
    return v == 0


def _at_one(v: Any) -> Any:
    return np.abs(v) >= 1


_EDGES: dict[str, tuple[Any, str, str]] = {
    "sqrt": (_zero, "0", "sqrt(x + eps), or sqrt(x.clamp(min=eps))"),
    "rsqrt": (_zero, "0", "rsqrt(x + eps)"),
    "log": (_zero, "0", "log(x + eps), or log(x.clamp(min=eps)); log_softmax for log(softmax)"),
    "log2": (_zero, "0", "log2(x + eps)"),
    "log10": (_zero, "0", "log10(x + eps)"),
    "reciprocal": (_zero, "0", "1 / (x + eps)"),
    "acos": (_at_one, "-1 or 1", "acos(x.clamp(-1 + eps, 1 - eps))"),
    "asin": (_at_one, "-1 or 1", "asin(x.clamp(-1 + eps, 1 - eps))"),
    "acosh": (lambda v: v <= 1, "1", "acosh(x.clamp(min=1 + eps))"),
    "atanh": (_at_one, "-1 or 1", "atanh(x.clamp(-1 + eps, 1 - eps))"),
}


class AtTheEdge(Rule):
    mistake = "an expression is differentiated where its slope is infinite"
    operations = (*_EDGES, "div", "pow", "atan2", "softmax", "log_softmax", "_attention")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Since the last backward, of what makes NaN of -inf: its line, and what was seen.
        self.nothing: tuple[Place | None, str] | None = None
        # The first division of data that gave NaN.
        self.spoiled: tuple[Place | None, str, str] | None = None

    def operation(self, call: Call) -> None:
        x = call.inputs[0]
        if not isinstance(x, Tensor):
            return
        if not call.outputs[0].requires_grad:
            if call.name == "div":
                self._spoiled_data(call)
            return
        name = call.name
        if name == "div":
            self._divided(call)
            return
        if name == "pow":
            self._power(call)
            return
        if name == "atan2":
            self._angle(call)
            return
        if name not in _EDGES:
            self._chosen_of_nothing(call)
            return
        if not x.requires_grad or not x.is_floating_point() or x.numel() == 0:
            return
        test, edge, change = _EDGES[name]
        hits = int(test(values(x)).sum())
        if hits:
            self.find(
                call.place,
                f"{hits} of {x.numel()} inputs of {name} are {edge}: its slope is infinite or NaN "
                "there, and 0 times infinity is NaN",
                f"keep away from the edge: {change}",
            )

    def _divided(self, call: Call) -> None:
        y = call.inputs[1] if len(call.inputs) > 1 else None
        if not isinstance(y, Tensor) or not y.is_floating_point() or y.numel() == 0:
            return
        v = values(y)
        if v.ndim == 0 and v != 0:
            return
        hits = int((v == 0).sum())
        if hits:
            self.find(
                call.place,
                f"{hits} of {y.numel()} divisors are 0: the quotient and its slope are infinite or "
                "NaN there",
                "divide by y + eps, or by y.clamp(min=eps); for a norm use normalize(x, eps=...)",
            )

    def _angle(self, call: Call) -> None:
        y, x = call.inputs[:2]
        hits = int(((values(y) == 0) & (values(x) == 0)).sum())
        if hits:
            self.find(
                call.place,
                f"{hits} of {call.outputs[0].numel()} pairs of atan2 are 0 and 0: its slope is NaN "
                "there",
                "keep away from the edge: atan2(y, x + eps)",
            )

    def _chosen_of_nothing(self, call: Call) -> None:
        """Of a softmax: rows that are all -inf, as where a mask leaves nothing to choose from."""
        out = call.outputs[0]
        if self.nothing is not None or out.dim() == 0 or out.numel() == 0:
            return
        first = values(out)[..., 0]
        hits = int(np.isnan(first).sum())
        if hits and not any(np.isnan(values(t)).any() for t in call.inputs if self._is_given(t)):
            self.nothing = (
                call.place,
                f"{hits} of {first.size} rows of {call.name.lstrip('_')} are NaN and their inputs "
                "are not: a mask leaves nothing in them, or all of it is -inf",
            )

    def _spoiled_data(self, call: Call) -> None:
        """Of 0 divided by 0 before anything is learned, as in a column that is always the same."""
        y = call.inputs[1] if len(call.inputs) > 1 else None
        if self.spoiled is not None or not isinstance(y, Tensor) or not y.is_floating_point():
            return
        hits = int((values(y) == 0).sum())
        if hits and np.isnan(values(call.outputs[0])).any():
            self.spoiled = (
                call.place,
                f"{hits} of {y.numel()} divisors are 0, and so is what they divide: the quotient "
                "is NaN, and all that is computed from it",
                "divide by y + eps, or by y.clamp(min=eps); leave out columns that are constant",
            )

    def backward(self, pass_: Pass) -> None:
        if self.nothing is None and (self.spoiled is None or self.findings):
            return
        if not np.isfinite(values(pass_.roots[0])).all():
            if self.nothing is not None:
                self.find(
                    *self.nothing,
                    "leave something in each row, or mask with a large number (-1e9) instead of "
                    "-inf",
                )
            elif self.spoiled is not None:
                self.find(*self.spoiled)
        self.nothing = None  # NaN that was replaced

    @staticmethod
    def _is_given(t: Any) -> bool:
        return isinstance(t, Tensor) and t.is_floating_point()

    def _power(self, call: Call) -> None:
        x = call.inputs[0]
        node = call.outputs[0].grad_fn
        exponent = getattr(node, "_saved_exponent", None)
        if isinstance(exponent, Tensor):
            exponent = float(values(exponent)) if exponent.numel() == 1 else None
        if not isinstance(exponent, (int, float)) or exponent >= 1 or exponent == 0:
            return
        if not x.requires_grad:
            return
        hits = int((values(x) == 0).sum())
        if hits:
            self.find(
                call.place,
                f"{hits} of {x.numel()} bases are 0 under the exponent {exponent:g}: the slope is "
                "infinite there",
                "add a small number to the base",
            )


class WhereTrap(Rule):
    mistake = "where() hides values whose gradient is still computed"
    operations = ("where",)

    def operation(self, call: Call) -> None:
        if len(call.inputs) < 3:
            return
        mask = call.inputs[0]
        for i, t in enumerate(call.inputs[1:3]):
            if not isinstance(t, Tensor) or t.grad_fn is None or not t.is_floating_point():
                continue
            v = values(t)
            bad = ~np.isfinite(v)
            if not bad.any() or maker(t).startswith(("Where", "MaskedFill")):
                continue  # what was filled in has no slope
            chosen = np.broadcast_to(values(mask) == (i == 0), call.outputs[0].shape)
            hidden = int((np.broadcast_to(bad, chosen.shape) & ~chosen).sum())
            if hidden and not self._spoiled():
                self.find(
                    call.place,
                    f"{hidden} values of the branch made by {maker(t).lower() or 'an operation'} "
                    "are NaN or infinite and not chosen; backward multiplies their slope by 0, "
                    "which gives NaN",
                    "make the input safe first: x = where(mask, x, 1); y = where(mask, f(x), 0)",
                )

    def _spoiled(self) -> bool:
        """Whether parameters are NaN already, and all values with them."""
        return any(not np.isfinite(values(p)).all() for p in self.run.optimized_tensors())


class RoundedAway(Rule):
    """Operations whose gradient is zero everywhere, where nothing goes around them."""

    mistake = "parameters are cut off from the loss"
    operations = ("round", "floor", "ceil", "trunc", "sign", "heaviside")

    ROUNDS = 2

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By the number of its node, what ran in this round and where.
        self.ran: dict[int, tuple[str, Place | None]] = {}
        self.times: dict[Any, int] = {}
        self.alive: set[int] = set()  # parameters that some loss reached around them
        self.starved: dict[Any, tuple[str, Place | None, list[Tensor]]] = {}

    def operation(self, call: Call) -> None:
        node = call.outputs[0].grad_fn
        if node is not None:
            self.ran[node._sequence_nr()] = (call.name, call.place)

    def backward(self, pass_: Pass) -> None:
        ran, self.ran = self.ran, {}
        mine = ran.keys() & set(pass_.sequences)
        if not mine or pass_.how == "grad":
            self.alive |= {id(leaf) for leaf in pass_.leaves}
            return
        known = self.run.optimized()
        alive = {
            id(leaf)
            for root in pass_.roots
            if root.grad_fn is not None
            for leaf in leaves_of(root.grad_fn, mine).values()
        }
        self.alive |= alive
        starved = [leaf for leaf in pass_.leaves if id(leaf) in known and id(leaf) not in alive]
        self.times[pass_.key] = self.times.get(pass_.key, 0) + 1
        if not starved or self.times[pass_.key] < self.ROUNDS:
            return
        self.starved[pass_.key] = (*ran[max(mine)], starved)

    def finish(self) -> None:
        for name, place, params in self.starved.values():
            starved = [p for p in params if id(p) not in self.alive]
            if not starved:
                continue
            names = ", ".join(self.run.name_of(p) for p in starved[:3])
            more = f" and {len(starved) - 3} more" if len(starved) > 3 else ""
            self.find(
                place,
                f"the loss reaches {names}{more} ({sum(p.numel() for p in starved):,} numbers) "
                f"through {name}() only, whose gradient is zero everywhere: they get zeros",
                f"hand the gradient on as it is: x + ({name}(x) - x).detach(), or leave {name}() "
                "out while training",
            )


class NotFinite(Rule):
    mistake = "the loss is NaN or infinite"

    def backward(self, pass_: Any) -> None:
        root = pass_.roots[0]
        if root.numel() == 1 and not np.isfinite(values(root)).all():
            self.find(
                pass_.place,
                f"the loss is {values(root).reshape(-1)[0]} in step {self.run.round + 1}",
                "find where it is born: with clew.debug.nan_watch(): ...",
                "loss",
            )
