"""deepxde: the Poisson equation in one dimension by a network."""

import os

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde
import numpy
import torch

deepxde.config.set_random_seed(0)


def equation(x, y):
    return -deepxde.grad.hessian(y, x) - numpy.pi**2 * torch.sin(numpy.pi * x)


place = deepxde.geometry.Interval(-1, 1)
edge = deepxde.icbc.DirichletBC(place, lambda x: 0, lambda _, on: on)
data = deepxde.data.PDE(
    place, equation, edge, 16, 2, solution=lambda x: numpy.sin(numpy.pi * x), num_test=50
)
net = deepxde.nn.FNN([1] + [20] * 2 + [1], "tanh", "Glorot uniform")
model = deepxde.Model(data, net)
model.compile("adam", lr=0.001, metrics=["l2 relative error"], verbose=0)
history, _ = model.train(iterations=20, display_every=10, verbose=0)
for at, loss in zip(history.steps, history.loss_train):
    print(f"step{at}", *loss)
print("guess", *model.predict(numpy.array([[0.0], [0.5]])).flatten())
