"""record: keeps the last steps, and saves the one that goes wrong; replay goes back to it.

What is saved is data: parameters, states of optimizers and random numbers, batches and inputs. The
program that replays them is the user's own, run again; no code is in the file.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import random
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

if TYPE_CHECKING:
    from clew._insight.graph.graph import Graph
    from clew._insight.graph.measured import Activations

__all__ = ["Crash", "record", "replay"]

SPIKE = 10.0  # times the median loss of the steps that are kept
MANY_FIRST = 64  # of the first steps it is known what stepped in them
UPCOMING = 8  # saved operands among which the next one is looked for
_LEFT_OUT = -1  # in the place of an optimizer that a scaler did not let step


LIVE = "\0live"  # stands for what is no data: in a replay it is what the program has there


_PLAIN = frozenset((type(None), bool, int, float, str))


def _copied(value: Any) -> Any:
    """A value as data: its tensors copied, and what is no data left out."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        return clew.from_numpy(value.copy())
    if isinstance(value, (list, tuple)):
        return [_copied(each) for each in value]
    if isinstance(value, dict) and {str, int}.issuperset(map(type, value)):
        return {key: _copied(each) for key, each in value.items()}
    return value if isinstance(value, (int, float, str)) else LIVE


def _of_a_loss(value: Any) -> Any:
    """The same of what a loss gets, with what gradients flow through left out: a replay computes it
    anew."""
    if isinstance(value, Tensor) and value.requires_grad:
        return LIVE
    if isinstance(value, (list, tuple)):
        return [_of_a_loss(each) for each in value]
    return _copied(value)


def _given_back(saved: Any, live: Any) -> Any:
    """What the program has at a place, with the saved data in it. What gradients flow through stays
    as it is: the program computes it anew."""
    if isinstance(live, Tensor):
        fits = isinstance(saved, Tensor) and not live.requires_grad
        return saved.clone() if fits else live
    if isinstance(live, np.ndarray):
        return saved.numpy().copy() if isinstance(saved, Tensor) else live
    if isinstance(live, (list, tuple)):
        if not isinstance(saved, list) or len(saved) != len(live):
            return live
        both = [_given_back(one, two) for one, two in zip(saved, live)]
        if isinstance(live, list):
            return both
        return type(live)(*both) if hasattr(live, "_fields") else tuple(both)
    if isinstance(live, dict):
        if not isinstance(saved, dict):
            return live
        return {key: _given_back(saved.get(key, LIVE), each) for key, each in live.items()}
    # Of a state that there was not yet, such as a recurrent network's, there is nothing to go by.
    return saved if type(saved) is type(live) or (live is None and saved != LIVE) else live


def _losses() -> dict[str, Any]:
    """The functions whose targets are data, by name."""
    module = clew.nn.functional
    names = [name for name in vars(module) if name.endswith("_loss")]
    names += ["cross_entropy", "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits"]
    return {name: getattr(module, name) for name in names}


# Operations in which what a model gave meets data, as in a loss that is written by hand. Each is
# also there in place.
_MEETING = """
    add sub mul div pow atan2 fmod remainder maximum minimum where lerp masked_fill masked_select
    matmul mm mv bmm dot addmm index gather index_select take_along_dim scatter xlogy hypot
    logaddexp distance mse_loss smooth_l1_loss huber_loss
""".split()
_NOTHING: frozenset[str] = frozenset()
_MEETS = frozenset(prefix + name for name in _MEETING for prefix in ("", "_"))
# Those of their names that take plain numbers, too.
_TAKE_NUMBERS = frozenset(
    ["add", "sub", "mul", "div", "where"]
    + [f"__{r}{name}__" for r in ("", "r", "i") for name in ("add", "sub", "mul", "truediv")]
)


def _nbytes(value: Any) -> int:
    """The bytes of the tensors in what _copied() gave."""
    if isinstance(value, Tensor):
        return value.nbytes
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return 0
    found = 0
    for each in value:
        if type(each) not in _PLAIN:
            found += _nbytes(each)
    return found


def _tensors(model: Any) -> dict[str, Tensor]:
    """A model's parameters and buffers by name, each once."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for path, module in model.named_modules():
        before = path + "." if path else ""
        for name, t in (*module._parameters.items(), *module._buffers.items()):
            if t is not None and id(t) not in seen:
                seen.add(id(t))
                found[before + name] = t
    return found


class _Versions:
    """Copies of tensors, made anew only where a tensor was written since."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tensor, int, Tensor]] = {}

    def copy(self, t: Tensor) -> Tensor:
        known = self._known.get(id(t))
        if known is None or known[0] is not t or known[1] != t._version:
            known = self._known[id(t)] = (t, t._version, t.detach().clone())
        return known[2]


class _Numpy:
    """NumPy's global random state, which takes long to be handed out: only where it has changed."""

    WORDS = 624  # of a Mersenne twister, each of 4 bytes; a position follows

    def __init__(self) -> None:
        self._known: Any = None
        self._raw = b""

    def state(self) -> Any:
        """What np.random.get_state() gives."""
        generator = np.random.mtrand._rand._bit_generator
        if type(generator) is not np.random.MT19937:
            return np.random.get_state()
        raw = ctypes.string_at(generator.ctypes.state_address, 4 * self.WORDS + 4)
        # A normal number that is kept may be used up without a trace in the words.
        kept = self._known is not None and self._known[3]
        if raw != self._raw or kept or self._known is None:
            self._known, self._raw = np.random.get_state(), raw
        return self._known


_numpy = _Numpy()


def _random_state() -> tuple[Any, ...]:
    """The states of the generators, as they hand them out."""
    return clew.get_rng_state(), random.getstate(), _numpy.state()


def _random_data(state: tuple[Any, ...]) -> dict[str, Any]:
    """The same as data that a file can have."""
    own, (version, words, gauss), (kind, keys, *rest) = state
    return {
        "clew": own,
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
        self._versions = _Versions()
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
        from clew.optim import optimizer as module
        from clew.utils.data import dataloader

        def stepped(optimizer: Any, *_: Any) -> None:
            if all(optimizer is not known for known in self._optimizers):
                self._optimizers.append(optimizer)
            self.number += 1
            number = next(i for i, o in enumerate(self._optimizers) if o is optimizer)
            self._stepped.append(number)

        def given(original: Any, batches: Any) -> Any:
            # A new pass over a loader, as for validation, is a step of its own.
            new = batches._num_yielded == 0
            batch = original(batches)
            if new or self._begins("batch"):
                self._begin("batch")
            self._keep("batches", _copied(batch))
            return batch

        def called(args: Any, kwargs: Any, model: bool) -> None:
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
                    step["models"] = self._models([*map(_tensors, _C._called_roots())])
                    step["random"] = _random_state()
            # A model may take a state that it cuts off itself; a loss takes what is computed anew.
            data = _copied if model else _of_a_loss
            self._keep("inputs", [data(args), data(kwargs)])

        def judged(original: Any, *args: Any, **kwargs: Any) -> Any:
            if _is_outermost():
                called(args, kwargs, False)
            return original(*args, **kwargs)

        def scaled(original: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
            if scaler.is_enabled() and all(scaler is not known for known in self._scalers):
                self._scalers.append(scaler)
                for step in self._kept:  # it was not used before
                    step["scalers"].append(scaler.state_dict())
            return original(scaler, *args, **kwargs)

        def updated(original: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(scaler, *args, **kwargs)
            if (
                scaler.is_enabled() and not self._stepped
            ):  # a step that was left out, for it has inf
                self._stepped.append(_LEFT_OUT)
            return result

        for name in _losses():
            self._patches.put(clew.nn.functional, name, judged)
        self._patches.put(GradScaler, "scale", scaled)
        self._patches.put(GradScaler, "update", updated)
        self._patches.undo.append(module.register_optimizer_step_post_hook(stepped).remove)
        self._patches.put(dataloader._Batches, "__next__", given)

        def entered(module: Any, args: Any) -> None:
            if _is_outermost():
                called(args, {}, any(True for _ in module.parameters()))
                self._observation.show(_NOTHING)

        def left(*_: Any) -> None:
            if self._kept and _is_outermost():
                self._observation.show(_MEETS)

        self._patches.undo.append(_global.register_module_forward_pre_hook(entered).remove)
        self._patches.undo.append(
            _global.register_module_forward_hook(left, always_call=True).remove
        )
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
                if data and not _is_in_module():
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
        params = _params(optimizer)
        return {
            "state": _copied(optimizer.state_dict()),
            "parameters": [known.get(id(p)) or self._versions.copy(p) for p in params],
        }

    def _keep(self, name: str, data: Any) -> None:
        self._kept[-1][name].append(data)
        self._bytes[-1] += _nbytes(data)

    def _begin(self, line: Any) -> None:
        if self._kept:
            self._kept[-1]["stepped"] = self._stepped
            if len(self._first) < MANY_FIRST:
                self._first.append(self._stepped)
        self._anchor = line
        self._stepped = []
        tensors = [*map(_tensors, _C._called_roots())]
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
                "random": _random_state(),
                "batches": [],
                "inputs": [],
                "operands": [],  # data that met what the models gave
                "losses": [],  # of each backward
                "called": False,
            }
        )
        self._observation.show(_MEETS)
        self._copies.clear()
        step = self._kept[-1]
        self._bytes.append(sum(t.nbytes for each in tensors for t in each.values()))
        self._bytes[-1] += _nbytes(step["optimizers"])
        while len(self._kept) > 1 and sum(self._bytes) > self.limit:
            self._kept.popleft()
            self._bytes.popleft()

    def _whole(self) -> dict[str, Any]:
        """The last step, with those before it that the program comes through before it does what
        failed: a generator's turn comes after some of its critic's."""
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
        step["random"] = _random_data(step["random"])
        clew.save(step, self.path)
        print(
            f"clew: {why}; the step is saved, `clew replay {self.path}` goes back to it",
            file=sys.stderr,
        )


def _joined(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Several steps as one, which begins where the first one does."""
    lists = ("batches", "inputs", "operands", "losses")
    whole = {name: [each for step in steps for each in step[name]] for name in lists}
    return {**steps[0], **whole}


def _params(optimizer: Any) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _is_outermost() -> bool:
    here = _C._here()
    return here is None or not here[2]


def _is_in_module() -> bool:
    here = _C._here()
    return here is not None and here[3] is not None


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
        from clew._base.overriding import PartsMode
        from clew.amp.grad_scaler import GradScaler
        from clew.nn.modules import _global
        from clew.optim.optimizer import Optimizer
        from clew.utils.data import dataloader

        def made(original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self._optimizers.append(optimizer)

        def given(original: Any, batches: Any) -> Any:
            batch = original(batches)
            return _given_back(self._batches.pop(0), batch) if self._batches else batch

        def called(model: Any, args: Any) -> Any:
            if not _is_outermost():
                return None
            if all(model is not known for known in self._models.values()):
                self._restore(model)
            if not clew.is_grad_enabled():
                return None
            if not self._done:
                self._done = True
                _set_random_state(self.step["random"])
            return _given_back(self._inputs.pop(0)[0], args) if self._inputs else None

        def judged(original: Any, *args: Any, **kwargs: Any) -> Any:
            data = self._done and self._inputs and clew.is_grad_enabled()
            if data and _is_outermost():
                args, kwargs = _given_back(self._inputs.pop(0), (args, kwargs))
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

        for name in _losses():
            self._patches.put(clew.nn.functional, name, judged)
        self._patches.put(GradScaler, "scale", scaled)
        self._mode = Data()
        self._mode.__enter__()
        self._patches.put(Optimizer, "__init__", made)
        self._patches.put(dataloader._Batches, "__next__", given)
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
        if not clew.is_grad_enabled() or _is_in_module():
            return args, kwargs
        if not any(isinstance(t, Tensor) and t.requires_grad for t in leaves):
            return args, kwargs
        numbers = getattr(func, "__name__", "") in _TAKE_NUMBERS
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
        own = _tensors(model)
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
            live = _params(optimizer)
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
