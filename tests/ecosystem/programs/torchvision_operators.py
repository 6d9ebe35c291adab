"""torchvision's compiled operators: values and gradients, in training and under autocast."""

import torch
import torchvision
from torchvision import ops

torch.manual_seed(0)
low = torch.rand(12, 2) * 12 - 1
boxes = torch.cat([torch.arange(12.0)[:, None] % 2, low, low + torch.rand(12, 2) * 9], 1)
boxes[3, 3:] = boxes[3, 1:3]  # without a size
boxes[4, 3:] = boxes[4, 1:3] - 2.5  # a negative size
boxes[5, 1:] += 40  # outside
x = torch.randn(2, 12, 10, 11)


def show(name, function, *inputs):
    inputs = [t.clone().requires_grad_() for t in inputs]
    out = function(*inputs)
    total = out.nan_to_num().mul(torch.linspace(-1, 1, out.numel()).view_as(out)).sum()
    grads = torch.autograd.grad(total, inputs)
    print(name, total.item(), out.isnan().sum().item(), *(g.abs().sum().item() for g in grads))


for ratio in (-1, 2):
    for aligned in (False, True):
        f = ops.RoIAlign((2, 3), 0.8, ratio, aligned)
        show(f"align_{ratio}_{aligned}", lambda t, f=f: f(t, boxes), x)
    f = ops.PSRoIAlign((2, 3), 0.8, ratio)
    show(f"ps_align_{ratio}", lambda t, f=f: f(t, boxes), x)
for scale in (1.0, 0.5):
    f, g = ops.RoIPool((2, 3), scale), ops.PSRoIPool((2, 3), scale)
    show(f"pool_{scale}", lambda t, f=f: f(t, boxes), x)
    show(f"ps_pool_{scale}", lambda t, g=g: g(t, boxes), x)
show("no_boxes", lambda t: ops.roi_align(t, boxes[:0], 2), x)
weight, offset, mask = (
    torch.randn(6, 6, 3, 2),
    torch.randn(2, 36, 5, 12) * 2,
    torch.rand(2, 18, 5, 12),
)
options = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 3)}
show(
    "deformed",
    lambda t, o, w, b, m: ops.deform_conv2d(t, o, w, b, mask=m, **options),
    *(x, offset, weight, torch.randn(6), mask),
)
show(
    "deformed_whole",
    lambda t, o, w: ops.deform_conv2d(t, o, w, **options),
    x,
    offset.round(),
    weight,
)
layer = ops.DeformConv2d(12, 4, 3, padding=1, groups=2)
show("layer", lambda t, o: layer(t, o), x, torch.zeros(2, 18, 10, 11))
scores = torch.rand(12).mul(4).round()
print("nms", *ops.nms(boxes[:, 1:], scores, 0.2).tolist())
print("batched", *ops.batched_nms(boxes[:, 1:], scores, torch.arange(12) % 3, 0.1).tolist())
try:
    ops.nms(boxes, scores, 0.2)
except RuntimeError as error:
    print("refused", float("4 elements" in str(error) or "4 columns" in str(error)))
with torch.autocast("cpu", dtype=torch.bfloat16):
    half = ops.roi_align(x.bfloat16(), boxes.bfloat16(), 2)
    print("half", float(half.dtype == torch.bfloat16), half.float().sum().item())
print("meta", *ops.roi_align(x.to("meta"), boxes.to("meta"), (4, 5)).shape)
fpn = ops.MultiScaleRoIAlign(["a", "b"], 3, 2)
show(
    "levels",
    lambda a, b: fpn({"a": a, "b": b}, [boxes[:7, 1:] * 8, boxes[7:, 1:]], [(80, 88)] * 2),
    *(x, x[:, :, ::2, ::2]),
)
logits, wanted = torch.randn(5, 4), torch.rand(5, 4).round()
show("focal", lambda t: ops.sigmoid_focal_loss(t, wanted, reduction="mean"), logits)
for name in ("generalized", "complete", "distance"):
    loss = getattr(ops, f"{name}_box_iou_loss")
    show(name, lambda a, b, f=loss: f(a, b), boxes[6:9, 1:], boxes[9:, 1:])
block = ops.DropBlock2d(0.3, 3)
show("blocks", block, x)
show("depth", ops.StochasticDepth(0.5, "row"), torch.randn(8, 3))
image = (torch.rand(3, 12, 10) * 255).byte()
saved = torchvision.io.encode_png(image)
gray = torchvision.io.decode_png(saved, torchvision.io.ImageReadMode.GRAY)
print("png", (torchvision.io.decode_image(saved) == image).float().mean().item(), gray.sum().item())
