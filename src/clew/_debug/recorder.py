"""record: keeps the last steps, and saves the one that goes wrong; replay goes back to it.

What is saved is data: parameters, states of optimizers and random numbers, batches and inputs. The
program that replays them is the user's own, run again; no code is in the file.
"""

from __future__ import annotations

import math
import random
import sys
from collections import deque
from typing import Any

import numpy as np

import clew
from clew import _C, Tensor
from clew._debug.hooks import Patches
from clew._debug.observing import Observation

__all__ = ["Crash", "record", "replay"]

SPIKE = 10.0  # times the median loss of the steps that are kept


def _copied(value: Any) -> Any:
    """A value with all tensors in it copied."""
    from clew.utils._pytree import tree_map

    return tree_map(lambda t: t.detach().clone() if isinstance(t, Tensor) else t, value)


def _nbytes(value: Any) -> int:
    from clew.utils._pytree import tree_leaves

    return sum(t.nbytes for t in tree_leaves(value) if isinstance(t, Tensor))


class _Versions:
    """Copies of tensors, made anew only where a tensor was written since."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tensor, int, Tensor]] = {}

    def copy(self, t: Tensor) -> Tensor:
        known = self._known.get(id(t))
        if known is None or known[0] is not t or known[1] != t._version:
            known = self._known[id(t)] = (t, t._version, t.detach().clone())
        return known[2]


def _random_state() -> dict[str, Any]:
    version, words, gauss = random.getstate()
    kind, keys, *rest = np.random.get_state()
    return {
        "clew": clew.get_rng_state(),
        "python": [version, list(words), gauss],
        "numpy": [str(kind), clew.from_numpy(np.asarray(keys, dtype=np.int64)), *rest],
    }


def _set_random_state(state: dict[str, Any]) -> None:
    clew.set_rng_state(state["clew"])
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))


class record:
    """Keeps the last steps of training; when one goes wrong, saves it as a file.

    A step begins after an optimizer's step and ends with the next. It goes wrong by an exception,
    by a loss that is NaN or infinite, or by one ten times the median of those kept. `clew replay
    crash.clew train.py` runs the program again, gives its models, optimizers and random numbers the
    state that they had, and its first batch or input that of the step.

    Args:
        path: of the file that is written.
        steps: how many are kept.
        limit: bytes that they may take; older ones are let go of.

    Attributes:
        saved: whether a step was saved, and why.

    >>> with clew.debug.record("crash.clew", steps=5) as kept:
    ...     pass
    >>> kept.saved
    ''
    """

    def __init__(self, path: str = "crash.clew", *, steps: int = 20, limit: int = 1 << 28) -> None:
        if steps < 1 or limit < 1:
            raise ValueError(f"record: steps and limit must be positive; got {steps} and {limit}")
        self.path = path
        self.limit = limit
        self.saved = ""
        self.number = 0
        self._kept: deque[dict[str, Any]] = deque(maxlen=steps)
        self._losses: deque[float] = deque(maxlen=steps)
        self._versions = _Versions()
        self._optimizers: list[Any] = []
        self._patches = Patches()

    def __enter__(self) -> record:
        from clew.nn.modules import _global
        from clew.optim import optimizer as module
        from clew.utils.data import dataloader

        def stepped(optimizer: Any, *_: Any) -> None:
            if all(optimizer is not known for known in self._optimizers):
                self._optimizers.append(optimizer)
            self.number += 1
            self._begin()

        def given(original: Any, batches: Any) -> Any:
            batch = original(batches)
            if not self._kept or self._kept[-1]["called"]:
                self._begin()
            self._kept[-1]["batches"].append(_copied(batch))
            return batch

        def called(model: Any, args: Any) -> None:
            if _C._here() is None or any(model is m for m in self._inner):
                return
            if not self._kept:
                self._begin()
            step = self._kept[-1]
            if not step["called"]:
                step["called"] = True
                step["models"] = self._models()
                step["random"] = _random_state()
            step["inputs"].append(_copied(list(args)))

        self._inner: list[Any] = []
        self._patches.undo.append(module.register_optimizer_step_post_hook(stepped).remove)
        self._patches.put(dataloader._Batches, "__next__", given)
        self._patches.undo.append(
            _global.register_module_forward_pre_hook(
                lambda m, args: called(m, args) if _is_outermost() else None
            ).remove
        )
        self._observation = Observation(self._shown, ())
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._observation.close()
        self._patches.remove()
        if (
            kind is not None
            and not self.saved
            and not issubclass(kind, (SystemExit, GeneratorExit))
        ):
            self._save(f"{kind.__name__}: {error}")

    def _shown(self, name: str, roots: list[Any], _: list[Any]) -> None:
        """A backward begins: the loss is known."""
        root = roots[0]
        if name == "grad" or root.numel() != 1 or self.saved:
            return
        loss = float(np.asarray(root._array_view()).reshape(-1)[0])
        usual = sorted(self._losses)[len(self._losses) // 2] if self._losses else math.inf
        if not math.isfinite(loss):
            self._save(f"the loss is {loss} in step {self.number}")
        elif len(self._losses) >= 5 and abs(loss) > SPIKE * abs(usual) > 0:
            self._save(f"the loss is {loss:.6g} in step {self.number}, the median is {usual:.6g}")
        self._losses.append(loss)

    def _models(self) -> list[dict[str, Tensor]]:
        return [
            {
                name: self._versions.copy(t)
                for name, t in (*model.named_parameters(), *model.named_buffers())
            }
            for model in _C._called_roots()
        ]

    def _begin(self) -> None:
        self._kept.append(
            {
                "number": self.number,
                "models": self._models(),
                "optimizers": [_copied(o.state_dict()) for o in self._optimizers],
                "random": _random_state(),
                "batches": [],
                "inputs": [],
                "called": False,
            }
        )
        while len(self._kept) > 1 and sum(map(_nbytes, self._kept)) > self.limit:
            self._kept.popleft()

    def _save(self, why: str) -> None:
        self.saved = why
        if not self._kept:
            return
        step = {k: v for k, v in self._kept[-1].items() if k != "called"}
        step |= {"why": why, "program": sys.argv[0], "arguments": list(sys.argv[1:])}
        clew.save(step, self.path)
        print(
            f"clew: {why}; the step is saved, `clew replay {self.path}` goes back to it",
            file=sys.stderr,
        )


def _is_outermost() -> bool:
    here = _C._here()
    return here is None or not here[2]


class Crash:
    """A saved step, and what is to be given back of it."""

    def __init__(self, path: str) -> None:
        self.step: dict[str, Any] = clew.load(path, weights_only=True)
        self._patches = Patches()
        self._batches = list(self.step["batches"])
        self._inputs = list(self.step["inputs"])
        self._done = False
        self._optimizers: list[Any] = []

    def __enter__(self) -> Crash:
        from clew.nn.modules import _global
        from clew.optim.optimizer import Optimizer
        from clew.utils.data import dataloader

        def made(original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self._optimizers.append(optimizer)

        def given(original: Any, batches: Any) -> Any:
            batch = original(batches)
            return self._batches.pop(0) if self._batches else batch

        def called(model: Any, args: Any) -> Any:
            if not _is_outermost():
                return None
            if not self._done:
                self._done = True
                self._restore(model)
            return tuple(self._inputs.pop(0)) if self._inputs else None

        self._patches.put(Optimizer, "__init__", made)
        self._patches.put(dataloader._Batches, "__next__", given)
        self._patches.undo.append(_global.register_module_forward_pre_hook(called).remove)
        return self

    def __exit__(self, *_: object) -> None:
        self._patches.remove()

    def _restore(self, first: Any) -> None:
        models = [*_C._called_roots()]
        if all(first is not m for m in models):
            models.append(first)
        with clew.no_grad():
            for saved in self.step["models"]:
                for model in models:
                    own = dict((*model.named_parameters(), *model.named_buffers()))
                    if own.keys() == saved.keys() and all(
                        own[n].shape == t.shape for n, t in saved.items()
                    ):
                        for name, t in saved.items():
                            own[name].copy_(t)
                        models.remove(model)
                        break
        for optimizer, state in zip(self._optimizers, self.step["optimizers"]):
            optimizer.load_state_dict(state)
        _set_random_state(self.step["random"])


def replay(path: str, program: str | None = None, debugger: bool = True) -> int:
    """Runs a program again at the step that `record` saved; a debugger opens where it fails.

    Args:
        path: of the saved step.
        program: the script; the one that was recorded, if not given.
        debugger: open pdb at the line of the exception.

    Returns: the exit status.
    """
    from clew._run import run_script

    crash = Crash(path)
    print(f"clew replay: step {crash.step['number']}: {crash.step['why']}", file=sys.stderr)
    before = sys.excepthook
    if debugger:

        def ask(kind: Any, error: Any, trace: Any) -> None:
            import pdb

            before(kind, error, trace)
            pdb.post_mortem(trace)

        sys.excepthook = ask
    try:
        with crash, clew.debug.nan_watch():
            return run_script(program or crash.step["program"], crash.step["arguments"])
    finally:
        sys.excepthook = before
