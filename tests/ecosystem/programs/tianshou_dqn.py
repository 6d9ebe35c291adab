"""tianshou: DQN on CartPole with its collectors and a replay buffer."""

import gymnasium
import numpy
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net

torch.manual_seed(0)
numpy.random.seed(0)
env = gymnasium.make("CartPole-v1")
train = DummyVectorEnv([lambda: gymnasium.make("CartPole-v1") for _ in range(2)])
train.seed(0)
net = Net(
    state_shape=env.observation_space.shape,
    action_shape=env.action_space.n,
    hidden_sizes=[16, 16],
)
policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.1)
algorithm = DQN(
    policy=policy,
    optim=AdamOptimizerFactory(lr=1e-3),
    gamma=0.9,
    n_step_return_horizon=3,
    target_update_freq=5,
)
collector = Collector[CollectStats](algorithm, train, VectorReplayBuffer(200, 2))
collector.reset()
collector.collect(n_step=100, random=True)
losses = []
with torch.no_grad():
    pass
from tianshou.utils.torch_utils import policy_within_training_step  # noqa: E402

for _ in range(4):
    with policy_within_training_step(policy):
        collector.collect(n_step=10)
        stats = algorithm.update(collector.buffer, sample_size=16)
    losses.append(stats.loss)
print("losses", *losses)
