"""Names of leaves whose module is gone."""

import gc

import clew
from clew import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
        self.head = nn.Linear(8, 2)
        self.norm = nn.LayerNorm(2)
        self.scale = nn.Parameter(clew.ones(2))

    def forward(self, x):
        return self.norm(self.head(self.body(x).flatten(1))) * self.scale


def test_parameters_keep_their_names_when_the_module_is_gone():
    x = clew.randn(3, 1, 4, 4, requires_grad=True)
    net = Net()
    wanted = {name: tuple(p.shape) for name, p in net.named_parameters() if name != "scale"}
    y = net(x)
    del net
    gc.collect()
    g = clew.graph(y)
    assert {name: node.outputs[0][0] for name, node in g.parameters.items()} == wanted
    # No layer of ours says what the others are.
    assert [node.outputs[0][0] for node in g.inputs] == [(3, 1, 4, 4), (2,)]


def test_equal_names_of_two_modules_that_are_gone_differ():
    y = nn.Linear(2, 3)(clew.ones(1, 2)).sum() + nn.Linear(2, 4)(clew.ones(1, 2)).sum()
    gc.collect()
    shapes = {name: node.outputs[0][0] for name, node in clew.graph(y).parameters.items()}
    assert shapes == {
        "weight": (3, 2),
        "bias": (3,),
        "Linear.weight": (4, 2),
        "Linear.bias": (4,),
    }
    assert clew.graph(y, params={}).parameters == {}


def test_models_of_other_graphs_take_no_names():
    others = [nn.Linear(2, n) for n in (3, 4, 5)]
    for other in others:
        other(clew.ones(1, 2))
    y = nn.Linear(2, 3)(clew.ones(1, 2)).sum()
    gc.collect()
    assert set(clew.graph(y).parameters) == {"weight", "bias"}
