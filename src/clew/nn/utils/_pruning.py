"""What all pruning stands on: masks as hooks, one or several; as nn.utils.prune offers them."""

from __future__ import annotations

from typing import Any

import clew


class BasePruningMethod:
    """A forward pre-hook that multiplies a parameter by a mask; subclasses write compute_mask().

    Example:
        >>> class Below(clew.nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...     def compute_mask(self, t, default_mask):
        ...         return default_mask * (t >= 2)
        >>> Below().prune(clew.tensor([1., 2., 3.])).tolist()
        [0.0, 2.0, 3.0]
    """

    __module__ = "clew.nn.utils.prune"

    _tensor_name: str
    PRUNING_TYPE: str = ""

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The new mask.

        Args:
            t: the tensor to prune, or its importance.
            default_mask: the mask so far.

        Returns:
            a tensor of zeros and ones of t's shape.
        """
        raise NotImplementedError

    def apply_mask(self, module: Any) -> Any:
        """The masked tensor.

        Args:
            module: the module.

        Returns:
            a tensor.
        """
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prunes a parameter of a module, on top of what was pruned before.

        Args:
            module: the module.
            name: the parameter's name.
            args: the method's arguments.
            importance_scores: what is compared instead of the parameter.
            kwargs: the method's named arguments.

        Returns:
            the hook.
        """
        old = None
        for key, hook in list(module._forward_pre_hooks.items()):
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                old = hook
                del module._forward_pre_hooks[key]
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        if old is not None:
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            method = container
        if old is None:
            param = module._parameters[name]
            module.register_parameter(name + "_orig", param)
            del module._parameters[name]
            default = clew.ones_like(param, requires_grad=False)
        else:
            default = getattr(module, name + "_mask").detach().clone()
        try:
            with clew.no_grad():
                mask = method.compute_mask(importance_scores.detach(), default)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if old is None:
                param = module._parameters.pop(name + "_orig")
                module.register_parameter(name, param)
            raise
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned copy of a tensor.

        Args:
            t: the tensor.
            default_mask: a mask to start from.
            importance_scores: what is compared instead of t.

        Returns:
            t times the new mask.
        """
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        if default_mask is None:
            default_mask = clew.ones_like(t, requires_grad=False)
        return t * self.compute_mask(importance_scores, default_mask)

    def remove(self, module: Any) -> None:
        """Makes the pruned tensor the parameter.

        Args:
            module: the module.
        """
        name = self._tensor_name
        weight = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = weight.detach()
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods one after the other.

    Args:
        args: the methods, all of one tensor.

    Example:
        >>> layer = clew.nn.Linear(4, 2)
        >>> _ = clew.nn.utils.prune.l1_unstructured(layer, "weight", 2)
        >>> _ = clew.nn.utils.prune.l1_unstructured(layer, "weight", 3)
        >>> [type(h).__name__ for h in layer._forward_pre_hooks.values()]
        ['PruningContainer']
    """

    __module__ = "clew.nn.utils.prune"

    def __init__(self, *args: Any) -> None:
        self._methods: list[Any] = []
        for method in args:
            self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method for the same tensor.

        Args:
            method: the method.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}'. Found '{method._tensor_name}'"
            )
        self._methods.append(method)

    def __len__(self) -> int:
        return len(self._methods)

    def __iter__(self) -> Any:
        return iter(self._methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        method = self._methods[-1]
        kind = method.PRUNING_TYPE
        old = default_mask.to(t.dtype)
        # The new method sees only what the earlier ones left.
        if kind == "unstructured":
            left = old == 1
            part = method.compute_mask(t[left], clew.ones_like(old)[left])
            return old.clone().masked_scatter(left, part.to(old.dtype))
        if kind == "structured":
            dim = method.dim % t.dim()
            dims = [d for d in range(t.dim()) if d != dim]
            whole = (old == 0).sum(dims) != old.numel() // old.shape[dim]
            rows = whole.nonzero().reshape(-1)
            part = method.compute_mask(t.index_select(dim, rows), old.index_select(dim, rows))
            return old.clone().index_copy(dim, rows, part.to(old.dtype))
        if kind == "global":
            return method.compute_mask(t, old) * old
        raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
