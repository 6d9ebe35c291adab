"""The methods of Module that find and list what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import clew

from ..parameter import Parameter

if TYPE_CHECKING:
    from .module import Module


class Members:
    """A base of Module: parameters, buffers and modules, by path and one after the other."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path.

        Args:
            target: for example "encoder.layers.0"; "" is the module itself.

        Returns:
            the module.
        """
        found: Any = self
        for part in target.split(".") if target else []:
            if not hasattr(found, part):
                raise AttributeError(f"{found._get_name()} has no attribute `{part}`")
            found = getattr(found, part)
            if not isinstance(found, clew._C.ModuleBase):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replaces, or adds, the module at a dotted path.

        Args:
            target: the path.
            module: what is put there.
            strict: demand that the path exists already.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, clew._C.ModuleBase):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), clew._C.ModuleBase):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path.

        Args:
            target: for example "fc.weight".

        Returns:
            the Parameter.
        """
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        found = getattr(owner, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> clew.Tensor:
        """The buffer at a dotted path.

        Args:
            target: for example "norm.running_mean".

        Returns:
            the tensor.
        """
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return owner._buffers[name]

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, owner in owners:
            for name, value in get_members_fn(owner):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters.

        Args:
            recurse: the children's too.

        Returns:
            an iterator; each parameter comes once.
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names.

        Args:
            prefix: put before every name.
            recurse: the children's too.
            remove_duplicate: give a shared parameter once.

        Returns:
            an iterator of (name, parameter).
        """
        return self._named_members(
            lambda m: m._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[clew.Tensor]:
        """All buffers.

        Args:
            recurse: the children's too.

        Returns:
            an iterator.
        """
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, clew.Tensor]]:
        """All buffers with their dotted names.

        Args:
            prefix: put before every name.
            recurse: the children's too.
            remove_duplicate: give a shared buffer once.

        Returns:
            an iterator of (name, tensor).
        """
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """The direct children, each once."""
        for _, child in self.named_children():
            yield child

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct children with their names, each once."""
        seen = set()
        for name, child in self._modules.items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and everything below it.

        Args:
            remove_duplicate: give a shared module once.

        Returns:
            an iterator.
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self: Any, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module itself and everything below it, with dotted names.

        Args:
            memo: modules seen already.
            prefix: put before every name.
            remove_duplicate: give a shared module once.

        Returns:
            an iterator of (name, module).
        """
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, path, remove_duplicate)
