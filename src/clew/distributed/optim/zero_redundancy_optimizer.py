"""An optimizer whose state is divided between processes (Rajbhandari et al., ZeRO, 2020)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew.distributed import distributed_c10d as c10d
from clew.distributed.algorithms.join import Join, JoinHook
from clew.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class _StepHook(JoinHook):
    """Goes on stepping for the others, whose gradients this process has, too."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer):
    """Each process keeps state for some of the parameters, steps those, and sends them to others.

    Gradients must be the same on all processes, as DistributedDataParallel makes them.

    Args:
        params: parameters, or groups of them.
        optimizer_class: of which each process has one for its parameters.
        process_group: a group; that of all processes if None.
        parameters_as_bucket_view: accepted.
        overlap_with_ddp: must be False.
        defaults: options of the optimizer.

    Example:
        >>> from clew.distributed.optim import ZeroRedundancyOptimizer
        >>> clew.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> w = clew.nn.Parameter(clew.ones(2))
        >>> opt = ZeroRedundancyOptimizer([w], clew.optim.SGD, lr=0.5)
        >>> w.sum().backward()
        >>> opt.step()
        >>> w.tolist()
        [0.5, 0.5]
        >>> clew.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Callable[..., Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp must be False")
        self.process_group = process_group or c10d._get_default_group()
        self._kind = optimizer_class
        self._given = defaults
        self._local: Any = None
        self._owner: dict[int, int] = {}  # by the parameter's id
        self._load = [0] * self.process_group.size()
        self._whole_state: Any = None
        self._join_config: Any = None
        super().__init__(params, defaults)
        self._make_local()

    # ---- who has what ----

    def _divide(self, parameters: list[Any]) -> None:
        """The largest parameter to the process that has least."""
        for p in sorted(parameters, key=lambda p: -p.numel()):
            rank = self._load.index(min(self._load))
            self._owner[id(p)] = rank
            self._load[rank] += p.numel()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, which is divided like the others.

        Args:
            param_group: "params" and options.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        self._divide(group["params"])
        if self._local is not None:
            self._make_local()

    def _mine(self, group: dict[str, Any]) -> list[Any]:
        rank = self.process_group.rank()
        return [p for p in group["params"] if self._owner[id(p)] == rank]

    def _make_local(self) -> None:
        """The optimizer of this process's parameters; state that there is stays."""
        before = self._local.state if self._local is not None else {}
        groups = [{**g, "params": self._mine(g)} for g in self.param_groups]
        self._local = None
        if any(g["params"] for g in groups):
            own = [g for g in groups if g["params"]]
            self._local = self._kind(own, **self._given)
            for p, state in before.items():
                self._local.state[p] = state
        # A schedule looks for the options here. What a group does not say is the class's default,
        # not what another group says.
        made = self._kind([clew.zeros(1, requires_grad=True)], **self._given)
        options = {k: v for k, v in made.param_groups[0].items() if k != "params"}
        for group in self.param_groups:
            for name, value in options.items():
                group.setdefault(name, value)

    @property
    def optim(self) -> Any:
        """The optimizer of this process's parameters; None where it has none."""
        return self._local

    def _share_options(self) -> None:
        """A schedule changes this optimizer's options; the local one's follow."""
        if self._local is None:
            return
        local = iter(self._local.param_groups)
        for group in self.param_groups:
            if self._mine(group):
                target = next(local)
                target.update({k: v for k, v in group.items() if k != "params"})

    # ---- stepping ----

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """Steps this process's parameters and sends them to the others.

        Args:
            closure: computes the loss again.
            kwargs: for the optimizer's step.

        Returns:
            What the closure gives.
        """
        Join.notify_join_context(self)
        loss = None
        if closure is not None:
            with clew.enable_grad():
                loss = closure()
        self._share_options()
        if self._local is not None:
            self._local.step(**kwargs)
        self._send()
        return loss

    def _send(self) -> None:
        """Each process's parameters to all, those of one dtype together."""
        flats: dict[tuple[int, Any], list[Any]] = {}
        for group in self.param_groups:
            for p in group["params"]:
                flats.setdefault((self._owner[id(p)], p.dtype), []).append(p)
        if self.process_group.size() == 1:
            return
        begun = []
        with clew.no_grad():
            for (rank, _), ps in sorted(flats.items(), key=lambda item: (item[0][0], str(item[0]))):
                flat = clew.cat([p.detach().reshape(-1) for p in ps])
                work = c10d.broadcast(flat, group=self.process_group, group_src=rank, async_op=True)
                begun.append((rank, ps, flat, work))
            for rank, ps, flat, work in begun:
                work.wait()
                at = 0
                for p in ps:
                    if rank != self.process_group.rank():
                        p.copy_(flat[at : at + p.numel()].view(p.shape))
                    at += p.numel()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What steps on in a `Join` after this process's last batch.

        Args:
            kwargs: accepted.
        """
        return _StepHook(self)

    @property
    def join_device(self) -> Any:
        """The device of its collectives."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The group of its collectives."""
        return self.process_group

    # ---- saving ----

    def _numbers(self) -> dict[int, int]:
        """Each parameter's number, by its id."""
        ps = [p for group in self.param_groups for p in group["params"]]
        return {id(p): i for i, p in enumerate(ps)}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Brings the whole state to one process; called on all.

        Args:
            to: the rank that `state_dict()` may be called on next.
        """
        number = self._numbers()
        own = {}
        if self._local is not None:
            own = {number[id(p)]: dict(s) for p, s in self._local.state.items()}
        here = c10d.get_rank() == to
        parts: Any = [None] * self.process_group.size() if here else None
        c10d.gather_object(own, parts, dst=to, group=self.process_group)
        self._whole_state = {k: v for part in parts for k, v in part.items()} if here else None

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as the optimizer alone would give it.

        Raises:
            RuntimeError: `consolidate_state_dict` did not bring it here.
        """
        if self._whole_state is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer: the state is divided between processes; call "
                f"consolidate_state_dict(to={c10d.get_rank()}) on all of them before"
            )
        number = self._numbers()
        groups = [{**g, "params": [number[id(p)] for p in g["params"]]} for g in self.param_groups]
        return {"state": dict(sorted(self._whole_state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what concerns this process's parameters; called on all with the whole state.

        Args:
            state_dict: a whole state.
        """
        number = self._numbers()
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError(
                f"ZeroRedundancyOptimizer: the state has {len(groups)} groups of parameters, this "
                f"has {len(self.param_groups)}"
            )
        for own, given in zip(self.param_groups, groups):
            own.update({k: v for k, v in given.items() if k != "params"})
        self._share_options()
        if self._local is None:
            return
        mine: list[Any] = [p for g in self._local.param_groups for p in g["params"]]
        count = 0
        packed = []
        for g in self._local.param_groups:
            options = {k: v for k, v in g.items() if k != "params"}
            packed.append({**options, "params": list(range(count, count + len(g["params"])))})
            count += len(g["params"])
        states = {
            i: state_dict["state"][number[id(p)]]
            for i, p in enumerate(mine)
            if number[id(p)] in state_dict["state"]
        }
        self._local.load_state_dict({"state": states, "param_groups": packed})
