"""replay: runs a program again, and gives it what a saved step holds."""

from __future__ import annotations

import itertools
import math
import sys
from collections import deque
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew._insight.debug.hooks import Patches
from clew._insight.debug.observing import Observation
from clew._insight.debug.saved import (
    TAKE_NUMBERS,
    given_back,
    is_in_module,
    is_outermost,
    losses,
    params_of,
    set_random_state,
    tensors_of,
)

__all__ = ["Crash", "replay"]


UPCOMING = 8  # saved operands among which the next one is looked for


class Crash:
    """A saved step, and what is to be given back of it.

    Attributes:
        open: the one that is replayed, if any.
    """

    open: Crash | None = None

    def __init__(self, path: str) -> None:
        self.step: dict[str, Any] = clew.load(path, weights_only=True)
        self._patches = Patches()
        self._losses = list(self.step.get("losses", []))
        self._batches = list(self.step["batches"])
        self._inputs = list(self.step["inputs"])
        self._operands = deque(self.step.get("operands", []))
        self._scalers = list(self.step.get("scalers", []))
        self._mode: Any = None
        self._done = False
        self._models: dict[int, Any] = {}  # those that have their state back, by their number
        self._states: list[Any] = list(self.step["optimizers"])  # those that are not given back yet
        self._optimizers: list[Any] = []

    def __enter__(self) -> Crash:
        from clew._base.function_modes import PartsMode
        from clew.amp.grad_scaler import GradScaler
        from clew.nn.modules import _global
        from clew.optim.optimizer import Optimizer
        from clew.utils.data import dataloader

        def made(original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self._optimizers.append(optimizer)

        def given(original: Any, batches: Any) -> Any:
            batch = original(batches)
            return given_back(self._batches.pop(0), batch) if self._batches else batch

        def called(model: Any, args: Any) -> Any:
            if not is_outermost():
                return None
            if all(model is not known for known in self._models.values()):
                self._restore(model)
            if not clew.is_grad_enabled():
                return None
            if not self._done:
                self._done = True
                set_random_state(self.step["random"])
            return given_back(self._inputs.pop(0)[0], args) if self._inputs else None

        def judged(original: Any, *args: Any, **kwargs: Any) -> Any:
            data = self._done and self._inputs and clew.is_grad_enabled()
            if data and is_outermost():
                args, kwargs = given_back(self._inputs.pop(0), (args, kwargs))
            return original(*args, **kwargs)

        scalers: list[Any] = []  # those that were used

        def scaled(original: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._done and scaler.is_enabled() and all(scaler is not s for s in scalers):
                scalers.append(scaler)
                if self._scalers:
                    scaler.load_state_dict(self._scalers.pop(0))
            return original(scaler, *args, **kwargs)

        crash = self

        class Data(PartsMode):
            """Gives operations that models' results go into the data of the saved step."""

            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                kwargs = kwargs or {}
                if crash._done and crash._operands:
                    args, kwargs = crash._with_data(func, args, kwargs)
                return func(*args, **kwargs)

        for name in losses():
            self._patches.put(clew.nn.functional, name, judged)
        self._patches.put(GradScaler, "scale", scaled)
        self._mode = Data()
        self._mode.__enter__()
        self._patches.put(Optimizer, "__init__", made)
        self._patches.put(dataloader._BaseDataLoaderIter, "__next__", given)
        self._patches.undo.append(_global.register_module_forward_pre_hook(called).remove)
        self._observation = Observation(self._shown, ())
        Crash.open = self
        return self

    def __exit__(self, *_: object) -> None:
        Crash.open = None
        self._mode.__exit__(None, None, None)
        self._observation.close()
        self._patches.remove()

    def _shown(self, name: str, roots: list[Any], _: list[Any]) -> None:
        """A backward begins: whether its loss is that of the saved step's."""
        if name == "grad" or roots[0].numel() != 1 or not self._losses or not self._done:
            return
        wanted = self._losses.pop(0)
        loss = float(np.asarray(roots[0]._array_view()).reshape(-1)[0])
        same = loss == wanted or abs(loss - wanted) <= 1e-3 * abs(wanted)
        if not same and (math.isfinite(loss) or math.isfinite(wanted)):
            self._losses.clear()
            print(
                f"clew replay: the loss is {loss:.6g}, in the saved step it was {wanted:.6g}: "
                "something that it was computed from is not in the file. What loaders give and "
                "models and functions of losses get is",
                file=sys.stderr,
            )
        elif not self._losses and self.step["why"].startswith("the loss is"):
            raise RuntimeError(f"clew replay: this is the step: {self.step['why']}")

    def _with_data(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """What an operation gets that is called outside of models: with the saved step's data in
        the place of the program's, where it gets what gradients flow through."""
        from clew.utils._pytree import tree_flatten, tree_unflatten

        leaves, form = tree_flatten((args, kwargs))
        if not clew.is_grad_enabled() or is_in_module():
            return args, kwargs
        if not any(isinstance(t, Tensor) and t.requires_grad for t in leaves):
            return args, kwargs
        numbers = getattr(func, "__name__", "") in TAKE_NUMBERS
        found = [self._saved_for(leaf, numbers) for leaf in leaves]
        args, kwargs = tree_unflatten(found, form)
        return args, kwargs

    def _saved_for(self, live: Any, numbers: bool) -> Any:
        """The next of the saved data that fits what the program has."""
        if isinstance(live, Tensor) and not live.requires_grad:
            fits = [t.shape == live.shape and t.dtype == live.dtype for t in self._upcoming()]
        elif numbers and type(live) in (int, float):
            fits = [
                t.dim() == 0 and t.is_floating_point() == isinstance(live, float)
                for t in self._upcoming()
            ]
        else:
            return live
        if True not in fits:
            return live
        for _ in range(fits.index(True)):  # of operations that one call is made of
            self._operands.popleft()
        saved = self._operands.popleft()
        return saved.clone() if isinstance(live, Tensor) else type(live)(saved.item())

    def _upcoming(self) -> list[Tensor]:
        return list(itertools.islice(self._operands, UPCOMING))

    def _restore(self, model: Any) -> None:
        """Gives a model that is called for the first time its state, which is that of the first
        model of equal structure that was called in the recorded program."""
        own = tensors_of(model)
        for number, saved in enumerate(self.step["models"]):
            fits = own.keys() == saved.keys() and all(
                own[name].shape == t.shape for name, t in saved.items()
            )
            if fits and number not in self._models:
                self._models[number] = model
                with clew.no_grad():
                    for name, t in saved.items():
                        own[name].copy_(t)
                break
        self._states = [state for state in self._states if not self._load(state)]

    def _load(self, state: dict[str, Any]) -> bool:
        """Gives the optimizer that has these parameters its state; False while some are those of a
        model that was not called yet."""
        params: list[Any] = []
        for at in state["parameters"]:
            if isinstance(at, Tensor):
                params.append(at)
            elif at[0] in self._models:
                params.append(dict(self._models[at[0]].named_parameters())[at[1]])
            else:
                return False
        for optimizer in self._optimizers:
            live = params_of(optimizer)
            if len(live) != len(params) or not all(map(_is_same, params, live)):
                continue
            with clew.no_grad():
                for saved, p in zip(params, live):
                    if saved is not p:
                        p.copy_(saved)
            optimizer.load_state_dict(state["state"])
            self._optimizers = [o for o in self._optimizers if o is not optimizer]
            return True
        return False


def _is_same(saved: Tensor, live: Tensor) -> bool:
    """Whether a parameter is the one meant: itself, or, of one in no model, one of its shape."""
    return saved is live or (
        saved.is_leaf and not saved.requires_grad and saved.shape == live.shape
    )


def replay(path: str, program: str | None = None, debugger: bool = True) -> int:
    """Runs a program again at the step that `record` saved; a debugger opens where it fails.

    It runs in this process, in which `torch` means clew from then on, as under `clew run`.

    Args:
        path: of the saved step.
        program: the script; the one that was recorded, if not given.
        debugger: open pdb at the line of the exception.

    Returns: the exit status: 0, or 1 where the program fails again.

    Raises:
        FileNotFoundError: if there is no saved step.

    >>> clew.debug.replay("crash.clew")  # before `record` has saved a step
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'crash.clew'
    """
    from clew._cli.run import run_script

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
