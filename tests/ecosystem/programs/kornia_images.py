"""kornia: filters, colours, geometry, augmentation, features, losses."""

import kornia
import torch

torch.manual_seed(0)
image = torch.rand(2, 3, 32, 32, requires_grad=True)
print("gray", kornia.color.rgb_to_grayscale(image).mean().item())
for name in ("rgb_to_hsv", "rgb_to_lab", "rgb_to_yuv", "rgb_to_hls"):
    print(name, *getattr(kornia.color, name)(image).mean((0, 2, 3)).tolist())
blur = kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5))
print("blur", blur.std().item(), kornia.filters.sobel(blur).mean().item())
print("canny", kornia.filters.canny(image)[0].mean().item())
print("median", kornia.filters.median_blur(image, (3, 3)).mean().item())
turned = kornia.geometry.rotate(image, torch.tensor([30.0, 45.0]))
print("rotate", turned.mean().item())
corners = torch.tensor([[[0.0, 0.0], [31.0, 0.0], [31.0, 31.0], [0.0, 31.0]]]).repeat(2, 1, 1)
moved = corners + torch.rand(2, 4, 2) * 4
matrix = kornia.geometry.get_perspective_transform(corners, moved)
print("matrix", *matrix[0].flatten().tolist())
warped = kornia.geometry.warp_perspective(image, matrix, (32, 32))
warped.mean().backward()
print("warp", warped.mean().item(), image.grad.abs().sum().item())
torch.manual_seed(1)
augment = kornia.augmentation.AugmentationSequential(
    kornia.augmentation.RandomAffine(30.0, p=1.0),
    kornia.augmentation.ColorJiggle(0.2, 0.2, 0.2, 0.1, p=1.0),
    kornia.augmentation.RandomHorizontalFlip(p=0.5),
    data_keys=["input", "keypoints"],
)
seen, points = augment(image.detach(), torch.rand(2, 4, 2) * 32)
print("augment", seen.mean().item(), *points.mean((0, 1)).tolist())
print("ssim", kornia.losses.ssim_loss(image, blur, 5).item())
print(
    "dice", kornia.losses.dice_loss(torch.rand(2, 3, 8, 8), torch.randint(0, 3, (2, 8, 8))).item()
)
print("harris", kornia.feature.harris_response(kornia.color.rgb_to_grayscale(image)).mean().item())
axis = torch.rand(2, 3)
print("rotation", *kornia.geometry.axis_angle_to_rotation_matrix(axis)[0].flatten().tolist())
