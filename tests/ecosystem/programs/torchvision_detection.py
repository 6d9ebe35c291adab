"""A detector of torchvision on random weights: losses of training, boxes of evaluation."""

import torch
import torchvision

torch.manual_seed(0)
model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
    weights=None, weights_backbone=None, num_classes=3, min_size=64, max_size=64
)
target = {"boxes": torch.tensor([[4.0, 4.0, 30.0, 40.0]]), "labels": torch.tensor([1])}
losses = model([torch.rand(3, 64, 64)], [target])
sum(losses.values()).backward()
print("losses", *[int(v.isfinite()) for v in losses.values()])
found = model.eval()([torch.rand(3, 64, 64)])[0]
print("keys", *sorted(map(len, found)))
