"""torch.func, linalg and fft: per-sample gradients, Newton's method, an ensemble, a filter."""

import torch
import torch.nn as nn
from torch.func import functional_call, grad, hessian, jacrev, stack_module_state, vmap


def per_sample_gradients():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))

    def loss(parameters, x, y):
        scores = functional_call(model, parameters, (x.unsqueeze(0),))
        return nn.functional.cross_entropy(scores, y.unsqueeze(0))

    each = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    nn.functional.cross_entropy(model(x), y).backward()
    for name, p in model.named_parameters():
        assert torch.allclose(each[name].mean(0), p.grad, atol=1e-6), name
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
    print(f"norms of the gradients of 16 samples: {norms.min():.2f} to {norms.max():.2f}")


def newton():
    A = torch.randn(5, 5, dtype=torch.float64)
    A = A @ A.mT + torch.eye(5, dtype=torch.float64)
    b = torch.randn(5, dtype=torch.float64)

    def f(x):
        return 0.5 * x @ A @ x - b @ x + (x**4).sum() / 10

    x = torch.zeros(5, dtype=torch.float64)
    for _ in range(12):
        x = x - torch.linalg.solve(hessian(f)(x), grad(f)(x))
    print(f"Newton's method: |gradient| = {jacrev(f)(x).norm():.1e}")
    assert jacrev(f)(x).norm() < 1e-10


def ensemble():
    models = [nn.Linear(3, 1) for _ in range(10)]
    parameters, buffers = stack_module_state(models)
    x = torch.randn(7, 3)
    together = vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    assert torch.allclose(together, torch.stack([m(x) for m in models]), atol=1e-6)
    print(f"ten models at once: {tuple(together.shape)}")


def low_pass():
    t = torch.linspace(0, 1, 257)[:-1]
    slow = torch.sin(2 * torch.pi * 3 * t)
    noisy = slow + 0.5 * torch.sin(2 * torch.pi * 60 * t)
    spectrum = torch.fft.rfft(noisy)
    spectrum[20:] = 0
    assert torch.allclose(torch.fft.irfft(spectrum, n=256), slow, atol=1e-4)
    print("a low-pass filter gives the slow wave back")


if __name__ == "__main__":
    torch.manual_seed(0)
    per_sample_gradients()
    newton()
    ensemble()
    low_pass()
