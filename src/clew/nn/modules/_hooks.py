"""Hooks of modules: the global tables and the slow path of a module's call."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import clew
from clew._base.arguments import in_graph, is_structured
from clew._base.provenance import user_level
from clew.utils.hooks import RemovableHandle as RemovableHandle

# Hooks of every module; the public functions that fill these are in module.py.
global_forward_pre: OrderedDict[int, Any] = OrderedDict()
global_forward: OrderedDict[int, Any] = OrderedDict()
global_forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
global_forward_always: OrderedDict[int, bool] = OrderedDict()
global_backward_pre: OrderedDict[int, Any] = OrderedDict()
global_backward: OrderedDict[int, Any] = OrderedDict()
global_backward_is_full: bool | None = None
global_parameter_registration: OrderedDict[int, Any] = OrderedDict()
global_buffer_registration: OrderedDict[int, Any] = OrderedDict()
global_module_registration: OrderedDict[int, Any] = OrderedDict()


def switch_on() -> None:
    """Makes every module look for hooks at its calls."""
    clew._C._hook_every_module(True)


def any_global() -> bool:
    """Whether a hook for every module is registered."""
    return bool(global_forward_pre or global_forward or global_backward_pre or global_backward)


def _gates() -> Any:
    """The two autograd functions that full backward hooks live in; made at their first use."""
    global _gate_classes
    if _gate_classes is not None:
        return _gate_classes
    Function: Any = clew.autograd.Function

    class GateOut(Function):
        """Identity on a module's outputs; its backward sees all their gradients at once."""

        @staticmethod
        def forward(ctx: Any, gate: Any, *tensors: Any) -> Any:
            ctx.gate = gate
            ctx.set_materialize_grads(False)
            return tuple(t.view_as(t) for t in tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return (None, *ctx.gate.outputs_done(grads))

    class GateIn(Function):
        """Identity on a module's inputs; its backward sees all their gradients at once.

        That of an input which the results do not depend on is zero, as in PyTorch.
        """

        @staticmethod
        def forward(ctx: Any, gate: Any, *tensors: Any) -> Any:
            ctx.gate = gate
            return tuple(t.view_as(t) for t in tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return (None, *ctx.gate.inputs_done(grads))

    _gate_classes = GateIn, GateOut
    return _gate_classes


_gate_classes: Any = None


def _like(models: Any, tensors: Any) -> list[Any]:
    """Values as tensors like the models, of which those of dense ones may be anything."""
    return [
        m._with(t) if is_structured(m) and isinstance(t, clew.Tensor) else t
        for m, t in zip(models, tensors, strict=True)
    ]


class BackwardGate:
    """One call of a module with full backward hooks.

    Args:
        module: the module.
        hooks: hook(module, grad_input, grad_output), run when the inputs' gradients are known.
        pre_hooks: hook(module, grad_output), run before the module's backward.
    """

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: Any = None
        self.n_inputs = -1
        self.n_outputs = 0
        self.in_index: list[int] = []
        self.out_index: list[int] = []
        self.inputs_recorded = False
        # Where other tensors are among the inputs, with shape, dtype and device.
        self.constants: list[tuple[int, Any, Any, Any]] = []
        # The sparse and ragged ones among inputs and outputs; None for others.
        self.in_models: list[Any] = []
        self.out_models: list[Any] = []

    def open(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Passes the arguments through the first gate."""
        self.n_inputs = len(args)
        self.in_index = [i for i, a in enumerate(args) if isinstance(a, clew.Tensor)]
        wanted = [i for i in self.in_index if args[i].requires_grad]
        if not wanted or not clew.is_grad_enabled():
            return args
        self.inputs_recorded = True
        self.constants = [
            (i, args[i].shape, args[i].dtype, args[i].device)
            for i in self.in_index
            if not args[i].requires_grad and not is_structured(args[i])
        ]
        self.in_index = wanted
        given = [args[i] for i in wanted]
        self.in_models = [t._frame() if is_structured(t) else None for t in given]
        passed = _gates()[0].apply(self, *in_graph(given))
        out = list(args)
        for i, t in zip(wanted, _like(self.in_models, passed), strict=True):
            out[i] = t
        return tuple(out)

    def close(self, result: Any) -> Any:
        """Passes the results through the second gate."""
        one = isinstance(result, clew.Tensor)
        items = [result] if one else list(result) if isinstance(result, tuple | list) else []
        self.n_outputs = len(items)
        self.out_index = [
            i for i, t in enumerate(items) if isinstance(t, clew.Tensor) and t.requires_grad
        ]
        if not self.out_index:
            return result
        given = [items[i] for i in self.out_index]
        self.out_models = [t._frame() if is_structured(t) else None for t in given]
        passed = _like(self.out_models, _gates()[1].apply(self, *in_graph(given)))
        if one:
            return passed[0]
        for i, t in zip(self.out_index, passed, strict=True):
            items[i] = t
        if isinstance(result, list):
            return items
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)

    def outputs_done(self, grads: Any) -> Any:
        full: Any = [None] * self.n_outputs
        for i, g in zip(self.out_index, _like(self.out_models, grads), strict=True):
            full[i] = g
        full = tuple(full)
        for hook in self.pre_hooks:
            answer = hook(self.module, full)
            if answer is not None:
                answer = answer if isinstance(answer, tuple) else (answer,)
                if len(answer) != self.n_outputs:
                    raise RuntimeError(
                        "backward pre hook: as many gradients must be returned as the module has "
                        f"outputs; got {len(answer)}, expected {self.n_outputs}"
                    )
                full = answer
        self.grad_outputs = full
        if not self.inputs_recorded:
            if self.hooks:
                warnings.warn(
                    f"full backward hook of {type(self.module).__name__}: no input of the module "
                    "requires grad, so the hook is called when the gradients of the outputs are "
                    "known, and every grad_input is None",
                    stacklevel=user_level(),
                )
            self._run(tuple([None] * max(self.n_inputs, 0)))
        return in_graph(full[i] for i in self.out_index)

    def inputs_done(self, grads: Any) -> Any:
        if self.grad_outputs is None:
            # The gradient came past the module's outputs, as in a derivative of its gradient.
            return grads
        full: Any = [None] * self.n_inputs
        for i, g in zip(self.in_index, _like(self.in_models, grads), strict=True):
            full[i] = g
        if self.hooks:
            for i, shape, dtype, device in self.constants:
                full[i] = clew.zeros(shape, dtype=dtype, device=device)
        full = self._run(tuple(full))
        return in_graph(full[i] for i in self.in_index)

    def _run(self, grad_input: Any) -> Any:
        for hook in self.hooks:
            answer = hook(self.module, grad_input, self.grad_outputs)
            if answer is not None:
                answer = answer if isinstance(answer, tuple) else (answer,)
                if not self.inputs_recorded and any(a is not None for a in answer):
                    raise RuntimeError(
                        "backward hook: a gradient was returned, but no input of the module "
                        "requires grad"
                    )
                if len(answer) != len(grad_input):
                    raise RuntimeError(
                        "backward hook: as many gradients must be returned as the module has "
                        f"inputs; got {len(answer)}, expected {len(grad_input)}"
                    )
                grad_input = answer
        self.grad_outputs = None
        return grad_input


def _old_style(module: Any, hooks: list[Any], result: Any) -> None:
    """Attaches hooks of the old register_backward_hook to the node of the first result."""
    found = result
    while not isinstance(found, clew.Tensor):
        if isinstance(found, dict):
            found = next((v for v in found.values() if isinstance(v, clew.Tensor)), None)
        elif isinstance(found, tuple | list) and found:
            found = found[0]
        else:
            return
    node = getattr(found, "grad_fn", None)
    if node is None:
        return
    for hook in hooks:

        def call(grad_input: Any, grad_output: Any, hook: Callable[..., Any] = hook) -> Any:
            return hook(module, grad_input, grad_output)

        node.register_hook(call)


def call_with_hooks(module: Any, args: Any, kwargs: Any) -> Any:
    """A module's call when it, or every module, has hooks, or was told to let operations wait.

    Args:
        module: the module.
        args: positional arguments.
        kwargs: named arguments.

    Returns:
        what forward and the hooks make of them.
    """
    if "_deferred" in module.__dict__:
        with clew.deferred():
            return _call(module, args, kwargs)
    return _call(module, args, kwargs)


def _call(module: Any, args: Any, kwargs: Any) -> Any:
    if not any_global():
        clew._C._hook_every_module(False)
        if not (
            module._forward_hooks
            or module._forward_pre_hooks
            or module._backward_hooks
            or module._backward_pre_hooks
        ):
            if "_deferred" not in module.__dict__:
                module.__dict__.pop("_hooked", None)  # all were removed: calls are quick again
            return module.forward(*args, **kwargs)
    called_always: set[int] = set()
    result: Any = None
    try:
        full = list(global_backward.values()) if global_backward_is_full is True else []
        if module._is_full_backward_hook is True:
            full += module._backward_hooks.values()
        pre = list(global_backward_pre.values()) + list(module._backward_pre_hooks.values())

        for hook in list(global_forward_pre.values()):
            answer = hook(module, args)
            if answer is not None:
                args = answer if isinstance(answer, tuple) else (answer,)
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                answer = hook(module, args, kwargs)
                if answer is not None:
                    if not (isinstance(answer, tuple) and len(answer) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, "
                            "new_kwargs);"
                            f" got {answer}"
                        )
                    args, kwargs = answer
            else:
                answer = hook(module, args)
                if answer is not None:
                    args = answer if isinstance(answer, tuple) else (answer,)

        gate = BackwardGate(module, full, pre) if full or pre else None
        if gate is not None:
            args = gate.open(args)
        result = module.forward(*args, **kwargs)
        for key, hook in [*global_forward.items(), *module._forward_hooks.items()]:
            if key in module._forward_hooks_always_called or key in global_forward_always:
                called_always.add(key)
            result = _after(module, key, hook, args, kwargs, result)
        if gate is not None:
            result = gate.close(result)
        old = list(global_backward.values()) if global_backward_is_full is False else []
        if module._is_full_backward_hook is False:
            old += module._backward_hooks.values()
        if old:
            _old_style(module, old, result)
        return result
    except Exception:
        left = [(k, h) for k, h in global_forward.items() if k in global_forward_always]
        left += [
            (k, h)
            for k, h in module._forward_hooks.items()
            if k in module._forward_hooks_always_called
        ]
        for key, hook in left:
            if key in called_always:
                continue
            try:
                result = _after(module, key, hook, args, kwargs, result)
            except Exception as problem:
                warnings.warn(
                    f"a forward hook registered with always_call=True raised {problem!r}; it was "
                    "silenced because another error is being raised already",
                    stacklevel=user_level(),
                )
        raise


def _after(module: Any, key: int, hook: Any, args: Any, kwargs: Any, result: Any) -> Any:
    if key in module._forward_hooks_with_kwargs or key in global_forward_with_kwargs:
        answer = hook(module, args, kwargs, result)
    else:
        answer = hook(module, args, result)
    return result if answer is None else answer


clew._C._set_call_with_hooks(call_with_hooks)
