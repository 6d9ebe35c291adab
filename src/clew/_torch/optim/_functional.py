"""The steps of optimizers as functions of lists of tensors, for optimizers that programs write.

Each takes what PyTorch's takes: parameters, gradients, the lists of the state, and the group's
options. Parameters and state change in place. The rules are those of the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import Tensor, optim
from clew.optim._rule import _check_modes

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
]


class _Rule:
    """How a function of PyTorch's is called, and which class has its rule.

    Args:
        kind: the class.
        states: names of the state's entries, in the order of the lists.
        modes: the arguments behind the lists that may be given by position, with defaults.
        options: the arguments that must be named.
        grouped: what the class calls several options by one name.
    """

    def __init__(
        self,
        kind: type,
        states: str,
        modes: dict[str, Any],
        options: str,
        grouped: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.kind: Any = kind
        self.states = states.split()
        self.modes = modes
        self.options = options.split()
        self.grouped = grouped or {}

    def run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        lists = 2 + len(self.states)
        if len(args) < lists or len(args) > lists + len(self.modes):
            raise TypeError(f"{name}(): expected params, grads, {', '.join(self.states)}")
        group = self.modes | dict(zip(self.modes, args[lists:])) | kwargs
        if set(group) != {*self.modes, *self.options}:
            missing = [o for o in self.options if o not in group]
            unknown = sorted(set(group) - {*self.modes, *self.options})
            raise TypeError(f"{name}(): missing arguments {missing}, unknown arguments {unknown}")
        chosen = ("foreach", "fused", "capturable", "differentiable")
        _check_modes(name, **{mode: group[mode] for mode in chosen if mode in group})
        if group.get("grad_scale") is not None or group.get("found_inf") is not None:
            raise NotImplementedError(f"{name}: unscale the gradients before the step")
        for one, parts in self.grouped.items():
            group[one] = tuple(group[part] for part in parts)
        params, grads, *states = args[:lists]
        if len(params) != len(grads) or any(len(s) not in (0, len(params)) for s in states):
            raise RuntimeError(
                f"{name}: params, grads and the lists of the state must be as long as each other; "
                f"got {[len(s) for s in args[:lists]]}"
            )
        if "step" in self.states:
            steps = states[self.states.index("step")]
            if not all(isinstance(step, Tensor) for step in steps):
                raise RuntimeError(f"{name}: state_steps must be a list of tensors of one element")
        for i, (param, grad) in enumerate(zip(params, grads)):
            # Lists of what the options do not need may be empty.
            state = {s: values[i] for s, values in zip(self.states, states) if i < len(values)}
            self.kind._clew_update(None, group, param, grad, state)
            for s, values in zip(self.states, states):
                if i < len(values):
                    values[i] = state[s]


# In the order of PyTorch's arguments, which differs.
_MODES = {"foreach": None, "capturable": False, "differentiable": False, "has_complex": False}
_MAXIMIZE_EARLY = {
    "foreach": None,
    "maximize": False,
    "differentiable": False,
    "capturable": False,
    "has_complex": False,
}
_FUSED = {"fused": None, "grad_scale": None, "found_inf": None}
_ADAM = {
    "foreach": None,
    "capturable": False,
    "differentiable": False,
    **_FUSED,
    "has_complex": False,
}
_RULES = {
    "adadelta": _Rule(
        optim.Adadelta,
        "square_avg acc_delta step",
        {"capturable": False, "foreach": None, "differentiable": False, "has_complex": False},
        "lr rho eps weight_decay maximize",
    ),
    "adagrad": _Rule(
        optim.Adagrad,
        "sum step",
        {
            **_FUSED,
            "has_sparse_grad": False,
            "foreach": None,
            "differentiable": False,
            "has_complex": False,
        },
        "lr weight_decay lr_decay eps maximize",
    ),
    "adam": _Rule(
        optim.Adam,
        "exp_avg exp_avg_sq max_exp_avg_sq step",
        {**_ADAM, "decoupled_weight_decay": False},
        "amsgrad beta1 beta2 lr weight_decay eps maximize",
        {"betas": ("beta1", "beta2")},
    ),
    "adamax": _Rule(
        optim.Adamax,
        "exp_avg exp_inf step",
        _MAXIMIZE_EARLY,
        "eps beta1 beta2 lr weight_decay",
        {"betas": ("beta1", "beta2")},
    ),
    "asgd": _Rule(
        optim.ASGD,
        "ax mu eta step",
        _MAXIMIZE_EARLY,
        "lambd lr t0 alpha weight_decay",
    ),
    "nadam": _Rule(
        optim.NAdam,
        "exp_avg exp_avg_sq mu_product step",
        {"decoupled_weight_decay": False, **_MODES, "maximize": False},
        "beta1 beta2 lr weight_decay momentum_decay eps",
        {"betas": ("beta1", "beta2")},
    ),
    "radam": _Rule(
        optim.RAdam,
        "exp_avg exp_avg_sq step",
        {
            "decoupled_weight_decay": False,
            "foreach": None,
            "differentiable": False,
            "capturable": False,
            "has_complex": False,
            "maximize": False,
        },
        "beta1 beta2 lr weight_decay eps",
        {"betas": ("beta1", "beta2")},
    ),
    "rmsprop": _Rule(
        optim.RMSprop,
        "square_avg grad_avg momentum_buffer step",
        _MAXIMIZE_EARLY,
        "lr alpha eps weight_decay momentum centered",
    ),
    "rprop": _Rule(
        optim.Rprop,
        "prev step_size step",
        {
            "foreach": None,
            "capturable": False,
            "maximize": False,
            "differentiable": False,
            "has_complex": False,
        },
        "step_size_min step_size_max etaminus etaplus",
        {"etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")},
    ),
    "sgd": _Rule(
        optim.SGD,
        "momentum_buffer",
        {"has_sparse_grad": False, "foreach": None, **_FUSED},
        "weight_decay momentum lr dampening nesterov maximize",
    ),
}


def _function(name: str) -> Callable[..., None]:
    rule = _RULES[name]

    def step(*args: Any, **kwargs: Any) -> None:
        rule.run(name, args, kwargs)

    step.__name__ = step.__qualname__ = name
    step.__doc__ = f"""One step of {rule.kind.__name__} for lists of tensors, changed in place.

    Args:
        args: params, grads, then lists of the state: {", ".join(rule.states)};
            {", ".join(rule.modes)} may follow, which have defaults.
        kwargs: {", ".join(rule.options)}.
    """
    return step


adadelta = _function("adadelta")
adagrad = _function("adagrad")
adam = _function("adam")
adamax = _function("adamax")
asgd = _function("asgd")
nadam = _function("nadam")
radam = _function("radam")
rmsprop = _function("rmsprop")
rprop = _function("rprop")
sgd = _function("sgd")


def adamw(*args: Any, **kwargs: Any) -> None:
    """One step of AdamW for lists of tensors: `adam` with decoupled weight decay."""
    if "decoupled_weight_decay" in kwargs or len(args) > 6 + len(_ADAM):
        raise TypeError("adamw(): decoupled_weight_decay is always on")
    _RULES["adam"].run("adamw", args, kwargs | {"decoupled_weight_decay": True})
