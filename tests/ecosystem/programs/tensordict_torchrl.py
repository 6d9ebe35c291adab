"""tensordict's containers and modules; torchrl's environments, buffers and PPO loss."""

import torch
from tensordict import TensorDict, tensorclass
from tensordict.nn import ProbabilisticTensorDictModule as Draw
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import MLP, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

torch.manual_seed(0)
rows = TensorDict({"a": torch.randn(4, 3), "in": {"b": torch.arange(4)}}, batch_size=[4])
print("rows", *rows["in", "b"].tolist(), rows[1:3]["a"].sum().item())
print("stacked", *torch.stack([rows, rows]).shape, *torch.cat([rows, rows]).shape)
print("reshaped", *rows.reshape(2, 2)["a"].shape, rows.apply(lambda t: t * 2)["a"].sum().item())


@tensorclass
class Pair:
    x: torch.Tensor
    y: torch.Tensor


pair = Pair(torch.ones(3, 2), torch.zeros(3), batch_size=[3])
print("class", *pair[0].x.tolist(), *pair.shape)
first = TensorDictModule(nn.Linear(3, 4), in_keys=["a"], out_keys=["h"])
second = TensorDictModule(nn.Linear(4, 1), in_keys=["h"], out_keys=["out"])
chain = TensorDictSequential(first, second)
loss = chain(rows)["out"].pow(2).mean()
loss.backward()
print("chain", loss.item(), first.module.weight.grad.sum().item())
params = TensorDict.from_module(chain)
with params.apply(lambda p: p * 0).to_module(chain):
    print("functional", chain(rows)["out"].abs().sum().item())
env = GymEnv("Pendulum-v1", device="cpu")
env.set_seed(0)
torch.manual_seed(1)
from tensordict.nn import NormalParamExtractor  # noqa: E402

actor = ProbabilisticActor(
    TensorDictModule(
        nn.Sequential(MLP(3, 2, depth=1, num_cells=16), NormalParamExtractor()),
        in_keys=["observation"],
        out_keys=["loc", "scale"],
    ),
    in_keys=["loc", "scale"],
    spec=env.action_spec,
    distribution_class=TanhNormal,
    return_log_prob=True,
)
critic = ValueOperator(MLP(3, 1, depth=1, num_cells=16), in_keys=["observation"])
with torch.no_grad():
    data = env.rollout(20, actor)
print("rollout", data["next", "reward"].sum().item())
GAE(gamma=0.99, lmbda=0.95, value_network=critic)(data)
objective = ClipPPOLoss(actor, critic)
found = objective(data)
total = found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]
total.backward()
print("ppo", found["loss_objective"].item(), found["loss_critic"].item())
buffer = ReplayBuffer(storage=LazyTensorStorage(50), batch_size=8)
buffer.extend(data)
print("buffer", len(buffer), *buffer.sample()["observation"].shape)
