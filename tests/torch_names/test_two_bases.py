"""Classes of programs that have one of clew's as their first base: the second is begun, too."""

import pytest

import clew
from clew import fx, nn
from clew.distributions import transforms
from clew.utils import data


class Second:
    begun = False

    def __init__(self):
        self.begun = True


@pytest.mark.parametrize(
    "first, args",
    [
        (transforms.Transform, ()),
        (transforms.AffineTransform, (0.0, 1.0)),
        (transforms.ComposeTransform, ([],)),
        (transforms.IndependentTransform, (transforms.ExpTransform(), 1)),
        (transforms.ReshapeTransform, ((2,), (1, 2))),
        (transforms.StackTransform, ([transforms.ExpTransform()],)),
        (clew.distributions.Normal, (0.0, 1.0)),
        (data.Sampler, ()),
        (data.ConcatDataset, ([[1]],)),
        (fx.Tracer, ()),
    ],
)
def test_the_second_base_is_begun(first, args):
    assert type("Both", (first, Second), {})(*args).begun


def test_a_transform_that_is_a_module():
    class Scale(transforms.Transform, nn.Module):
        domain = codomain = clew.distributions.constraints.real
        bijective = True
        __hash__ = nn.Module.__hash__

        def __init__(self):
            super().__init__(cache_size=1)
            self.log = nn.Parameter(clew.tensor(1.0))

        def _call(self, x):
            return x * self.log.exp()

        def _inverse(self, y):
            return y / self.log.exp()

        def log_abs_det_jacobian(self, x, y):
            return self.log.expand_as(x)

    scale = Scale()
    base = clew.distributions.Normal(0.0, 1.0)
    flow = clew.distributions.TransformedDistribution(base, [scale])
    flow.log_prob(clew.tensor(0.0)).backward()
    assert scale.log.grad.item() == -1.0
    assert [name for name, _ in scale.named_parameters()] == ["log"]
