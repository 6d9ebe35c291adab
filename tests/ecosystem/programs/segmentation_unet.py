"""segmentation_models_pytorch: networks, losses, metrics."""

import segmentation_models_pytorch as smp
import torch

for kind in (smp.Unet, smp.FPN, smp.DeepLabV3Plus, smp.Linknet):
    torch.manual_seed(0)
    model = kind("resnet18", encoder_weights=None, in_channels=3, classes=2).eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    score = smp.losses.DiceLoss("multiclass")
    x, y = torch.randn(2, 3, 64, 64), torch.randint(0, 2, (2, 64, 64))
    losses = []
    for _ in range(2):
        loss = score(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(kind.__name__, *losses)
scores = torch.rand(2, 2, 8, 8)
target = torch.randint(0, 2, (2, 2, 8, 8))
counts = smp.metrics.get_stats(scores, target, mode="multilabel", threshold=0.5)
print("iou", smp.metrics.iou_score(*counts, reduction="micro").item())
print("f1", smp.metrics.f1_score(*counts, reduction="macro").item())
for name in ("FocalLoss", "JaccardLoss", "TverskyLoss", "LovaszLoss"):
    print(name, getattr(smp.losses, name)("multilabel")(scores, target).item())
