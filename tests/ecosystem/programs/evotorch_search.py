"""evotorch: SNES, CMA-ES and PGPE on vectorized problems."""

import torch
from evotorch import Problem
from evotorch.algorithms import CMAES, PGPE, SNES


def rastrigin(x):
    return 10 * x.shape[-1] + (x**2 - 10 * torch.cos(2 * torch.pi * x)).sum(-1)


def search(kind, **how):
    problem = Problem(
        "min",
        rastrigin,
        initial_bounds=(-5.12, 5.12),
        solution_length=6,
        vectorized=True,
        seed=0,
    )
    searcher = kind(problem, popsize=20, **how)
    searcher.run(5)
    print(kind.__name__, searcher.status["mean_eval"], searcher.status["best_eval"])


search(SNES, stdev_init=5.0)
search(CMAES, stdev_init=1.0)
search(PGPE, stdev_init=1.0, center_learning_rate=0.1, stdev_learning_rate=0.1)
