"""sbi: a posterior from simulations."""

import torch
from sbi.inference import NPE
from sbi.utils import BoxUniform

torch.manual_seed(0)
prior = BoxUniform(low=-2 * torch.ones(2), high=2 * torch.ones(2))
theta = prior.sample((100,))
seen = theta + 0.3 * torch.randn(100, 2)
inference = NPE(prior, density_estimator="maf", show_progress_bars=False)
inference.append_simulations(theta, seen)
inference.train(training_batch_size=50, max_num_epochs=3)
print("losses", *inference.summary["training_loss"])
posterior = inference.build_posterior()
drawn = posterior.sample((50,), x=torch.tensor([0.5, -0.5]), show_progress_bars=False)
print("drawn", *drawn.mean(0).tolist(), *drawn.std(0).tolist())
print("density", *posterior.log_prob(drawn[:3], x=torch.tensor([0.5, -0.5])).tolist())
