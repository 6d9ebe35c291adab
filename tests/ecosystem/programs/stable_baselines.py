"""stable-baselines3: PPO, A2C, DQN on CartPole, SAC on Pendulum, saving and loading."""

import tempfile

import torch
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

torch.set_num_threads(1)
small = {"net_arch": [16, 16]}
model = PPO(
    "MlpPolicy",
    make_vec_env("CartPole-v1", n_envs=2, seed=0),
    n_steps=64,
    batch_size=32,
    n_epochs=2,
    seed=0,
    device="cpu",
)
model.learn(total_timesteps=256)
print("ppo", sum(p.abs().sum().item() for p in model.policy.parameters()))
print("ppo_loss", model.logger.name_to_value["train/loss"])
print("reward", *evaluate_policy(model, model.get_env(), n_eval_episodes=3))
with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/ppo")
    again = PPO.load(f"{folder}/ppo", device="cpu")
same = zip(model.policy.parameters(), again.policy.parameters(), strict=True)
print("loaded", int(all(torch.equal(a, b) for a, b in same)))
runs = (
    (A2C, "CartPole-v1", 100, {}),
    (DQN, "CartPole-v1", 160, {"learning_starts": 50, "batch_size": 16}),
    (SAC, "Pendulum-v1", 120, {"learning_starts": 50, "batch_size": 16}),
)
for kind, task, steps, how in runs:
    model = kind("MlpPolicy", task, seed=0, device="cpu", policy_kwargs=small, **how)
    model.learn(total_timesteps=steps)
    print(kind.__name__, sum(p.abs().sum().item() for p in model.policy.parameters()))
