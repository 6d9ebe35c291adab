"""Models, transforms of both kinds, and a detector of torchvision on random weights."""

import torch
import torchvision
from torchvision.transforms import v2

for name in ("resnet18", "mobilenet_v3_small", "squeezenet1_1", "vit_b_16"):
    torch.manual_seed(0)
    kind = {"image_size": 32} if name.startswith("vit") else {}
    model = torchvision.models.get_model(name, weights=None, num_classes=4, **kind).eval()
    with torch.no_grad():  # else some results are 0, or so small that they could be
        for p in model.parameters():
            if p.dim() > 1:
                size = (4 / p[0].numel()) ** 0.5
                p.uniform_(-size, size)
    out = model(torch.randn(2, 3, 32 if kind else 64, 32 if kind else 64))
    loss = (out / out.detach().abs().max()).pow(2).mean()
    loss.backward()
    print(name, loss.item(), sum(p.grad.abs().sum().item() for p in model.parameters()))
torch.manual_seed(0)
image = torch.rand(3, 40, 40)
old = torchvision.transforms.Compose(
    [
        torchvision.transforms.RandomResizedCrop(24),
        torchvision.transforms.RandomHorizontalFlip(),
        torchvision.transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
        torchvision.transforms.Normalize([0.5] * 3, [0.2] * 3),
    ]
)
print("v1", *old(image).mean((1, 2)).tolist())
new = v2.Compose(
    [
        v2.RandomResizedCrop(24, antialias=True),
        v2.RandomRotation(20),
        v2.GaussianBlur(3),
        v2.RandomErasing(p=1.0),
    ]
)
print("v2", *new(image).mean((1, 2)).tolist())
boxes = torchvision.tv_tensors.BoundingBoxes(
    torch.tensor([[2, 3, 20, 30]]), format="XYXY", canvas_size=(40, 40)
)
turned = v2.RandomHorizontalFlip(p=1.0)({"image": image, "boxes": boxes})
print("boxes", *turned["boxes"].flatten().tolist())
print("grid", *torchvision.utils.make_grid(torch.rand(4, 3, 8, 8), 2).shape)
