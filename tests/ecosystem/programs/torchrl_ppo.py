"""torchrl and tensordict: proximal policy optimization on a pendulum."""

import torch
from tensordict.nn import TensorDictModule
from tensordict.nn.distributions import NormalParamExtractor
from torch import nn
from torchrl.collectors import Collector
from torchrl.data.replay_buffers import ReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.data.replay_buffers.storages import LazyTensorStorage
from torchrl.envs import Compose, DoubleToFloat, GymEnv, StepCounter, TransformedEnv
from torchrl.modules import ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

torch.manual_seed(0)
env = TransformedEnv(GymEnv("Pendulum-v1"), Compose(DoubleToFloat(), StepCounter()))
env.set_seed(0)
actor = nn.Sequential(nn.LazyLinear(16), nn.Tanh(), nn.LazyLinear(2), NormalParamExtractor())
policy = ProbabilisticActor(
    TensorDictModule(actor, in_keys=["observation"], out_keys=["loc", "scale"]),
    spec=env.action_spec,
    in_keys=["loc", "scale"],
    distribution_class=TanhNormal,
    distribution_kwargs={"low": env.action_spec.space.low, "high": env.action_spec.space.high},
    return_log_prob=True,
)
value = ValueOperator(
    nn.Sequential(nn.LazyLinear(16), nn.Tanh(), nn.LazyLinear(1)), in_keys=["observation"]
)
policy(env.reset())
value(env.reset())
collector = Collector(env, policy, frames_per_batch=32, total_frames=64, device="cpu")
memory = ReplayBuffer(storage=LazyTensorStorage(32), sampler=SamplerWithoutReplacement())
advantage = GAE(gamma=0.99, lmbda=0.95, value_network=value, average_gae=True)
loss_module = ClipPPOLoss(policy, value, clip_epsilon=0.2, entropy_coeff=1e-4)
optimizer = torch.optim.Adam(loss_module.parameters(), 3e-4)
losses, rewards = [], []
for data in collector:
    advantage(data)
    memory.extend(data.reshape(-1))
    for _ in range(2):
        found = loss_module(memory.sample(16))
        loss = found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(loss_module.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    rewards.append(data["next", "reward"].mean().item())
print("losses", *losses)
print("rewards", *rewards)
