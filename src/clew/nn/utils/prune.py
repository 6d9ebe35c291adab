"""Pruning: masks on parameters, by size or at random, singly, in slices or globally."""

from __future__ import annotations

from typing import Any

import clew

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


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
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        hooks = {
            key: hook
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        }
        old = next(iter(hooks.values()), None)
        if old is not None:
            new = method
            method = old if isinstance(old, PruningContainer) else PruningContainer(old)
            method.add_pruning_method(new)
            default = getattr(module, name + "_mask").detach().clone()
        elif name in module._parameters:
            default = clew.ones_like(original, requires_grad=False)
        else:
            raise TypeError(
                f"{cls.__name__}.apply: {name!r} of {type(module).__name__} must be a parameter; "
                f"got {type(original).__name__}"
            )
        # All that may fail comes before the module changes.
        try:
            with clew.no_grad():
                mask = method.compute_mask(importance_scores.detach(), default)
        except BaseException:
            if isinstance(method, PruningContainer):
                method._methods.pop()
            raise
        if old is None:
            module.register_parameter(name + "_orig", module._parameters.pop(name))
        for key in hooks:
            del module._forward_pre_hooks[key]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
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


def _count(amount: Any, size: int) -> int:
    return amount if isinstance(amount, int) else round(amount * size)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, int | float):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, int) and amount < 0) or (
        not isinstance(amount, int) and not 0 <= amount <= 1
    ):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _check_count(amount: Any, size: int) -> None:
    if isinstance(amount, int) and amount > size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask.

    Example:
        >>> clew.nn.utils.prune.Identity().prune(clew.tensor([1., 2.])).tolist()
        [1.0, 2.0]
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class _Amount(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount


class RandomUnstructured(_Amount):
    """Prunes elements at random.

    Args:
        amount: how many (an int), or which part (a float from 0 to 1).

    Example:
        >>> pruned = clew.nn.utils.prune.RandomUnstructured(amount=3).prune(clew.ones(4))
        >>> pruned.sum().item()
        1.0
    """

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _check_count(self.amount, t.numel())
        n = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if n:
            drop = clew.rand(t.numel()).topk(n)[1]
            mask = mask.reshape(-1).index_fill(0, drop, 0).reshape(mask.shape)
        return mask


class L1Unstructured(_Amount):
    """Prunes the elements of least size.

    Args:
        amount: how many (an int), or which part (a float from 0 to 1).

    Example:
        >>> clew.nn.utils.prune.L1Unstructured(0.5).prune(clew.tensor([1., -4., 3., -2.])).tolist()
        [0.0, -4.0, 3.0, -0.0]
    """

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _check_count(self.amount, t.numel())
        n = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if n:
            drop = t.abs().reshape(-1).topk(n, largest=False)[1]
            mask = mask.reshape(-1).index_fill(0, drop, 0).reshape(mask.shape)
        return mask


class _Slices(BasePruningMethod):
    PRUNING_TYPE = "structured"
    dim: int
    amount: Any

    def _mask(self, t: Any, default_mask: Any, order: Any) -> Any:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.dim()} dims"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        _check_count(self.amount, size)
        n = _count(self.amount, size)
        if not n:
            return default_mask
        return default_mask * clew.ones_like(default_mask).index_fill(self.dim, order(n), 0)


class RandomStructured(_Slices):
    """Prunes slices at random.

    Args:
        amount: how many (an int), or which part (a float from 0 to 1).
        dim: the dim of the slices.

    Example:
        >>> pruned = clew.nn.utils.prune.RandomStructured(amount=1, dim=0).prune(clew.ones(2, 3))
        >>> sorted(pruned.sum(1).tolist())
        [0.0, 3.0]
    """

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        def least(n: int) -> Any:
            return clew.rand(t.shape[self.dim]).topk(n, largest=False)[1]

        return self._mask(t, default_mask, least)


class LnStructured(_Slices):
    """Prunes the slices of least norm.

    Args:
        amount: how many (an int), or which part (a float from 0 to 1).
        n: the norm's order, as of :func:`clew.norm`.
        dim: the dim of the slices.

    Example:
        >>> rows = clew.tensor([[1., 1.], [5., 0.]])
        >>> clew.nn.utils.prune.LnStructured(amount=1, n=2, dim=0).prune(rows).tolist()
        [[0.0, 0.0], [5.0, 0.0]]
    """

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        def least(n: int) -> Any:
            dims = [d for d in range(t.dim()) if d != self.dim % t.dim()]
            return clew.norm(t, self.n, dims).topk(n, largest=False)[1]

        return self._mask(t, default_mask, least)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Args:
        mask: zeros and ones, of the tensor's shape.

    Example:
        >>> method = clew.nn.utils.prune.CustomFromMask(clew.tensor([1, 0]))
        >>> method.prune(clew.tensor([3., 4.])).tolist()
        [3.0, 0.0]
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError("mask should have the tensor's shape")
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Makes a mask of ones for a parameter.

    Args:
        module: the module.
        name: the parameter's name.

    Returns:
        the same module.

    Example:
        >>> layer = clew.nn.utils.prune.identity(clew.nn.Linear(2, 1), "weight")
        >>> layer.weight_mask.tolist()
        [[1.0, 1.0]]
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prunes elements of a parameter at random.

    Args:
        module: the module.
        name: the parameter's name.
        amount: how many (an int), or which part (a float from 0 to 1).

    Returns:
        the same module.

    Example:
        >>> layer = clew.nn.utils.prune.random_unstructured(clew.nn.Linear(4, 2), "weight", 0.25)
        >>> int((layer.weight_mask == 0).sum())
        2
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prunes the elements of least size of a parameter.

    Args:
        module: the module.
        name: the parameter's name.
        amount: how many (an int), or which part (a float from 0 to 1).
        importance_scores: what is compared instead of the parameter, of its shape.

    Returns:
        the same module.

    Example:
        >>> layer = clew.nn.utils.prune.l1_unstructured(clew.nn.Linear(4, 2), "weight", 3)
        >>> int((layer.weight == 0).sum())
        3
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prunes slices of a parameter at random.

    Args:
        module: the module.
        name: the parameter's name.
        amount: how many (an int), or which part (a float from 0 to 1).
        dim: the dim of the slices.

    Returns:
        the same module.

    Example:
        >>> layer = clew.nn.utils.prune.random_structured(clew.nn.Linear(3, 2), "weight", 1, 0)
        >>> sorted(layer.weight_mask.sum(1).tolist())
        [0.0, 3.0]
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prunes the slices of least norm of a parameter.

    Args:
        module: the module.
        name: the parameter's name.
        amount: how many (an int), or which part (a float from 0 to 1).
        n: the norm's order.
        dim: the dim of the slices.
        importance_scores: what is compared instead of the parameter, of its shape.

    Returns:
        the same module.

    Example:
        >>> layer = clew.nn.Linear(2, 2)
        >>> layer.weight.data = clew.tensor([[1., 1.], [5., 0.]])
        >>> clew.nn.utils.prune.ln_structured(layer, "weight", 1, n=2, dim=0).weight.tolist()
        [[0.0, 0.0], [5.0, 0.0]]
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prunes several parameters as if they were one tensor.

    Args:
        parameters: pairs of (module, name).
        pruning_method: an unstructured method's class.
        importance_scores: a dict of (module, name) to what is compared instead.
        kwargs: the method's arguments, such as amount.

    Returns:
        None; the modules are changed.

    Raises:
        TypeError: if pruning_method is not an unstructured one.

    Example:
        >>> a, b = clew.nn.Linear(2, 1), clew.nn.Linear(2, 1)
        >>> a.weight.data, b.weight.data = clew.ones(1, 2), clew.full((1, 2), 2.0)
        >>> prune = clew.nn.utils.prune
        >>> pairs = [(a, "weight"), (b, "weight")]
        >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=2)
        >>> a.weight.tolist(), b.weight.tolist()
        ([[0.0, 0.0]], [[2.0, 2.0]])
    """
    if not hasattr(parameters, "__iter__"):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    scores = importance_scores or {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    values = [scores.get((m, n), getattr(m, n)).detach() for m, n in pairs]
    masks = [
        getattr(m, n + "_mask", clew.ones_like(getattr(m, n), requires_grad=False))
        for m, n in pairs
    ]
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"Only 'unstructured' PRUNING_TYPE supported for the `pruning_method`. Found method "
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    chain = PruningContainer()
    chain._tensor_name = "temp"
    chain.add_pruning_method(method)
    whole = clew.cat([v.reshape(-1) for v in values])
    final = chain.compute_mask(whole, clew.cat([m.reshape(-1) for m in masks]))
    at = 0
    for module, name in pairs:
        param = getattr(module, name)
        custom_from_mask(module, name, final[at : at + param.numel()].view_as(param))
        at += param.numel()


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prunes a parameter by a given mask.

    Args:
        module: the module.
        name: the parameter's name.
        mask: zeros and ones, of the parameter's shape.

    Returns:
        the same module.

    Example:
        >>> layer, mask = clew.nn.Linear(2, 1), clew.tensor([[0, 1]])
        >>> clew.nn.utils.prune.custom_from_mask(layer, "weight", mask).weight[0, 0].item() == 0
        True
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Makes a pruned tensor the parameter and forgets the mask.

    Args:
        module: the module.
        name: the parameter's name.

    Returns:
        the same module.

    Raises:
        ValueError: if the parameter is not pruned.

    Example:
        >>> layer = clew.nn.utils.prune.l1_unstructured(clew.nn.Linear(4, 2), "weight", 3)
        >>> layer = clew.nn.utils.prune.remove(layer, "weight")
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Any) -> bool:
    """Whether a module or one below it is pruned.

    Args:
        module: the module.

    Returns:
        True or False.

    Example:
        >>> layer = clew.nn.Linear(4, 2)
        >>> clew.nn.utils.prune.is_pruned(layer)
        False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for m in module.modules()
        for hook in m._forward_pre_hooks.values()
    )
