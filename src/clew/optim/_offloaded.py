"""Optimizer state in a file, stepped block by block."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor
from clew.autograd._offload import _File

from .optimizer import Optimizer, _hooked

__all__ = ["OffloadedOptimizer", "offload_state"]


class _Kept:
    """One state tensor in the file."""

    __slots__ = ("dtype", "nbytes", "offset", "shape", "strides")

    def __init__(self, t: Tensor, offset: int, nbytes: int) -> None:
        self.offset, self.nbytes = offset, nbytes
        self.dtype, self.shape, self.strides = t.dtype, tuple(t.shape), t.stride()


class _Store:
    """The tensors of each parameter's state that are in the file."""

    def __init__(self, directory: str | None, least: int, block: int, keep: int | float) -> None:
        self.directory, self.least, self.block, self.keep = directory, least, block, keep
        self.warned = False
        self._begin()

    def _begin(self) -> None:
        lost = "the optimizer's state does; load a state_dict() that was saved"
        self.file, self.process = _File(self.directory, lost), os.getpid()
        self.kept: dict[Any, dict[str, _Kept]] = {}
        self.staying: dict[tuple[Any, str], int] = {}  # sizes of what is not written
        self.stay_bytes = self.all_bytes = 0

    def _begin_after_fork(self) -> None:
        """A forked child must not write to the file: its parent goes on using it."""
        if self.process == os.getpid():
            return
        if any(self.kept.values()):
            raise RuntimeError(
                "offload: the optimizer's state lies in the file of the process that this one was "
                "forked from; take state_dict() before the fork, and load it here"
            )
        self._begin()

    def put(self, param: Any, state: dict[str, Any]) -> None:
        """Writes a parameter's large tensors, and takes them out of its state."""
        self._begin_after_fork()
        kept = self.kept.setdefault(param, {})
        for name, value in list(state.items()):
            if not isinstance(value, Tensor) or type(value) is not Tensor:
                continue
            nbytes = value.numel() * value.element_size()
            if nbytes < self.least:
                continue
            before = kept.pop(name, None)
            if before is None and self._stays(param, name, nbytes):
                continue
            if before is not None and before.nbytes != nbytes:
                self.file.give(before.offset, before.nbytes)
                before = None
            offset = self.file.take(nbytes) if before is None else before.offset
            try:
                self.file.write(_bytes(value), offset)
            except OSError as error:
                self.file.give(offset, nbytes)
                if not self.warned:
                    self.warned = True
                    warnings.warn(
                        f"offload: optimizer state could not be written ({error}); it stays in "
                        "memory. Make room, or name another directory",
                        RuntimeWarning,
                        stacklevel=3,
                    )
                continue
            kept[name] = _Kept(value, offset, nbytes)
            del state[name]

    def _stays(self, param: Any, name: str, nbytes: int) -> bool:
        """Whether a tensor that is not in the file stays in memory."""
        before = self.staying.pop((param, name), 0)
        self.stay_bytes -= before
        self.all_bytes += nbytes - before
        most = self.keep if isinstance(self.keep, int) else self.keep * self.all_bytes
        if self.stay_bytes + nbytes > most:
            return False
        self.staying[param, name] = nbytes
        self.stay_bytes += nbytes
        return True

    def read(self, params: list[Any]) -> list[tuple[Any, str, Tensor]]:
        """The tensors of these parameters that are in the file."""
        self._begin_after_fork()
        made = []
        for p in params:
            for name, k in self.kept.get(p, {}).items():
                data = self.file.read(k.nbytes, k.offset)
                flat = clew.from_numpy(data).view(k.dtype)
                if clew.empty(k.shape, device="meta").stride() == k.strides:
                    made.append((p, name, flat.reshape(k.shape)))
                else:
                    whole = clew.empty_strided(k.shape, k.strides, dtype=k.dtype)
                    made.append((p, name, whole.copy_(flat.reshape(k.shape))))
        return made

    def forget(self) -> None:
        """Nothing is in the file any more."""
        if self.process != os.getpid():
            self.kept.clear()
        for kept in self.kept.values():
            for k in kept.values():
                self.file.give(k.offset, k.nbytes)
        self.kept.clear()
        self.staying.clear()
        self.stay_bytes = self.all_bytes = 0


def _bytes(t: Tensor) -> Any:
    own = t.detach()
    if not own.is_contiguous():
        own = own.contiguous()
    return own.reshape(-1).view(clew.uint8)._array_view()


class _Reading(threading.Thread):
    """Reads one block while another is stepped."""

    def __init__(self, store: _Store, params: list[Any]) -> None:
        super().__init__(name="clew-offload", daemon=True)
        self.store, self.params = store, params
        self.made: list[tuple[Any, str, Tensor]] = []
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.made = self.store.read(self.params)
        except BaseException as error:
            self.error = error

    def result(self) -> list[tuple[Any, str, Tensor]]:
        """What was read."""
        self.join()
        if self.error is not None:
            raise self.error
        return self.made


class OffloadedOptimizer:
    """What an optimizer is, too, after `clew.offload(optimizer)`."""

    _stored: _Store

    def _blocks(self) -> list[list[tuple[int, Any]]]:
        """Parameters with a gradient, in order, as many at a time as a block's bytes of state."""
        blocks: list[list[tuple[int, Any]]] = [[]]
        size = 0
        for g, group in enumerate(self.param_groups):  # type: ignore[attr-defined]
            for p in group["params"]:
                if p.grad is None:
                    continue
                own = 2 * p.numel() * p.element_size()
                if blocks[-1] and size + own > self._stored.block:
                    blocks.append([])
                    size = 0
                blocks[-1].append((g, p))
                size += own
        return [b for b in blocks if b]

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Changes every parameter that has a gradient, block by block.

        Args:
            closure: evaluates the model again and returns the loss.
            kwargs: for the optimizer's own step.

        Returns:
            What the closure returned, or None.
        """
        loss = None
        if closure is not None:
            with clew.enable_grad():
                loss = closure()
        store, state = self._stored, self.state  # type: ignore[attr-defined]
        groups: list[dict[str, Any]] = self.param_groups  # type: ignore[attr-defined]
        whole = [g["params"] for g in groups]
        blocks = self._blocks()
        ahead = _Reading(store, [p for _, p in blocks[0]]) if blocks else None
        try:
            for i, block in enumerate(blocks):
                assert ahead is not None
                for p, name, value in ahead.result():
                    state[p][name] = value
                more = i + 1 < len(blocks)
                ahead = _Reading(store, [p for _, p in blocks[i + 1]]) if more else None
                for g, group in enumerate(groups):
                    group["params"] = [p for at, p in block if at == g]
                try:
                    super().step(**kwargs)  # type: ignore[misc]
                finally:  # or the next step would read what these had before
                    for _, p in block:
                        if p in state:
                            store.put(p, state[p])
        finally:
            if ahead is not None:
                ahead.join()
            for group, params in zip(groups, whole):
                group["params"] = params
        return loss

    def _fetch(self) -> None:
        """Brings all state into memory."""
        store, state = self._stored, self.state  # type: ignore[attr-defined]
        for p, name, value in store.read(list(store.kept)):
            state[p][name] = value

    def state_dict(self) -> dict[str, Any]:
        """The whole state, in memory."""
        store, state = self._stored, self.state  # type: ignore[attr-defined]
        self._fetch()
        try:
            return super().state_dict()  # type: ignore[misc]
        finally:
            for p, kept in store.kept.items():
                # The dict that was given has them; this optimizer goes on without.
                state[p] = {k: v for k, v in state[p].items() if k not in kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state, and writes it to the file.

        Args:
            state_dict: what `state_dict` gave.
        """
        super().load_state_dict(state_dict)  # type: ignore[misc]
        self._stored.forget()  # only now: a state that does not fit leaves this one whole
        for p, own in self.state.items():  # type: ignore[attr-defined]
            self._stored.put(p, own)

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError(
            "offload: an optimizer whose state is in a file cannot be copied; make another and "
            "give it state_dict()"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "offload: an optimizer whose state is in a file cannot be pickled; save state_dict()"
        )


_classes: dict[type, type] = {}


def offload_state(
    optimizer: Optimizer,
    directory: str | os.PathLike[str] | None = None,
    *,
    least: int = 1 << 16,
    block: int = 64 << 20,
    keep: int | float = 0,
) -> Optimizer:
    """Moves an optimizer's state to a file; see `clew.offload`.

    Args:
        optimizer: is changed, and returned.
        directory: where the file lies.
        least: tensors of fewer bytes stay in memory.
        block: bytes of state that are in memory at a time, and as many read ahead.
        keep: bytes of state, or a fraction of it, that stay in memory.
    """
    from .lbfgs import LBFGS

    if isinstance(optimizer, OffloadedOptimizer):
        raise ValueError("offload: the optimizer's state is in a file already")
    if isinstance(optimizer, LBFGS):
        raise ValueError("offload: LBFGS steps all parameters as one vector; use another optimizer")
    kind = type(optimizer)
    if kind not in _classes:
        own = {"step": _hooked(OffloadedOptimizer.step)}
        _classes[kind] = type(f"Offloaded{kind.__name__}", (OffloadedOptimizer, kind), own)
    optimizer.__class__ = _classes[kind]
    store = _Store(None if directory is None else os.fspath(directory), least, block, keep)
    optimizer._stored = store  # type: ignore[attr-defined]
    for p, own in optimizer.state.items():
        store.put(p, own)
    return optimizer
