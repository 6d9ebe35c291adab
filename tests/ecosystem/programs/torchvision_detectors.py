"""Detectors, a segmenter and optical flow of torchvision on drawn weights."""

import torch
from torchvision.models import detection, optical_flow, segmentation


def drawn(model):
    """Weights of a size that keeps what passes through them, so that no number is 0."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                size = (4 / p[0].numel()) ** 0.5 * (0.05 if "cls_" in name else 1.0)
                p.uniform_(-size, size)
            else:
                middle = 1.0 if name.endswith("weight") else 0.0
                p.uniform_(middle - 0.1, middle + 0.1)
    return model.double()


def show(name, model, *args):
    out = model(*args)
    leaves = out.values() if isinstance(out, dict) else out
    total = sum(v.square().mean() for v in leaves)
    total.backward()
    grads = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    print(name, *(v.mean().item() for v in leaves), grads)


sizes = {"min_size": 96, "max_size": 128, "num_classes": 4, "weights_backbone": None}
torch.manual_seed(1)
images = [torch.rand(3, 96, 120).double(), torch.rand(3, 110, 90).double()]
boxes = torch.tensor([[5.0, 8, 60, 70], [30, 20, 80, 88], [2, 2, 30, 25]]).double()
masks = torch.zeros(3, 96, 120, dtype=torch.uint8)
masks[:, 20:60, 10:50] = 1
points = torch.rand(3, 17, 3) * 50 + 8
points[..., 2] = 1
found = {"boxes": boxes, "labels": torch.tensor([1, 2, 3]), "masks": masks, "keypoints": points}
targets = [found, {**found, "masks": masks[:, :90, :90].repeat(1, 2, 1)[:, :110]}]
kinds = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": {"box_score_thresh": 0.01},
    "maskrcnn_resnet50_fpn": {"box_score_thresh": 0.01, "box_detections_per_img": 5},
    "keypointrcnn_resnet50_fpn": {"box_score_thresh": 0.01, "box_detections_per_img": 5},
    "retinanet_resnet50_fpn": {"score_thresh": 0.01, "detections_per_img": 20},
}
for name, options in kinds.items():
    model = drawn(getattr(detection, name)(weights=None, **sizes, **options))
    torch.manual_seed(2)
    show(name, model.train(), images, targets)
    with torch.no_grad():
        for i, got in enumerate(model.eval()(images)):
            means = (v.double().mean().item() for v in got.values())
            print(f"{name}_found_{i}", len(got["boxes"]), *means)
model = drawn(detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None))
show("ssdlite", model.train(), images, targets)
model = drawn(segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None))
torch.manual_seed(3)
show("deeplab", model.train(), torch.rand(2, 3, 64, 64).double())
model = drawn(optical_flow.raft_small(weights=None)).float()
show("flow", model.train(), *(torch.rand(2, 1, 3, 128, 128) * 2 - 1), 2)
