"""Gradients for each sample by one backward, as `torch.nn.utils._per_sample_grad` gives them."""

import numpy as np
import pytest

import clew
from clew import nn
from clew._torch.nn.utils._per_sample_grad import call_for_per_sample_grads as per_sample


def image_net():
    clew.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten(), nn.Linear(16, 3)
    ).double()


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_each_sample_has_the_gradient_of_its_own_loss(reduction):
    net = image_net()
    net[4].bias.requires_grad_(False)
    x = clew.randn(3, 2, 4, 4, dtype=clew.float64, requires_grad=True)
    losses = per_sample(net, loss_reduction=reduction)(x).square().sum(1)
    losses.sum().backward() if reduction == "sum" else losses.mean().backward()
    got = {key: p.grad_sample for key, p in net.named_parameters() if p.requires_grad}
    assert all(p.grad is None for p in net.parameters()) and not hasattr(net[4].bias, "grad_sample")
    for i in range(3):
        net.zero_grad()
        net(x[i : i + 1].detach()).square().sum().backward()
        for key, p in net.named_parameters():
            if p.requires_grad:
                np.testing.assert_allclose(got[key][i].numpy(), p.grad.numpy(), atol=1e-12)
    own = x.grad
    x.grad = None
    losses = net(x).square().sum(1)
    losses.sum().backward() if reduction == "sum" else losses.mean().backward()
    np.testing.assert_allclose(own.numpy(), x.grad.numpy(), atol=1e-12)


def test_keywords_shared_arguments_and_samples_along_the_second_dim():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(clew.ones(2))

        def forward(self, x, *, by, flag):
            assert flag == "on" and x.shape[1] == 1  # a batch of one
            return x * self.w * by

    net = Scaled()
    x = clew.arange(12.0).reshape(2, 3, 2)
    call = per_sample(net, batch_size=3, batch_first=False)
    out = call(x, by=clew.tensor([2.0, 10.0]), flag="on")
    assert out.shape == (2, 3, 2)
    out.sum().backward()
    assert net.w.grad_sample.tolist() == [[12, 80], [20, 120], [28, 160]]
    call(x, by=clew.tensor([1.0, 1.0]), flag="on").sum().backward()  # adds up
    assert net.w.grad_sample[0].tolist() == [18, 88]


def test_what_is_refused():
    net = nn.Bilinear(2, 2, 1)
    with pytest.raises(RuntimeError, match="batch size 4 and one with 3"):
        per_sample(net)(clew.ones(4, 2), clew.ones(3, 2))
    with pytest.raises(RuntimeError, match="unable to find a tensor"):
        per_sample(net)(1, 2)
    for options, message in (
        ({"loss_reduction": "max"}, "'sum' or 'mean'; got 'max'"),
        ({"batch_size": 0}, "must be positive"),
        ({"batch_size": 2.0}, "must be an int"),
    ):
        with pytest.raises(RuntimeError, match=message):
            per_sample(net, **options)
    with pytest.raises(RuntimeError, match="must be a Module"):
        per_sample(lambda x: x)
    net.weight.grad_sample = clew.ones(1)
    with pytest.raises(RuntimeError, match=r"weight\.grad_sample"):
        per_sample(net)
