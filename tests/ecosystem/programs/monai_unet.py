"""monai: a 2-D UNet trained on shapes, transforms, sliding windows, metrics."""

import numpy
import torch
from monai.data import DataLoader, Dataset, create_test_image_2d, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric
from monai.networks.nets import UNet
from monai.transforms import (
    Activations,
    AsDiscrete,
    Compose,
    EnsureChannelFirstd,
    RandCropByPosNegLabeld,
    RandRotate90d,
    ScaleIntensityd,
)
from monai.utils import set_determinism

set_determinism(0)
rows = []
for i in range(4):
    image, label = create_test_image_2d(
        64, 64, num_seg_classes=1, random_state=numpy.random.RandomState(i)
    )
    rows.append({"image": image, "label": label})
transform = Compose(
    [
        EnsureChannelFirstd(("image", "label"), channel_dim="no_channel"),
        ScaleIntensityd("image"),
        RandCropByPosNegLabeld(("image", "label"), "label", (32, 32), num_samples=2),
        RandRotate90d(("image", "label"), prob=0.5),
    ]
)
loader = DataLoader(Dataset(rows, transform), batch_size=2, shuffle=True)
model = UNet(2, 1, 1, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
score = DiceLoss(sigmoid=True)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
losses = []
for _ in range(2):
    for batch in loader:
        optimizer.zero_grad()
        loss = score(model(batch["image"]), batch["label"])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print("losses", *losses)
model.eval()
image = torch.as_tensor(rows[0]["image"])[None, None].float()
with torch.no_grad():
    out = sliding_window_inference(image, (32, 32), 2, model, overlap=0.25)
print("window", out.mean().item(), out.std().item())
post = Compose([Activations(sigmoid=True), AsDiscrete(threshold=0.5)])
guess = [post(one) for one in decollate_batch(out)]
truth = [torch.as_tensor(rows[0]["label"])[None].float()]
print("dice", *DiceMetric()(guess, truth).flatten().tolist())
print("far", *HausdorffDistanceMetric()(torch.stack(guess), torch.stack(truth)).flatten().tolist())
both = DiceCELoss(to_onehot_y=True, softmax=True)
print("both", both(torch.randn(2, 3, 8, 8), torch.randint(0, 3, (2, 1, 8, 8))).item())
