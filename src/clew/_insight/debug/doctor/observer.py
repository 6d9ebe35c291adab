"""The observer: the one place of the doctor that hooks into the library.

It shows rules what happens: chosen operations and every backward in the rounds that are looked at,
and the calls of optimizers, schedules, loaders, scalers and modules in all rounds. A round ends
with an optimizer's step, of several that step in turn with the first one's. What it puts into the
library it takes out again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import clew
from clew import _C, Tensor
from clew._base.origins import noted, origin_of, program_line
from clew._insight.debug.doctor import rules as _rules  # noqa: F401
from clew._insight.debug.doctor.causes import causes
from clew._insight.debug.doctor.finding import Finding
from clew._insight.debug.doctor.rule import CALLS, RULES, Rule, values
from clew._insight.debug.doctor.run import Batch, Call, Pass, Run
from clew._insight.debug.hooks import Patches
from clew._insight.debug.observing import BACKWARD, Observation
from clew._insight.debug.place import here, placed

__all__ = ["Observer"]

FIRST = 6  # rounds that are looked at in full
LATER = (7, 9, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # and these
UNSTEPPED = 16  # backwards that are looked at where no optimizer steps; then 32, 64, 128 ...
FROZEN_EVERY = 4  # rounds after which it is looked for parameters that were frozen, or thawed
SHARE = 0.2  # of the time so far that looking may take, after the first rounds
WAKES = 16  # times that looking begins again where something seems to change, at any price
AWAKE = 3  # rounds that are looked at then
WAKE_SHARE = 0.05  # of the time so far that it may take after that
LEAF = (1 << 64) - 1
SHOWN_BATCHES = 64  # of each pass over a loader
# Losses whose labels are -1 and 1, and which argument these are.
_SIGNED = {
    "cosine_embedding_loss": 2,
    "hinge_embedding_loss": 1,
    "margin_ranking_loss": 2,
    "soft_margin_loss": 1,
}


def _optimizers() -> dict[int, Any]:
    """The optimizers that there are, by their parameters."""
    from clew.optim import Optimizer

    everything = gc.get_objects()
    # isinstance() would ask proxies for their class.
    kinds = {kind for kind in set(map(type, everything)) if issubclass(kind, Optimizer)}
    found = [each for each in everything if type(each) in kinds] if kinds else []
    del everything
    return {id(p): o for o in found for g in o.param_groups for p in g["params"]}


class Observer:
    """Puts hooks in, hands events to rules, takes hooks out."""

    def __init__(self) -> None:
        self.run = Run()
        self.rules: list[Rule] = [rule(self.run) for rule in RULES]
        self.broken: list[tuple[str, Exception]] = []  # rules that failed: they are asked no more
        self._patches = Patches()
        self._by_operation: dict[str, list[Rule]] = {}
        for rule in self.rules:
            for name in rule.operations:
                self._by_operation.setdefault(name, []).append(rule)
        self._names = frozenset(self._by_operation)
        self._few = frozenset(
            name for name, rules in self._by_operation.items() if all(name in r.few for r in rules)
        )
        self._observation: Observation | None = None
        self._hearing: dict[str, list[Rule]] = {}
        self._busy = False
        self._stepped: set[int] = set()  # optimizers that have stepped in this round
        self._wakes = 0
        self._frozen: dict[int, int] = {}  # of optimizers: parameters that require no grad
        self._trained = 0  # parameters of models that require grad
        self._until = 0  # the round before which looking goes on
        self._unstepped = 0  # backwards since an optimizer stepped

    # Events -----------------------------------------------------------------------------------

    def _tell(self, event: str, *args: Any) -> None:
        """Calls the method of all rules that have it. What rules do themselves is no event."""
        if self._busy:
            return
        if event not in self._hearing:
            own = [r for r in self.rules if getattr(type(r), event) is not getattr(Rule, event)]
            self._hearing[event] = own
        self._ask(self._hearing[event], event, *args)

    def _ask(self, rules: list[Rule], event: str, *args: Any) -> None:
        started = time.perf_counter()
        self._busy = True
        grad = _C._set_grad_enabled(False)
        try:
            with np.errstate(all="ignore"):  # what is measured may overflow, as its loss does
                for rule in tuple(rules):
                    try:
                        getattr(rule, event)(*args)
                    except Exception as error:  # a mistake of ours must not end the user's program
                        self._drop(rule, error)
        finally:
            _C._restore_grad_enabled(grad)
            self._busy = False
            self.run.spent += time.perf_counter() - started

    def _drop(self, rule: Rule, error: Exception) -> None:
        self.broken.append((type(rule).__name__, error))
        self.rules.remove(rule)
        for heard in (*self._hearing.values(), *self._by_operation.values()):
            if rule in heard:
                heard.remove(rule)

    def _shown(self, name: str, given: list[Any], got: list[Any]) -> None:
        """The core's callback: an operation has run, or a backward is about to."""
        if name in BACKWARD and not got:
            if not self._busy:
                pass_ = Pass(self.run, name, given)
                self.run.backwards += 1
                self._adopt(pass_)
                self._tell("backward", pass_)
                self.run.last_root = max(self.run.last_root, pass_.root_sequence)
                self._unstepped += 1
                if self._unstepped >= UNSTEPPED and self.run.round >= self._until:
                    self._rest()
            return
        if not self._busy:
            self._ask(self._by_operation[name], "operation", Call(self.run, name, given, got))

    def _adopt(self, pass_: Pass) -> None:
        """Watches optimizers that were made before the watch began once their parameters are
        trained. Others are other programs' business."""
        for leaf in pass_.leaves if self.run.earlier else ():
            optimizer = self.run.earlier.pop(id(leaf), None)
            if optimizer is not None and id(optimizer) not in self.run.optimizers:
                self.run.watched(optimizer).earlier = True
                self._adopt_schedules(optimizer)

    def _adopt_schedules(self, optimizer: Any) -> None:
        from clew.optim.lr_scheduler import LRScheduler

        for schedule in noted(LRScheduler):
            if getattr(schedule, "optimizer", None) is optimizer:
                self._tell("called", "scheduler", schedule, placed(origin_of(schedule)))

    def _look(self, on: bool) -> None:
        if on != self.run.looking:
            self.run.looking = on
            if self._observation is not None:
                self._observation.close()
            self._observation = (
                Observation(self._shown, self._names, self._few, CALLS) if on else None
            )
            if on:  # backwards that ran meanwhile were not seen
                # A leaf's node has the largest number: a backward from a leaf says nothing here.
                roots = (n for n in _C._backward_roots() if n < LEAF)
                self.run.last_root = max(self.run.last_root, *roots, 0)
        elif not on and self._observation is not None:  # it rested
            self._observation.close()
            self._observation = None

    def _rest(self) -> None:
        """Stops looking, except at backwards, which are counted until one is looked at again."""
        self._look(False)
        self.run.rested = True
        self._observation = Observation(self._counted, ())

    def _counted(self, name: str, given: list[Any], got: list[Any]) -> None:
        self._unstepped += 1
        self.run.backwards += 1
        # A power of two.
        if self._unstepped & (self._unstepped - 1) == 0 and self._may_spend(SHARE):
            self._look(True)

    def _may_spend(self, share: float) -> bool:
        return self.run.spent < share * (time.perf_counter() - self.run.started)

    def _wake(self) -> None:
        """Looks for a few rounds, where something else than a training step seems to begin."""
        if self.run.looking and self.run.round < self._until:
            return
        self._wakes += 1
        if self._wakes <= WAKES or self._may_spend(WAKE_SHARE):
            self._until = self.run.round + AWAKE
            self._look(True)

    def _end_round(self, optimizer: Any) -> None:
        """Where several optimizers step in turn, a round is a step of each."""
        if self._stepped and id(optimizer) not in self._stepped:
            self._stepped.add(id(optimizer))
            return
        self._stepped = {id(optimizer)}
        self.run.round += 1
        at = self.run.round
        if self._unstepped >= UNSTEPPED and at < FIRST:
            self._look(True)
        self._unstepped = 0
        if at >= FIRST and at >= self._until:
            self._look(at in LATER and self._may_spend(SHARE))
        if at % FROZEN_EVERY == 0 and (self._froze(optimizer) or self._unfroze()):
            self._wake()

    def _froze(self, optimizer: Any) -> bool:
        """Whether an optimizer has more frozen parameters than when it was looked at before."""
        groups = optimizer.param_groups
        now = sum(not p.requires_grad for group in groups for p in group["params"])
        before = self._frozen.get(id(optimizer), now)
        self._frozen[id(optimizer)] = now
        return now > before

    def _unfroze(self) -> bool:
        """Whether more of the models' parameters require grad than when they were counted before,
        be they in an optimizer or not."""
        now = sum(p.requires_grad for model in self.run.models for p in model.parameters())
        before, self._trained = self._trained or now, now
        return now > before

    # Hooks ------------------------------------------------------------------------------------

    def install(self) -> None:
        """Puts all hooks in."""
        self.run.looking = False
        self._look(True)
        self.run.earlier = _optimizers()
        self._watch_optimizers()
        self._watch_modules()
        self._watch_schedules()
        self._watch_loaders()
        self._watch_scaling()
        self._watch_losses()
        self._watch_seeds()
        self._watch_draws()

    def remove(self) -> None:
        """Takes all hooks out."""
        self._look(False)
        self._patches.remove()

    def finish(self, failed: bool) -> list[Finding]:
        """What all rules found, by line."""
        if not failed:
            self._tell("finish")
        found = [finding for rule in self.rules for finding in rule.findings.values()]
        unique: dict[Any, Finding] = {}
        for f in causes(found):
            unique.setdefault((f.mistake, f.file, f.line), f)
        return sorted(unique.values(), key=lambda f: (f.file, f.line))

    def _watch_optimizers(self) -> None:
        from clew.optim import optimizer as module

        def made(original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self.run.watched(optimizer, here())
            self._tell("called", "optimizer", optimizer, here())

        def cleared(original: Any, owner: Any, *args: Any, **kwargs: Any) -> None:
            if self.run.looking:
                self._tell("cleared", owner, here())
            original(owner, *args, **kwargs)

        def wraps(optimizer: Any) -> bool:  # the steps are those of the optimizer in it
            return any(issubclass(type(v), module.Optimizer) for v in vars(optimizer).values())

        def before(optimizer: Any, *_: Any) -> None:
            if not self.run.looking or wraps(optimizer):
                return
            watched = self.run.watched(optimizer)
            if watched.step_place is None:
                watched.step_place = here()
            self._tell("stepping", watched)

        def after(optimizer: Any, *_: Any) -> None:
            watched = self.run.watched(optimizer)
            watched.steps += 1
            if wraps(optimizer):
                return
            if self.run.looking:
                self._tell("stepped", watched)
            self._end_round(optimizer)

        self._patches.put(module.Optimizer, "__init__", made)
        self._patches.put(module.Optimizer, "zero_grad", cleared)
        self._patches.undo.append(module.register_optimizer_step_pre_hook(before).remove)
        self._patches.undo.append(module.register_optimizer_step_post_hook(after).remove)
        from clew.nn import Module

        self._patches.put(Module, "zero_grad", cleared)

    def _watch_modules(self) -> None:
        from clew.autograd import grad_mode
        from clew.nn import Module

        def switched(original: Any, module: Any, mode: bool = True) -> Any:
            if module in self.run.models or not self.run.models:
                self._wake()
                self._tell("called", "train" if mode else "eval", module, here())
            return original(module, mode)

        def entered(original: Any, mode: Any, *args: Any) -> Any:
            result = original(mode, *args)
            if not self._busy:
                self._wake()
            return result

        def set_to(original: Any, mode: Any, on: bool) -> None:
            original(mode, on)
            if not on and not self._busy:
                self._wake()

        def kept(original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
            state = original(module, *args, **kwargs)
            self._tell("called", "kept", state, here())
            return state

        def loaded(original: Any, module: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            self._tell("called", "loaded", (module, state), here())
            return original(module, state, *args, **kwargs)

        self._patches.put(Module, "state_dict", kept)
        self._patches.put(Module, "load_state_dict", loaded)
        self._patches.put(grad_mode.set_grad_enabled, "__init__", set_to)
        self._patches.put(Module, "train", switched)
        self._patches.put(grad_mode.no_grad, "__enter__", entered)
        self._patches.put(grad_mode.inference_mode, "__enter__", entered)

    def _watch_schedules(self) -> None:
        from clew.optim import lr_scheduler as module

        def made(original: Any, schedule: Any, *args: Any, **kwargs: Any) -> None:
            busy, self._busy = self._busy, True  # the first step, which is its own
            try:
                original(schedule, *args, **kwargs)
            finally:
                self._busy = busy
            self._tell("called", "scheduler", schedule, here())

        def stepped(original: Any, schedule: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._busy:
                self._tell("called", "schedule", schedule, here())
            return original(schedule, *args, **kwargs)

        for value in {id(v): v for v in vars(module).values()}.values():
            if not isinstance(value, type) or not hasattr(value, "step"):
                continue
            if value.__name__ == "LRScheduler" or module.LRScheduler in value.__mro__:
                if "step" in value.__dict__:
                    self._patches.put(value, "step", stepped)
                if "__init__" in value.__dict__:
                    self._patches.put(value, "__init__", made)

    def _watch_loaders(self) -> None:
        from clew.utils.data import Subset, WeightedRandomSampler
        from clew.utils.data import dataloader as module

        def given(original: Any, batches: Any) -> Any:
            number = batches._num_yielded
            if number == 0:
                self._wake()
            if number >= SHOWN_BATCHES:
                return original(batches)
            begun = time.perf_counter()
            value = original(batches)
            waited = time.perf_counter() - begun
            self._tell("batch", Batch(batches._loader, number, value, waited, program_line()))
            return value

        def made(original: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            original(loader, *args, **kwargs)
            self.run.loaders[id(loader)] = (loader, program_line())

        def noted(original: Any, subject: Any, *args: Any, **kwargs: Any) -> None:
            original(subject, *args, **kwargs)
            self.run.made[id(subject)] = (subject, program_line())

        self._patches.put(module._BaseDataLoaderIter, "__next__", given)
        self._patches.put(Subset, "__init__", noted)
        self._patches.put(WeightedRandomSampler, "__init__", noted)
        self._patches.put(module.DataLoader, "__init__", made)

    def _watch_seeds(self) -> None:
        import random

        import numpy as np

        from clew._base import random as generator

        def told(name: str) -> Callable[..., Any]:
            def around(original: Any, *args: Any, **kwargs: Any) -> Any:
                self._tell("called", "seeded", name, None)
                return original(*args, **kwargs)

            return around

        def reseeded(original: Any, seed: Any) -> Any:
            result = original(seed)
            after = values(clew.get_rng_state()).copy()
            self._tell("called", "reseeded", (seed, after), here())
            return result

        def own(original: Any, subject: Any, seed: Any) -> Any:
            result = original(subject, seed)
            # What is drawn without gradients is looked at, and may be the same each time.
            if subject is not clew.default_generator and clew.is_grad_enabled():
                if self.run.looking:
                    self._tell("called", "reseeded own", (int(seed), subject), here())
            return result

        self._patches.put(_C.Generator, "manual_seed", own)
        self._patches.put(generator, "_start", reseeded)
        self._patches.put(random, "seed", told("random"))
        self._patches.put(np.random, "seed", told("numpy.random"))

    def _watch_draws(self) -> None:
        from clew import distributions

        def drawn(original: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if self.run.looking:
                self._tell("called", "drawn", result, None)
            return result

        def scored(original: Any, own: Any, value: Any) -> Any:
            result = original(own, value)
            if self.run.looking:
                self._tell("called", "scored", (value, result), None)
            return result

        for kind in {id(v): v for v in vars(distributions).values()}.values():
            if isinstance(kind, type) and issubclass(kind, distributions.Distribution):
                for name, around in (("sample", drawn), ("log_prob", scored)):
                    if name in kind.__dict__:
                        self._patches.put(kind, name, around)

    def _watch_losses(self) -> None:
        from clew.nn.functional import _cross_entropy as module

        def tried(original: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except IndexError as error:
                self._tell("called", "refused", error, here())
                raise

        def signed(original: Any, *args: Any, **kwargs: Any) -> Any:
            if self.run.looking and clew.is_grad_enabled():
                name = original.__name__
                at = _SIGNED[name]
                target = kwargs.get("target", args[at] if len(args) > at else None)
                self._tell("called", "signs", (name, target), here())
            return original(*args, **kwargs)

        for name in _SIGNED:
            self._patches.put(clew.nn.functional, name, signed)
        self._patches.put(module, "_cross_entropy", tried)
        self._patches.put(module, "_nll_loss", tried)

    def _watch_scaling(self) -> None:
        from clew.amp.grad_scaler import GradScaler
        from clew.nn.utils import clip_grad

        def told(what: str) -> Callable[..., Any]:
            def around(original: Any, subject: Any, *args: Any, **kwargs: Any) -> Any:
                self._tell("called", what, subject, here())
                return original(subject, *args, **kwargs)

            return around

        self._patches.put(GradScaler, "scale", told("scale"))
        self._patches.put(GradScaler, "update", told("update"))

        def unscaled(original: Any, scaler: Any, optimizer: Any) -> Any:
            self._tell("called", "unscale", optimizer, here())
            return original(scaler, optimizer)

        self._patches.put(GradScaler, "unscale_", unscaled)

        def clipped(original: Any, subject: Any) -> Any:
            if not isinstance(subject, Tensor):
                subject = list(subject)  # parameters() can be gone through once
            self._tell("called", "clip", subject, here())
            return original(subject)

        self._patches.put(clip_grad, "_gradients", clipped)
