"""L-BFGS: quasi-Newton steps from a limited memory of gradient changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor

from ._rule import ParamsT, _check_lr
from .optimizer import Optimizer

__all__ = ["LBFGS"]

# A point on a line search: step length, loss, gradient, and the slope along the direction.
_Point = tuple[float, float, Tensor, float]


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through the losses and slopes of two points is smallest, within bounds."""
    (x1, f1, _, g1), (x2, f2, _, g2) = a, b
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    if x1 == x2:
        return (low + high) / 2
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2
    d2 = square**0.5
    spread = (g2 - g1 if x1 <= x2 else g1 - g2) + 2 * d2
    if spread == 0:  # a straight line has no minimum
        return (low + high) / 2
    if x1 <= x2:
        x = x2 - (x2 - x1) * ((g2 + d2 - d1) / spread)
    else:
        x = x1 - (x1 - x2) * ((g1 + d2 - d1) / spread)
    return min(max(x, low), high)


def _strong_wolfe(
    evaluate: Callable[[float], tuple[float, Tensor]],
    direction: Tensor,
    t: float,
    loss: float,
    grad: Tensor,
    slope: float,
    tolerance_change: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    max_steps: int = 25,
) -> tuple[float, Tensor, float, int]:
    """A step length that satisfies the strong Wolfe conditions: bracket, then zoom.

    Returns the loss, the gradient, the step length and the number of evaluations.
    """
    size = direction.abs().max().item()
    evaluations = 0

    def look(at: float) -> _Point:
        nonlocal evaluations
        evaluations += 1
        value, g = evaluate(at)
        return (at, value, g, g.dot(direction).item())

    start: _Point = (0.0, loss, grad.clone(), slope)
    previous = start
    current = look(t)
    bracket: list[_Point] | None = None
    found = False
    step = 0
    while step < max_steps:
        if current[1] > loss + c1 * current[0] * slope or (step > 1 and current[1] >= previous[1]):
            bracket = [previous, current]
            break
        if abs(current[3]) <= -c2 * slope:
            bracket = [current]
            found = True
            break
        if current[3] >= 0:
            bracket = [previous, current]
            break
        low = current[0] + 0.01 * (current[0] - previous[0])
        high = current[0] * 10
        following = _cubic_minimum(previous, current, (low, high))
        previous = current
        current = look(following)
        step += 1
    if bracket is None:  # every step so far went downhill
        bracket = [start, current]

    stuck = False
    # bracket[best] has the smaller loss
    best, worst = (0, 1) if len(bracket) == 1 or bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not found and step < max_steps:
        left = min(bracket[0][0], bracket[1][0])
        right = max(bracket[0][0], bracket[1][0])
        if (right - left) * size < tolerance_change:
            break
        t = _cubic_minimum(bracket[0], bracket[1])
        # A step too near an end of the bracket learns little: move it inwards, by a tenth.
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = look(t)
        step += 1
        if point[1] > loss + c1 * t * slope or point[1] >= bracket[best][1]:
            bracket[worst] = point
            best, worst = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(point[3]) <= -c2 * slope:
                found = True
            elif point[3] * (bracket[worst][0] - bracket[best][0]) >= 0:
                bracket[worst] = bracket[best]
            bracket[best] = point
    t, value, g, _ = bracket[best]
    return value, g, t, evaluations


class _Curvature:
    """An approximate inverse Hessian: y, s and 1 / <y, s> of the remembered iterations."""

    def __init__(self, state: Any) -> None:
        self.changes, self.steps = state.get("old_dirs"), state.get("old_stps")
        self.ro, self.scale = state.get("ro"), state.get("H_diag")

    def restart(self) -> None:
        """Knows nothing: the direction is the negative gradient."""
        self.changes, self.steps, self.ro, self.scale = [], [], [], 1

    def learn(self, y: Tensor, s: Tensor, most: int) -> None:
        """Takes in how the gradient changed along a step; of `most` iterations the oldest goes."""
        ys = y.dot(s)
        if ys > 1e-10:
            for known, value in zip((self.changes, self.steps, self.ro), (y, s, 1.0 / ys)):
                if len(known) == most:
                    known.pop(0)
                known.append(value)
            self.scale = ys / y.dot(y)

    def direction(self, grad: Tensor, alphas: list[Any]) -> Tensor:
        """The approximate inverse Hessian times the negative gradient, by two loops."""
        changes, steps, ro = self.changes, self.steps, self.ro
        q = grad.neg()
        for i in range(len(changes) - 1, -1, -1):
            alphas[i] = steps[i].dot(q) * ro[i]
            q.add_(changes[i] * -alphas[i])
        r = q.mul(self.scale)
        for i in range(len(changes)):
            r.add_(steps[i] * (alphas[i] - changes[i].dot(r) * ro[i]))
        return r

    def save(self, state: Any) -> None:
        """Puts it into an optimizer's state, under PyTorch's names."""
        state["old_dirs"], state["old_stps"] = self.changes, self.steps
        state["ro"], state["H_diag"] = self.ro, self.scale


class LBFGS(Optimizer):
    """Limited-memory BFGS; `step` needs a closure and evaluates it several times.

    w = w + t * d with d = -H g, where H approximates the inverse Hessian. It starts as
    (s @ y) / (y @ y) times the identity, of the last pair; each remembered pair of s (change of w)
    and y (change of g), oldest first, makes of it, with rho = 1 / (s @ y),
    (I - rho s yT) H (I - rho y sT) + rho s sT. A pair with s @ y <= 1e-10 is not kept.
    t is lr, in the first iteration lr * min(1, 1 / sum(|g|)); a line search starts there.

    Source: Liu and Nocedal, On the limited memory BFGS method for large scale optimization (1989);
    Nocedal and Wright, Numerical Optimization (2006), algorithms 7.4 (two loops), 3.5 and 3.6
    (strong Wolfe).

    Args:
        params: tensors or (name, tensor) pairs; one group only.
        lr: step length before the line search.
        max_iter: most iterations in one `step`.
        max_eval: most evaluations of the closure in one `step`; None for max_iter * 5 / 4.
        tolerance_grad: stop when no element of the gradient exceeds this.
        tolerance_change: stop when parameters or loss change by less than this.
        history_size: how many gradient changes are remembered.
        line_search_fn: None or "strong_wolfe".

    Example:
        >>> w = clew.tensor([3.0], requires_grad=True)
        >>> opt = clew.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     opt.zero_grad()
        ...     loss = (w * w).sum()
        ...     loss.backward()
        ...     return loss
        >>> loss = opt.step(closure)
        >>> abs(w.item()) < 1e-4
        True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        _check_lr("LBFGS", lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError(
                f"LBFGS: line_search_fn must be None or 'strong_wolfe'; got {line_search_fn!r}"
            )
        self._params = self.param_groups[0]["params"]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds the only group; a second one raises.

        Args:
            param_group: `params` and options.
        """
        if self.param_groups:
            raise ValueError("LBFGS: there can be one parameter group only; got another")
        super().add_param_group(param_group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _clew_flat_grad(self) -> Tensor:
        parts = []
        for p in self._params:
            g = clew.zeros_like(p, requires_grad=False) if p.grad is None else p.grad
            if g.is_sparse:
                g = g.to_dense()
            if p.is_complex():
                g = clew.view_as_real(g)
            parts.append(g.reshape(-1))
        return clew.cat(parts, 0)

    def _clew_move(self, length: float, direction: Tensor) -> None:
        offset = 0
        for p in self._params:
            target = clew.view_as_real(p) if p.is_complex() else p
            n = target.numel()
            part = direction[offset : offset + n].view_as(target)
            target.add_(part, alpha=length)
            offset += n

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Runs up to `max_iter` iterations.

        Args:
            closure: sets the gradients to zero, computes the loss and its gradients, and returns
                the loss.

        Returns:
            The loss before the first iteration.
        """
        with clew.no_grad():
            return self._clew_step(closure)

    def _clew_along(
        self, direction: Tensor, value_and_grad: Callable[[], tuple[Any, Tensor]]
    ) -> Callable[[float], tuple[float, Tensor]]:
        """The loss and its gradient at a distance from where the parameters are, and stay."""
        kept = [p.clone() for p in self._params]

        def evaluate(length: float) -> tuple[float, Tensor]:
            self._clew_move(length, direction)
            value, grad = value_and_grad()
            for p, old in zip(self._params, kept):
                p.copy_(old)
            return float(value), grad

        return evaluate

    def _clew_step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr = group["lr"].item() if isinstance(group["lr"], Tensor) else group["lr"]
        tolerance_grad = group["tolerance_grad"]
        tolerance_change = group["tolerance_change"]
        # The state is kept with the first parameter, so that it is saved.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def value_and_grad() -> tuple[Any, Tensor]:
            with clew.enable_grad():
                out = closure()
            return out, self._clew_flat_grad()

        first_loss, grad = value_and_grad()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        if grad.abs().max() <= tolerance_grad:
            return first_loss

        direction = state.get("d")
        t = state.get("t")
        curvature = _Curvature(state)
        previous_grad = state.get("prev_flat_grad")
        previous_loss = state.get("prev_loss")

        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction = grad.neg()
                curvature.restart()
            else:
                most = group["history_size"]
                curvature.learn(grad.sub(previous_grad), direction.mul(t), most)
                direction = curvature.direction(grad, state.setdefault("al", [None] * most))
            if previous_grad is None:
                previous_grad = grad.clone()
            else:
                previous_grad.copy_(grad)
            previous_loss = loss

            t = lr
            if state["n_iter"] == 1:
                t *= min(1.0, (1.0 / grad.abs().sum()).item())  # a gradient of zeros: by inf
            slope = grad.dot(direction)
            if slope > -tolerance_change:
                break

            last, used = iterations == group["max_iter"], 0
            searches = group["line_search_fn"] == "strong_wolfe"
            if searches:
                loss, grad, t, used = _strong_wolfe(
                    self._clew_along(direction, value_and_grad),
                    direction,
                    t,
                    loss,
                    grad,
                    slope.item(),
                    tolerance_change=1e-9,
                    max_steps=group["max_eval"] - evaluations,
                )
            self._clew_move(t, direction)
            if not searches and not last:
                value, grad = value_and_grad()
                loss, used = float(value), 1
            converged = (searches or not last) and bool(grad.abs().max() <= tolerance_grad)
            evaluations += used
            state["func_evals"] += used

            if (
                last
                or evaluations >= group["max_eval"]
                or converged
                or direction.mul(t).abs().max() <= tolerance_change
                or abs(loss - previous_loss) < tolerance_change
            ):
                break

        state["d"] = direction
        state["t"] = clew.tensor(t) if isinstance(group["lr"], Tensor) else t
        curvature.save(state)
        state["prev_flat_grad"] = previous_grad
        state["prev_loss"] = previous_loss
        return first_loss
