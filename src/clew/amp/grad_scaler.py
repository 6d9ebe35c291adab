"""Scaling of losses, so that small gradients do not vanish in float16."""

from __future__ import annotations

import inspect
import math
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import clew
from clew import _C, Tensor
from clew._base.provenance import user_level

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer is in this iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Multiplies losses by a factor, divides gradients by it, and finds a factor that fits.

    A step whose gradients are not all finite is left out, and the factor becomes smaller; after
    many good steps it becomes larger. float16 needs this; bfloat16 does not.

    Args:
        device: "cpu"; for "cuda", which is not there, a scaler that does nothing, with a warning.
        init_scale: the first factor.
        growth_factor: what the factor is multiplied by after `growth_interval` good steps.
        backoff_factor: what it is multiplied by after a step that was left out.
        growth_interval: how many good steps in a row let it grow.
        enabled: False: a scaler that does nothing.

    Example:
        >>> from clew.amp import GradScaler
        >>> w = clew.ones(2, requires_grad=True)
        >>> opt = clew.optim.SGD([w], lr=0.5)
        >>> scaler = GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale((w * w).sum()).backward()
        >>> w.grad
        tensor([16., 16.])
        >>> scaler.step(opt)
        >>> scaler.update()
        >>> w.detach()
        tensor([0., 0.])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda":
            warnings.warn(
                "GradScaler is enabled for 'cuda', but CUDA is not available. Disabling. "
                "GradScaler('cpu') scales on the CPU.",
                stacklevel=user_level(),
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(f"GradScaler: growth_factor must be > 1.0; got {growth_factor}")
        if backoff_factor >= 1.0:
            raise AssertionError(f"GradScaler: backoff_factor must be < 1.0; got {backoff_factor}")
        self._init_scale = init_scale
        self._scale: Tensor | None = None  # made by the first call of scale()
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    def _begun(self, what: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"GradScaler: Attempted {what} but _scale is None; scale() must be called on the "
                "loss earlier in the iteration"
            )
        return self._scale, self._growth_tracker

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in lists and tuples, times the factor.

        Args:
            outputs: the loss, or several.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = clew.full((), self._init_scale, dtype=clew.float32)
                self._growth_tracker = clew.full((), self._init_growth_tracker, dtype=clew.int32)
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            parts = map(self.scale, outputs)
            return type(outputs)(parts) if isinstance(outputs, (list, tuple)) else parts
        raise ValueError(
            f"GradScaler.scale: outputs must be a Tensor or an iterable of Tensors; got {outputs!r}"
        )

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiplies an optimizer's gradients by inv_scale; puts 1 into found_inf if any element
        is not finite.
        """
        grads = []
        for group in optimizer.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype is clew.float16:
                    raise ValueError(
                        "GradScaler: Attempting to unscale FP16 gradients; keep the parameters in "
                        "float32 and run the model inside autocast"
                    )
                grads.append(grad)
        if not grads:
            return {}
        finite = _C._unscale_gradients(grads, inv_scale.item())
        if finite is None:
            finite = True
            with clew.no_grad():
                for given in grads:
                    grad = given._values() if given.is_sparse else given
                    finite = bool(grad.isfinite().all()) and finite
                    grad.mul_(inv_scale)
        if not finite:
            found_inf.fill_(1.0)
        return {found_inf.device: found_inf}

    def unscale_(self, optimizer: Any) -> None:
        """Divides an optimizer's gradients by the factor, to look at them or to clip them.

        Args:
            optimizer: `step` on it does this by itself if it was not done before.
        """
        if not self._enabled:
            return
        scale, _ = self._begun("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer,
            scale.double().reciprocal().float(),
            clew.full((), 0.0, dtype=clew.float32),
            False,
        )
        state["stage"] = OptState.UNSCALED

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if any(v.item() for v in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Divides the gradients by the factor and calls `optimizer.step`, if they are all finite.

        Args:
            optimizer: whose step it is.
            args: for `optimizer.step`.
            kwargs: for `optimizer.step`; a closure is refused.

        Returns:
            What `optimizer.step` returned; None where it was not called.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError(
                "GradScaler.step: Closure use is not currently supported if GradScaler is enabled."
            )
        self._begun("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_that_unscales(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError(
                "GradScaler.step: No inf checks were recorded for this optimizer: none of its "
                "parameters has a gradient"
            )
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_that_unscales(
        self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """The step of an optimizer that declares `_step_supports_amp_scaling`."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            result = optimizer.step(*args, grad_scaler=self, **kwargs)
        else:
            if state["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
            found = sum(t for t in state["found_inf_per_device"].values())
            before = getattr(optimizer, "grad_scale", None)
            if state["stage"] is not OptState.UNSCALED:
                before = self._begun("step")[0] * (1 if before is None else before)
            optimizer.grad_scale, optimizer.found_inf = before, found
            result = optimizer.step(*args, **kwargs)
            del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the factor to how the iteration went; the last call in it.

        Args:
            new_scale: a factor to use instead, a float or a tensor with one element.
        """
        if not self._enabled:
            return
        scale, good_steps = self._begun("update")
        if isinstance(new_scale, Tensor):
            if new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "GradScaler.update: new_scale should be a float or a tensor with one element "
                    f"and requires_grad=False; got {new_scale}"
                )
            scale.copy_(new_scale.reshape(()))
        elif new_scale is not None:
            scale.fill_(new_scale)
        else:
            found = [
                t.item()
                for state in self._per_optimizer_states.values()
                for t in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError(
                    "GradScaler.update: No inf checks were recorded prior to update; call step() "
                    "or unscale_() first"
                )
            self._adapt(scale, good_steps, any(found))
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _adapt(self, scale: Tensor, good_steps: Tensor, found_inf: bool) -> None:
        if found_inf:
            scale.mul_(self._backoff_factor)
            good_steps.zero_()
            return
        good_steps.add_(1)
        if good_steps.item() >= self._growth_interval:
            grown = scale * self._growth_factor
            if math.isfinite(grown.item()):
                scale.copy_(grown)
            good_steps.zero_()

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The present factor; 1.0 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the factor is multiplied by after many good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the factor is multiplied by after many good steps.

        Args:
            new_factor: greater than 1.
        """
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the factor is multiplied by after a step that was left out."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the factor is multiplied by after a step that was left out.

        Args:
            new_factor: smaller than 1.
        """
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps in a row let the factor grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets how many good steps in a row let the factor grow.

        Args:
            new_interval: a number of steps.
        """
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor, its options and the count of good steps; empty where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave.

        Args:
            state_dict: of a scaler that was enabled.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler.load_state_dict: The source state dict is empty, possibly because it "
                "was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        self._begun("_check_inf_per_device")
        one = clew.full((), 1.0, dtype=clew.float32)
        zero = clew.full((), 0.0, dtype=clew.float32)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, zero, True)
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
