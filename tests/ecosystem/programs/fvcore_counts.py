"""fvcore: operations and activations of a convolutional network and of attention, by kind."""

import torch
from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        y = self.norm(x)
        return x + self.attention(y, y, y)[0]


images = nn.Sequential(
    nn.Conv2d(3, 8, 3, stride=2, padding=1, groups=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.Conv2d(8, 8, 3, groups=4),
    nn.Upsample(scale_factor=2, mode="bilinear"),
    nn.ConvTranspose2d(8, 4, 2, stride=2),
    nn.GroupNorm(2, 4),
    nn.MaxPool2d(2),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(16, 5),
)
for name, model, x in (
    ("images", images, torch.randn(2, 3, 16, 16)),
    ("attention", Attention(), torch.randn(2, 7, 8)),
):
    model.eval()
    flops = FlopCountAnalysis(model, x)
    print(name, flops.total(), ActivationCountAnalysis(model, x).total())
    for kind, count in sorted(flops.by_operator().items()):
        print(f"{name}-{kind}", count)
    modules = [count for part, count in sorted(flops.by_module().items()) if part.count(".") == 0]
    print(f"{name}-modules", *modules)
