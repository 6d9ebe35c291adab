"""einops: rearrange, reduce, repeat, einsum, pack, layers in a network, EinMix."""

import torch
from einops import einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce

torch.manual_seed(0)
x = torch.randn(2, 6, 8, 8, requires_grad=True)
print("rearrange", *rearrange(x, "b (c k) h w -> b k h (c w)", k=2).sum((0, 2, 3)).tolist())
print("mean", *reduce(x, "b c (h 2) (w 2) -> c", "mean").tolist())
print("max", *reduce(x, "b c h w -> b c", "max").flatten().tolist())
print("repeat", repeat(x, "b c h w -> b (2 c) h w").sum().item())
print("einsum", einsum(x, x, "b c h w, b d h w -> b c d").sum().item())
packed, shapes = pack([x[:, 0], x[:, :2]], "b * w")
print("pack", *packed.shape, *[p.sum().item() for p in unpack(packed, shapes, "b * w")])
print("shape", *parse_shape(x, "b c _ w").values())
net = torch.nn.Sequential(
    torch.nn.Conv2d(6, 8, 3),
    Reduce("b c (h 2) (w 2) -> b c h w", "max"),
    Rearrange("b c h w -> b (c h w)"),
    torch.nn.Linear(72, 4),
    EinMix("b i -> b o", weight_shape="i o", bias_shape="o", i=4, o=3),
)
loss = net(x).pow(2).mean()
loss.backward()
print(
    "net",
    loss.item(),
    x.grad.abs().sum().item(),
    *(p.grad.sum().item() for p in net[4].parameters()),
)
