"""e3nn: spherical harmonics, tensor products, equivariance of a layer."""

import torch
from e3nn import o3
from e3nn.nn import FullyConnectedNet, Gate

torch.manual_seed(0)
points = torch.randn(5, 3)
sh = o3.spherical_harmonics([0, 1, 2], points, normalize=True, normalization="component")
print("harmonics", *sh[0].tolist())
irreps = o3.Irreps("4x0e + 2x1o")
product = o3.FullyConnectedTensorProduct(irreps, "0e + 1o + 2e", "3x0e + 2x1o")
x = irreps.randn(5, -1)
out = product(x, sh)
out.pow(2).mean().backward()
print("product", out.sum().item(), product.weight.grad.abs().sum().item())
turn = o3.rand_matrix()
before = product(
    x @ irreps.D_from_matrix(turn).T,
    o3.spherical_harmonics([0, 1, 2], points @ turn.T, True, "component"),
)
after = out @ product.irreps_out.D_from_matrix(turn).T
print("equivariant", int(torch.allclose(before, after, atol=1e-4)))
print("wigner", *o3.wigner_3j(1, 1, 2).flatten()[:9].tolist())
linear = o3.Linear(irreps, "2x0e + 1x1o")
print("linear", linear(x).sum().item())
gate = Gate("3x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
print("gate", gate(gate.irreps_in.randn(5, -1)).sum().item())
net = FullyConnectedNet([3, 8, 2], torch.relu)
print("net", net(points).sum().item())
