"""`FullyShardedDataParallel`, the earlier interface of `fully_shard`: a module around a module.

Parameters are cut along their first dim, one by one (in PyTorch several are one flat parameter);
what is sent, and when, is `fully_shard`'s.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import clew
from clew import distributed as dist
from clew import nn
from clew._base.provenance import user_level
from clew._torch.absent import _FULLY, absent
from clew._torch.distributed.fsdp.api import *  # noqa: F403
from clew._torch.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
)
from clew._torch.distributed.fsdp.wrap import wrap_children
from clew.distributed.device_mesh import DeviceMesh
from clew.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from clew.distributed.tensor import DTensor, distribute_tensor
from clew.distributed.tensor._api import part_of

_NAME = "FullyShardedDataParallel"
_PREFIX = "_fsdp_wrapped_module."
_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}

for _name in "OptimStateKeyType _get_param_to_fqn".split():
    globals()[_name] = absent("distributed.fsdp", _name, _FULLY)


def _mesh(group: Any, strategy: ShardingStrategy, given: Any) -> Any:
    """Along its last dim parameters are cut, along a first of two they are copied."""
    if given is not None:
        return given
    if isinstance(group, tuple):
        raise NotImplementedError(
            f"{_NAME}: two groups are not offered; give device_mesh=, of two dims, of which "
            "parameters are cut along the second"
        )
    world = dist.get_world_size(group) if dist.is_initialized() else 1
    if strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
        return None if group is None else DeviceMesh.from_group(group, "cpu")
    if group is not None:
        raise NotImplementedError(f"{_NAME}: {strategy} within a group needs device_mesh=")
    cut = 1
    if strategy is not ShardingStrategy.NO_SHARD:
        cut = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    return dist.init_device_mesh("cpu", (world // cut, cut))


def _have_values(module: Any, init: Any) -> None:
    """Gives a module that was made on "meta" its parameters, and them their first values."""
    if init is not None:
        init(module)
        return
    for part in module.modules():
        own = (*part.parameters(recurse=False), *part.buffers(recurse=False))
        if any(t.is_meta for t in own):
            part.to_empty(device="cpu", recurse=False)
            if not hasattr(part, "reset_parameters"):
                raise RuntimeError(
                    f"{_NAME}: {type(part).__name__} has parameters on 'meta' and no "
                    "reset_parameters(); give param_init_fn"
                )
            part.reset_parameters()


class FullyShardedDataParallel(nn.Module):
    """A module whose parameters, gradients and so optimizer state are spread over processes.

    Args:
        module: the module; its parameters are taken.
        process_group: the processes; all if None.
        sharding_strategy: what is spread: FULL_SHARD if None.
        cpu_offload: accepted; everything is on the CPU.
        auto_wrap_policy: which modules within are spread by themselves; see `fsdp.wrap`.
        backward_prefetch: accepted; the next parameters are always on their way.
        mixed_precision: dtypes.
        ignored_modules: modules that stay as they are.
        param_init_fn: gives a module that was made on "meta" its values.
        device_id: accepted.
        sync_module_states: start from the values of the first process.
        forward_prefetch, limit_all_gathers, use_orig_params: accepted.
        ignored_states: parameters, or modules, that stay as they are.
        device_mesh: the processes' mesh, instead of process_group.
    """

    def __init__(
        self,
        module: Any,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Any] | None = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        mesh = _mesh(process_group, strategy, device_mesh)
        left = [*(ignored_modules or ()), *(ignored_states or ())]
        outside = [m for m in left if isinstance(m, nn.Module)]
        ignored = [p for m in outside for p in m.parameters()]
        ignored += [p for p in left if not isinstance(p, nn.Module)]
        if any(t.is_meta for t in (*module.parameters(), *module.buffers())):
            _have_values(module, param_init_fn)
        if sync_module_states and dist.is_initialized():
            source = 0 if process_group is None else dist.get_global_rank(process_group, 0)
            for t in (*module.parameters(), *module.buffers()):
                if not isinstance(t, DTensor):
                    dist.broadcast(t.detach(), source, group=process_group)
        options: dict[str, Any] = {
            "sharding_strategy": strategy,
            "mixed_precision": mixed_precision,
            "ignored_states": ignored,
            "device_mesh": mesh,
        }
        if auto_wrap_policy is not None:
            skipped = {id(part) for m in outside for part in m.modules()}
            wrap_children(
                module,
                auto_wrap_policy,
                lambda part, **own: type(self)(part, **{**options, **own}),
                skipped,
            )
        policy = None
        if mixed_precision is not None:
            if mixed_precision.buffer_dtype is not None:
                for buffer in module.buffers():
                    if buffer.is_floating_point():
                        buffer.data = buffer.to(mixed_precision.buffer_dtype)
            policy = MixedPrecisionPolicy(
                mixed_precision.param_dtype,
                mixed_precision.reduce_dtype,
                cast_forward_inputs=mixed_precision.cast_forward_inputs
                or mixed_precision.cast_root_forward_inputs,
            )
        keeps = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
        self._fsdp_wrapped_module = fully_shard(
            module,
            mesh=mesh,
            reshard_after_forward=strategy not in keeps,
            mp_policy=policy,
            ignored_params=ignored,
        )
        self.sharding_strategy, self._settings = strategy, self._usual_settings()
        self._register_state_dict_hook(self._after_state_dict)
        self.register_load_state_dict_pre_hook(self._before_load)

    @property
    def module(self) -> Any:
        """The module inside."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        return self._fsdp_wrapped_module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        """The parameters' parts, by the names that they have without the wrappers."""
        for name, value in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), value

    def named_buffers(self, *args: Any, **kwargs: Any) -> Any:
        """The buffers, by the names that they have without the wrappers."""
        for name, value in super().named_buffers(*args, **kwargs):
            yield name.replace(_PREFIX, ""), value

    # ---- training ----

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which backward adds gradients up on each process alone."""
        inside = [m.module for m in self.fsdp_modules(self)]
        before = [m._fsdp_group.sync for m in inside]
        for m in inside:
            m.set_requires_gradient_sync(False, recurse=False)
        try:
            yield
        finally:
            for m, sync in zip(inside, before):
                m.set_requires_gradient_sync(sync, recurse=False)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scales the gradients so that their norm, over all processes, is at most max_norm.

        Args:
            max_norm: the limit.
            norm_type: the norm's order.

        Returns:
            the norm before.
        """
        total: Any = nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return total.full_tensor() if isinstance(total, DTensor) else total

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Raises: gradients are added up by `fully_shard` alone."""
        raise NotImplementedError(
            f"{_NAME}: communication hooks are those of DistributedDataParallel; for sums in "
            "another dtype give MixedPrecision(reduce_dtype=)"
        )

    def apply(self, fn: Any) -> Any:
        """Calls a function with each module inside, whose parameters are whole and may be changed.

        Args:
            fn: the function.
        """
        with self.summon_full_params(self):
            return super().apply(fn)

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Any,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """A block in which parameters are whole.

        Args:
            module: a module with spread ones inside.
            recurse: also those inside of it.
            writeback: keep what the block writes into them; the same on all processes.
            rank0_only: accepted without writeback; all processes have them.
            offload_to_cpu: accepted.
            with_grads: not offered.
        """
        if with_grads or (writeback and rank0_only):
            raise NotImplementedError(
                f"{_NAME}.summon_full_params: with_grads=True, and writeback=True with "
                "rank0_only=True, are not offered"
            )
        inside = FullyShardedDataParallel.fsdp_modules(module) if recurse else [module]
        groups = [m.module._fsdp_group for m in inside if isinstance(m, FullyShardedDataParallel)]
        with clew.no_grad():
            for group in groups:
                group.unshard()
        try:
            yield
        finally:
            for group in groups:
                if writeback and group.whole is not None:
                    _write_back(group)
                group.reshard()

    @staticmethod
    def fsdp_modules(module: Any, root_only: bool = False) -> list[Any]:
        """The spread modules within a module.

        Args:
            module: the module.
            root_only: leave out those that are inside of others.
        """
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {id(m) for one in found for m in one.modules() if m is not one}
        return [m for m in found if id(m) not in inner]

    # ---- state dicts ----

    @staticmethod
    def _usual_settings() -> StateDictSettings:
        return StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )

    @staticmethod
    def get_state_dict_type(module: Any) -> StateDictSettings:
        """What state_dict() holds.

        Args:
            module: a module with spread ones inside.
        """
        for m in FullyShardedDataParallel.fsdp_modules(module):
            settings: StateDictSettings = m._settings
            return settings
        return FullyShardedDataParallel._usual_settings()

    @staticmethod
    def set_state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> StateDictSettings:
        """Says what state_dict() holds.

        Args:
            module: a module with spread ones inside.
            state_dict_type: FULL_STATE_DICT, or SHARDED_STATE_DICT or LOCAL_STATE_DICT: parts.
            state_dict_config, optim_state_dict_config: options of the type.

        Returns:
            what held before.
        """
        before = FullyShardedDataParallel.get_state_dict_type(module)
        usual, usual_optim = _CONFIGS[state_dict_type]
        for given, kind in ((state_dict_config, usual), (optim_state_dict_config, usual_optim)):
            if given is not None and type(given) is not kind:
                raise RuntimeError(
                    f"{_NAME}: {state_dict_type} takes a {kind.__name__}; got "
                    f"{type(given).__name__}"
                )
        settings = StateDictSettings(
            state_dict_type, state_dict_config or usual(), optim_state_dict_config or usual_optim()
        )
        for m in FullyShardedDataParallel.fsdp_modules(module):
            m._settings = settings
        return before

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:
        """A block in which state_dict() holds something else.

        Args:
            module: a module with spread ones inside.
            state_dict_type: as of `set_state_dict_type`.
            state_dict_config, optim_state_dict_config: options of the type.
        """
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for m in FullyShardedDataParallel.fsdp_modules(module):
                m._settings = before

    @staticmethod
    def _after_state_dict(module: Any, state_dict: Any, prefix: str, *args: Any) -> Any:
        kind = module._settings.state_dict_type
        config = module._settings.state_dict_config
        drop = getattr(config, "rank0_only", False) and dist.is_initialized() and dist.get_rank()
        for key in [k for k in state_dict if k.startswith(prefix)]:
            value = state_dict.pop(key)
            if isinstance(value, DTensor) and kind is StateDictType.FULL_STATE_DICT:
                whole: Any = value.detach()
                value = whole.full_tensor()
            elif isinstance(value, DTensor) and kind is StateDictType.LOCAL_STATE_DICT:
                value = part_of(value).detach()
            if not drop:
                own = key[len(prefix) :]
                state_dict[prefix + own.removeprefix(_PREFIX)] = value
        return state_dict

    @staticmethod
    def _before_load(module: Any, state_dict: Any, prefix: str, *args: Any) -> None:
        for key in [k for k in state_dict if k.startswith(prefix)]:
            if not key.startswith(prefix + _PREFIX):
                state_dict[prefix + _PREFIX + key[len(prefix) :]] = state_dict.pop(key)
        for name, p in module._fsdp_wrapped_module.named_parameters():
            key = prefix + _PREFIX + name.replace(_PREFIX, "")
            if key in state_dict:
                state_dict[key] = _as_part(state_dict[key], p)

    @staticmethod
    def optim_state_dict(
        model: Any, optim: Any, optim_state_dict: Any = None, group: Any = None
    ) -> dict[str, Any]:
        """An optimizer's state by the parameters' names, of the type that was set.

        Args:
            model: the model.
            optim: its optimizer.
            optim_state_dict, group: accepted.
        """
        from clew.distributed.checkpoint.state_dict import (
            StateDictOptions,
            get_optimizer_state_dict,
        )

        settings = FullyShardedDataParallel.get_state_dict_type(model)
        full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        state = get_optimizer_state_dict(
            model, optim, options=StateDictOptions(full_state_dict=full)
        )
        only_first = getattr(settings.optim_state_dict_config, "rank0_only", False)
        return {} if full and only_first and dist.is_initialized() and dist.get_rank() else state

    @staticmethod
    def optim_state_dict_to_load(
        model: Any,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """What `optim.load_state_dict` takes of what `optim_state_dict` gave.

        Args:
            model: the model.
            optim: its optimizer.
            optim_state_dict: the state by names; the same on all processes where it is whole.
            is_named_optimizer: not offered.
            load_directly: load it, too.
            group: accepted.
        """
        if is_named_optimizer:
            raise NotImplementedError(f"{_NAME}: optimizers know parameters by number here")
        names = {id(p): name for name, p in model.named_parameters()}
        owners = {n: g for g in optim_state_dict["param_groups"] for n in g["params"]}
        state: dict[int, Any] = {}
        groups: list[dict[str, Any]] = []
        number = 0
        for own in optim.param_groups:
            numbers = []
            for p in own["params"]:
                name = names[id(p)].replace(_PREFIX, "")
                saved = optim_state_dict["state"].get(name)
                if saved is not None:
                    state[number] = {k: _as_part(v, p) for k, v in saved.items()}
                numbers.append(number)
                number += 1
            first = names[id(own["params"][0])].replace(_PREFIX, "") if own["params"] else None
            given = owners.get(first, own)
            groups.append({**{k: v for k, v in given.items() if k != "params"}, "params": numbers})
        made = {"state": state, "param_groups": groups}
        if load_directly:
            optim.load_state_dict(made)
        return made

    @staticmethod
    def full_optim_state_dict(
        model: Any, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """The earlier name of a whole `optim_state_dict`.

        Args:
            model: the model.
            optim: its optimizer.
            optim_input: accepted.
            rank0_only: give it to the first process only.
            group: accepted.
        """
        warnings.warn(
            "FSDP.full_optim_state_dict is deprecated; use state_dict_type and optim_state_dict",
            FutureWarning,
            stacklevel=user_level(),
        )
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        with FullyShardedDataParallel.state_dict_type(
            model, StateDictType.FULL_STATE_DICT, None, config
        ):
            return FullyShardedDataParallel.optim_state_dict(model, optim)


def _as_part(value: Any, p: Any) -> Any:
    """A whole tensor as a parameter's parts lie; anything else as it is."""
    if not isinstance(p, DTensor) or not isinstance(value, clew.Tensor):
        return value
    if isinstance(value, DTensor) or tuple(value.shape) != tuple(p.shape):
        return value
    return distribute_tensor(value.detach(), p._mesh, p._placements, src_data_rank=None)


def _write_back(group: Any) -> None:
    """Puts what was written into whole parameters into the parts."""
    with clew.no_grad():
        for m, whole in zip(group.members, group.whole):
            local = part_of(m.sharded)
            rows = -(-m.sizes[0] // group.across.size())
            start = group.across.rank() * rows
            own = m.rows(whole)[start : start + local.shape[m.dim]]
            local.copy_(m.back(own))
