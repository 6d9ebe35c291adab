"""record: keeps the last steps, and saves the one that goes wrong.

What is saved is data: parameters, states of optimizers and random numbers, batches and inputs. The
program that replays them is the user's own, run again; no code is in the file.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

import clew
from clew import _C, Tensor
from clew._insight.debug.doctor.run import call_key
from clew._insight.debug.hooks import Patches
from clew._insight.debug.observing import Observation
from clew._insight.debug.replaying import Crash
from clew._insight.debug.saved import (
    MEETS,
    Versions,
    copied,
    is_in_module,
    is_outermost,
    losses,
    nbytes_of,
    of_a_loss,
    params_of,
    random_data,
    random_state,
    tensors_of,
)

if TYPE_CHECKING:
    from clew._insight.graph.graph import Graph
    from clew._insight.graph.measured import Activations

__all__ = ["record"]

SPIKE = 10.0  # times the median loss of the steps that are kept
MANY_FIRST = 64  # of the first steps it is known what stepped in them
_LEFT_OUT = -1  # in the place of an optimizer that a scaler did not let step
_NOTHING: frozenset[str] = frozenset()


class record:
    """Keeps the last steps of training; when one goes wrong, saves it as a file.

    A step is a round of the training loop: it begins where the first one began, with a batch or the
    call of a model, after an optimizer's step. It goes wrong by an exception,
    by a loss that is NaN or infinite, or by one ten times the median of those kept. `clew replay
    crash.clew train.py` runs the program again, gives its models, optimizers, scalers and random
    numbers the state that they had, and to its first batch, models, functions of losses and what is
    computed with the models' results the data that they got in the step; it ends where the step
    went wrong.

    Args:
        path: of the file that is written.
        steps: how many are kept.
        limit: bytes that they may take; older ones are let go of.
        graphs: of how many of the last backward passes to keep the graph, with the gradients' sizes
            and what the modules gave. This makes a step several times as long.

    Attributes:
        saved: whether a step was saved, and why.
        graphs: the graphs that were kept, oldest first:
            `kept.graphs[-1].save("steps.html", steps=kept.graphs)` writes a page with a slider.

    >>> with clew.debug.record("crash.clew", steps=5) as kept:
    ...     pass
    >>> kept.saved
    ''
    """

    def __init__(
        self,
        path: str = "crash.clew",
        *,
        steps: int = 20,
        limit: int = 1 << 28,
        graphs: int = 0,
    ) -> None:
        if steps < 1 or limit < 1:
            raise ValueError(f"record: steps and limit must be positive; got {steps} and {limit}")
        if graphs < 0:
            raise ValueError(f"record: graphs must be a number of passes, 0 or more; got {graphs}")
        self.path = path
        self.limit = limit
        self.saved = ""
        self.number = 0
        self._kept: deque[dict[str, Any]] = deque(maxlen=steps)
        self._losses: deque[float] = deque(maxlen=steps)
        self._versions = Versions()
        self._optimizers: list[Any] = []
        self._patches = Patches()
        self._stepped: list[int] = []  # the numbers of the optimizers that stepped in this step
        self._anchor: Any = None  # the line that begins a step; "batch" for what a loader gives
        self._first: list[list[int]] = []  # what stepped in each of the first steps
        self._scalers: list[Any] = []  # in the order in which they were first used
        # Of operands of this step, by identity: the tensor, its version and the copy.
        self._copies: dict[int, tuple[weakref.ref[Tensor], int, Tensor]] = {}
        self._bytes: deque[int] = deque(maxlen=steps)  # of each step that is kept
        self.graphs: deque[Graph] = deque(maxlen=graphs)
        self._activations: Activations | None = None
        self._hooks: list[Any] = []  # those of the backward before

    def __enter__(self) -> record:
        from clew.amp.grad_scaler import GradScaler
        from clew.nn.modules import _global
        from clew.optim import optimizer
        from clew.utils.data import dataloader

        for name in losses():
            self._patches.put(clew.nn.functional, name, self._loss_called)
        self._patches.put(GradScaler, "scale", self._loss_scaled)
        self._patches.put(GradScaler, "update", self._scaler_updated)
        hook = optimizer.register_optimizer_step_post_hook(self._optimizer_stepped)
        self._patches.undo.append(hook.remove)
        self._patches.put(dataloader._BaseDataLoaderIter, "__next__", self._batch_given)
        hook = _global.register_module_forward_pre_hook(self._model_entered)
        self._patches.undo.append(hook.remove)
        hook = _global.register_module_forward_hook(self._model_left, always_call=True)
        self._patches.undo.append(hook.remove)
        if self.graphs.maxlen:
            from clew._insight.graph.measured import Activations

            self._activations = Activations()
            hook = _global.register_module_forward_hook(self._activations.hook)
            self._patches.undo.append(hook.remove)
        # What models' results meet is looked for outside of models, once there is a step to keep.
        self._observation = Observation(self._shown, ())
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._observation.close()
        self._patches.remove()
        self._unhook()
        if (
            kind is not None
            and not self.saved
            and not issubclass(kind, (SystemExit, GeneratorExit))
        ):
            self._save(f"{kind.__name__}: {error}")

    def _shown(self, name: str, roots: list[Any], got: list[Any]) -> None:
        """A backward begins: the loss is known. Or an operation has run."""
        if got:
            if got[0].requires_grad and self._kept:
                # What no gradient flows through.
                data = [t for t in roots if t is not None and not t.requires_grad]
                if data and not is_in_module():
                    self._kept[-1]["operands"] += map(self._copy_of, data)
            return
        root = roots[0]
        if self._activations is not None and name != "grad":
            self._draw(roots)
        if name == "grad" or root.numel() != 1 or self.saved:
            return
        loss = float(np.asarray(root._array_view()).reshape(-1)[0])
        if self._kept:
            self._kept[-1]["losses"].append(loss)
        usual = sorted(self._losses)[len(self._losses) // 2] if self._losses else math.inf
        if not math.isfinite(loss):
            self._save(f"the loss is {loss} in step {self.number}")
        elif len(self._losses) >= 5 and abs(loss) > SPIKE * abs(usual) > 0:
            self._save(f"the loss is {loss:.6g} in step {self.number}, the median is {usual:.6g}")
        self._losses.append(loss)

    def _copy_of(self, t: Tensor) -> Tensor:
        """A copy of what an operation got; one for all operations of a step that got the same."""
        known = self._copies.get(id(t))
        if known is None or known[0]() is not t or known[1] != t._version:
            known = self._copies[id(t)] = (weakref.ref(t), t._version, t.detach().clone())
            self._bytes[-1] += t.nbytes
        return known[2]

    def _draw(self, roots: list[Any]) -> None:
        """Keeps the graph of a backward that begins, which fills in its gradients as it runs."""
        from clew._insight.graph.graph import graph
        from clew._insight.graph.measured import watch_gradients

        self._unhook()
        drawn = graph(roots)
        loss = np.asarray(roots[0]._array_view()).reshape(-1)
        drawn.title = f"step {self.number}"
        if loss.size == 1:
            drawn.title += f", loss {float(loss[0]):.4g}"
        assert self._activations is not None
        drawn.activations = self._activations.take()
        self._hooks = watch_gradients(drawn, roots)
        self.graphs.append(drawn)

    def _unhook(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _optimizer_stepped(self, optimizer: Any, *_: Any) -> None:
        """A hook of optimizers: a step was made."""
        if all(optimizer is not known for known in self._optimizers):
            self._optimizers.append(optimizer)
        self.number += 1
        number = next(i for i, o in enumerate(self._optimizers) if o is optimizer)
        self._stepped.append(number)

    def _batch_given(self, original: Any, batches: Any) -> Any:
        """Around what gives a loader's next batch."""
        # A new pass over a loader, as for validation, is a step of its own.
        new = batches._num_yielded == 0
        batch = original(batches)
        if new or self._begins("batch"):
            self._begin("batch")
        self._keep("batches", copied(batch))
        return batch

    def _data_given(self, args: Any, kwargs: Any, model: bool) -> None:
        """A model or a loss is called with data of this step."""
        if not clew.is_grad_enabled():
            return
        here = _C._here()
        line = None if here is None else call_key(here)
        begins = self._begins(line)
        if begins:
            self._begin(line)
        step = self._kept[-1]
        if not step["called"]:
            step["called"] = True
            if not begins:  # a loader may have drawn since
                step["models"] = self._models([*map(tensors_of, _C._called_roots())])
                step["random"] = random_state()
        # A model may take a state that it cuts off itself; a loss takes what is computed anew.
        data = copied if model else of_a_loss
        self._keep("inputs", [data(args), data(kwargs)])

    def _loss_called(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        """Around the functions of losses."""
        if is_outermost():
            self._data_given(args, kwargs, False)
        return original(*args, **kwargs)

    def _loss_scaled(self, original: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
        """Around GradScaler.scale()."""
        if scaler.is_enabled() and all(scaler is not known for known in self._scalers):
            self._scalers.append(scaler)
            for step in self._kept:  # it was not used before
                step["scalers"].append(scaler.state_dict())
        return original(scaler, *args, **kwargs)

    def _scaler_updated(self, original: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
        """Around GradScaler.update()."""
        result = original(scaler, *args, **kwargs)
        if scaler.is_enabled() and not self._stepped:  # a step that was left out, for it has inf
            self._stepped.append(_LEFT_OUT)
        return result

    def _model_entered(self, module: Any, args: Any) -> None:
        """A hook of modules: a call begins."""
        if is_outermost():
            self._data_given(args, {}, any(True for _ in module.parameters()))
            self._observation.show(_NOTHING)

    def _model_left(self, *_: Any) -> None:
        """A hook of modules: a call has ended."""
        if self._kept and is_outermost():
            self._observation.show(MEETS)

    def _begins(self, line: Any) -> bool:
        """Whether a step begins with this line's call."""
        if not self._kept:
            return True
        again = len(set(self._stepped)) < len(self._stepped)  # another loop has begun
        return bool(self._stepped) and (line == self._anchor or again)

    def _models(self, tensors: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
        copy = self._versions.copy
        return [{name: copy(t) for name, t in each.items()} for each in tensors]

    def _optimizer(self, optimizer: Any, known: dict[int, list[Any]]) -> dict[str, Any]:
        """The state of an optimizer, and what its parameters are: the number of the model and the
        name of each, or its values if it is in none."""
        params = params_of(optimizer)
        return {
            "state": copied(optimizer.state_dict()),
            "parameters": [known.get(id(p)) or self._versions.copy(p) for p in params],
        }

    def _keep(self, name: str, data: Any) -> None:
        self._kept[-1][name].append(data)
        self._bytes[-1] += nbytes_of(data)

    def _begin(self, line: Any) -> None:
        if self._kept:
            self._kept[-1]["stepped"] = self._stepped
            if len(self._first) < MANY_FIRST:
                self._first.append(self._stepped)
        self._anchor = line
        self._stepped = []
        tensors = [*map(tensors_of, _C._called_roots())]
        known = {
            id(t): [number, name]
            for number, each in enumerate(tensors if self._optimizers else ())
            for name, t in each.items()
        }
        self._kept.append(
            {
                "number": self.number,
                "models": self._models(tensors),
                "optimizers": [self._optimizer(o, known) for o in self._optimizers],
                "scalers": [s.state_dict() for s in self._scalers],
                "random": random_state(),
                "batches": [],
                "inputs": [],
                "operands": [],  # data that met what the models gave
                "losses": [],  # of each backward
                "called": False,
            }
        )
        self._observation.show(MEETS)
        self._copies.clear()
        step = self._kept[-1]
        self._bytes.append(sum(t.nbytes for each in tensors for t in each.values()))
        self._bytes[-1] += nbytes_of(step["optimizers"])
        while len(self._kept) > 1 and sum(self._bytes) > self.limit:
            self._kept.popleft()
            self._bytes.popleft()

    def _whole(self) -> dict[str, Any]:
        """The last step, joined with the earlier steps that belong to the same round: a generator
        steps after several steps of its critic."""
        kept, now = list(self._kept), self._stepped
        if not now or not self._first:
            return kept[-1]
        for before, first in enumerate(self._first):
            if first[: len(now)] == now and len(first) > len(now):
                last = kept[-before - 1 : -1]
                fits = [step["stepped"] for step in last] == self._first[:before]
                return _joined([*last, kept[-1]]) if fits else kept[-1]
        return kept[-1]

    def _save(self, why: str) -> None:
        self.saved = why
        if not self._kept or Crash.open is not None:
            return  # a replay is no new crash
        step = {k: v for k, v in self._whole().items() if k not in ("called", "stepped")}
        step |= {"why": why, "program": sys.argv[0], "arguments": list(sys.argv[1:])}
        step["random"] = random_data(step["random"])
        clew.save(step, self.path)
        print(
            f"clew: {why}; the step is saved, `clew replay {self.path}` goes back to it",
            file=sys.stderr,
        )


def _joined(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Several steps as one: the state before the first, the data of all."""
    lists = ("batches", "inputs", "operands", "losses")
    whole = {name: [each for step in steps for each in step[name]] for name in lists}
    return {**steps[0], **whole}
