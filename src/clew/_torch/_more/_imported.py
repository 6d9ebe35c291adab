"""Names that PyTorch's modules import from one another: programs take them from there, too."""

from __future__ import annotations

import importlib
from typing import Any

_OVERRIDES = (
    "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic"
)
_STEPS = "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd"
# What a module of torch has of others, by what it is called there.
_IMPORTED = {
    "autograd": f"{_OVERRIDES} is_tensor_like",
    "autograd.functional": "Tensor",
    "autograd.graph": "RemovableHandle Variable",
    "distributions.kl": (
        "Bernoulli Beta Binomial Categorical Cauchy ContinuousBernoulli Dirichlet Distribution "
        "Exponential ExponentialFamily Gamma Geometric Gumbel HalfNormal Independent Laplace "
        "LowRankMultivariateNormal MultivariateNormal Normal OneHotCategorical Pareto Poisson "
        "Tensor TransformedDistribution Uniform inf"
    ),
    "distributions.transforms": (
        "Distribution F broadcast_all constraints lazy_property pad softplus tril_matrix_to_vec "
        "vec_to_tril_matrix"
    ),
    "distributions.utils": "F is_tensor_like",
    "fft": "Tensor",
    "functional": f"F Tensor {_OVERRIDES}",
    "nested": "F Tensor",
    "nn.functional": _OVERRIDES,
    "nn.init": "Tensor",
    "nn.parameter": "Tensor",
    "nn.utils.parametrizations": "Module Tensor",
    "nn.utils.parametrize": "Module Tensor deepcopy",
    "nn.utils.rnn": "Tensor",
    "nn.utils.stateless": "Tensor",
    "optim.lr_scheduler": "Optimizer Tensor inf",
    **{f"optim.{name}": name for name in _STEPS.split()},
    "special": "Tensor",
    "utils.data.dataloader": "Dataset IterableDataset dist",
    "utils.data.dataset": "default_generator randperm",
    "utils.data.distributed": "Dataset Sampler dist",
}
_MODULES = {
    "F": "clew.nn.functional",
    "constraints": "clew.distributions.constraints",
    "dist": "clew.distributed",
}
_HOMES = {
    name: home
    for home, names in {
        "clew.autograd": "Variable",
        "clew.distributions": "Distribution",
        "clew.distributions.utils": (
            "broadcast_all lazy_property tril_matrix_to_vec vec_to_tril_matrix"
        ),
        "clew.nn": "Module",
        "clew.nn.functional": "pad softplus",
        "clew.optim": "Optimizer",
        "clew.overrides": "handle_torch_function has_torch_function is_tensor_like",
        "clew.utils.data": "Dataset IterableDataset Sampler",
        "clew.utils.hooks": "RemovableHandle",
        "clew._torch._more.overrides": "has_torch_function_unary has_torch_function_variadic",
        "clew._torch.optim._functional": _STEPS,
        "copy": "deepcopy",
    }.items()
    for name in names.split()
}


def find_imported(module: str, name: str) -> Any:
    """The object that a module of torch has by importing it.

    Raises:
        AttributeError: it has none of that name.
    """
    if name not in _IMPORTED.get(module, "").split():
        raise AttributeError(name)
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    home = _HOMES.get(name, "clew")
    if module == "distributions.kl" and name not in ("Tensor", "inf"):
        home = "clew.distributions"
    return getattr(importlib.import_module(home), name)
