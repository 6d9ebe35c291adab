"""Run by ranks: FullyShardedDataParallel, against one process."""

import copy
import functools

import torch
import torch.distributed as dist
from blocks import Block, batch
from blocks import net as blocks_net
from torch import nn
from torch.distributed.fsdp import (
    FullStateDictConfig,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    enable_wrap,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)
from torch.distributed.tensor import DTensor

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()


net = functools.partial(blocks_net, depth=2)


def equal(got, wanted, tolerance=1e-10):
    assert got.keys() == wanted.keys(), (list(got), list(wanted))
    for key in wanted:
        assert got[key].shape == wanted[key].shape, key
        assert torch.allclose(got[key], wanted[key], atol=tolerance, rtol=tolerance), key


blocks = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
large = functools.partial(size_based_auto_wrap_policy, min_num_params=300)
CASES = [
    {},
    {"auto_wrap_policy": blocks, "use_orig_params": True},
    {"auto_wrap_policy": ModuleWrapPolicy({Block, nn.Linear})},
    {"auto_wrap_policy": large, "sharding_strategy": ShardingStrategy.SHARD_GRAD_OP},
    {"auto_wrap_policy": blocks, "sharding_strategy": ShardingStrategy.NO_SHARD},
    {"sharding_strategy": ShardingStrategy.HYBRID_SHARD},
    {"auto_wrap_policy": blocks, "process_group": dist.group.WORLD},
]
for options in CASES:
    plain, ours = net(), FSDP(net(), **options)
    opts = [torch.optim.AdamW(m.parameters(), 0.01) for m in (plain, ours)]
    for step in range(3):
        whole, part = batch(step)
        losses = [(plain(whole) ** 2).mean(), (ours(part) ** 2).mean()]
        [o.zero_grad() for o in opts]
        [loss.backward() for loss in losses]
        norms = [nn.utils.clip_grad_norm_(plain.parameters(), 0.1), ours.clip_grad_norm_(0.1)]
        assert torch.allclose(*norms), norms
        [o.step() for o in opts]
    equal(ours.state_dict(), plain.state_dict())
    assert [k for k, _ in ours.named_parameters()] == [k for k, _ in plain.named_parameters()]

# How parameters lie, and which modules are spread by themselves.
ours = FSDP(net(), auto_wrap_policy=blocks)
assert [type(m.module).__name__ for m in FSDP.fsdp_modules(ours)] == [
    "FSDPSequential",
    "FSDPBlock",
    "FSDPBlock",
]
assert FSDP.fsdp_modules(ours, root_only=True) == [ours] and isinstance(ours[1], FSDP)
assert all(isinstance(p, DTensor) for p in ours.parameters())
assert sum(p.to_local().numel() for p in ours.parameters()) < sum(
    p.numel() for p in net().parameters()
)
custom = FSDP(net(), auto_wrap_policy=CustomPolicy(lambda m: isinstance(m, nn.LayerNorm)))
assert [type(m.module).__name__ for m in FSDP.fsdp_modules(custom)][1:] == ["FSDPLayerNorm"] * 2
with enable_wrap(wrapper_cls=FSDP):
    inner = wrap(nn.Linear(4, 2))
assert isinstance(inner, FSDP) and isinstance(wrap(nn.Linear(1, 1)), nn.Linear)

# State dicts: whole ones go to one process and back, parts stay parts.
whole = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
with FSDP.state_dict_type(ours, StateDictType.FULL_STATE_DICT, whole):
    saved = ours.state_dict()
assert (saved == {}) is (r != 0)
with FSDP.state_dict_type(ours, StateDictType.SHARDED_STATE_DICT):
    parts = copy.deepcopy(ours.state_dict())
assert all(isinstance(v, DTensor) for v in parts.values()) and list(parts) == list(
    net().state_dict()
)
changed = {k: torch.full_like(v, i) for i, (k, v) in enumerate(net().state_dict().items())}
told = ours.load_state_dict(changed)
assert not told.missing_keys and not told.unexpected_keys
equal(ours.state_dict(), changed)
ours.load_state_dict(parts)
equal(ours.state_dict(), net().state_dict())

# The optimizer's state, whole, into another model cut otherwise.
optimizer = torch.optim.AdamW(ours.parameters(), 0.01)
(ours(batch(0)[1]) ** 2).mean().backward()
optimizer.step()
state = FSDP.optim_state_dict(ours, optimizer)
assert state["state"]["1.up.weight"]["exp_avg"].shape == (30, 10)
other = FSDP(net(), sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)
other.load_state_dict(ours.state_dict())
second = torch.optim.AdamW(other.parameters(), 0.5)
second.load_state_dict(FSDP.optim_state_dict_to_load(other, second, copy.deepcopy(state)))
assert second.param_groups[0]["lr"] == 0.01
for model, opt in ((ours, optimizer), (other, second)):
    opt.zero_grad()
    (model(batch(1)[1]) ** 2).mean().backward()
    opt.step()
equal(other.state_dict(), ours.state_dict())

# Gradients added up over two backward passes, sent once.
plain, ours = net(), FSDP(net(), auto_wrap_policy=blocks)
for step in range(2):
    whole, part = batch(step)
    (plain(whole) ** 2).mean().backward()
    if step == 0:
        with ours.no_sync():
            (ours(part) ** 2).mean().backward()
    else:
        (ours(part) ** 2).mean().backward()
for p, q in zip(plain.parameters(), ours.parameters()):
    assert torch.allclose(p.grad, q.grad.full_tensor(), atol=1e-10)

# Whole parameters, read and written.
with FSDP.summon_full_params(ours):
    assert ours[1].up.weight.shape == (30, 10) and not isinstance(ours[1].up.weight, DTensor)
    with torch.no_grad():
        ours[1].up.weight.fill_(2.0)
        ours[0].bias.fill_(3.0)
assert isinstance(ours[1].up.weight, DTensor)
state = ours.state_dict()
assert (state["1.up.weight"] == 2).all() and (state["0.bias"] == 3).all()
with FSDP.summon_full_params(ours, writeback=False), torch.no_grad():
    ours[0].bias.fill_(4.0)
assert (ours.state_dict()["0.bias"] == 3).all()
ours.apply(lambda m: nn.init.zeros_(m.bias) if isinstance(m, nn.Linear) else None)
assert (ours.state_dict()["1.down.bias"] == 0).all()

# The first process's values; dtypes; modules left alone; a model without data.
torch.manual_seed(r)
ours = FSDP(nn.Linear(4, 3), sync_module_states=True)
torch.manual_seed(0)
equal(ours.state_dict(), nn.Linear(4, 3).state_dict(), 0)
low = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
ours = FSDP(nn.Linear(4, 3), mixed_precision=low)
out = ours(torch.ones(2, 4))
assert out.dtype is torch.bfloat16
out.sum().backward()
assert ours.weight.grad.dtype is torch.float32
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
ours = FSDP(model, ignored_modules=[model[1]])
assert isinstance(ours[0].weight, DTensor) and not isinstance(ours[1].weight, DTensor)
with torch.device("meta"):
    empty = nn.Linear(4, 3)
assert not FSDP(empty).weight.to_local().is_meta

# A gradient that is not finite on one process leaves the step out on all.
ours = FSDP(nn.Linear(4, 4))
before = copy.deepcopy(ours.state_dict())
optimizer, scaler = torch.optim.SGD(ours.parameters(), 1.0), ShardedGradScaler("cpu", 8.0)
scaler.scale(ours(torch.ones(1, 4)).sum()).backward()
if r == 0:
    ours.weight.grad.to_local()[0, 0] = torch.inf
scaler.step(optimizer)
scaler.update()
equal(ours.state_dict(), before, 0)
assert scaler.get_scale() == 4.0
optimizer.zero_grad()
scaler.scale(ours(torch.ones(1, 4)).sum()).backward()
scaler.step(optimizer)
assert torch.allclose(ours.state_dict()["bias"], before["bias"] - 1)

for call, error in (
    (lambda: ours.register_comm_hook(None, None), NotImplementedError),
    (lambda: FSDP(nn.Linear(1, 1), process_group=(1, 2)), NotImplementedError),
    (lambda: FSDP.set_state_dict_type(
        ours, StateDictType.SHARDED_STATE_DICT, FullStateDictConfig()), RuntimeError),
):  # fmt: skip
    try:
        call()
    except error as e:
        assert "FullyShardedDataParallel" in str(e)
    else:
        raise AssertionError(f"{error} was not raised")
dist.barrier()
print(f"rank {r} is through")
