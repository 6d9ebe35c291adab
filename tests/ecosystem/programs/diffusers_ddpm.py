"""A UNet2D trained to predict noise, then DDPM and DDIM pipelines of diffusers."""

import tempfile

import torch
import torch.nn.functional as F
from diffusers import DDIMScheduler, DDPMPipeline, DDPMScheduler, UNet2DModel

torch.manual_seed(0)
model = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=8,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
scheduler = DDPMScheduler(num_train_timesteps=1000)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
images = torch.randn(4, 3, 16, 16)
losses = []
for _ in range(3):
    noise = torch.randn(images.shape)
    times = torch.randint(0, 1000, (4,), dtype=torch.int64)
    noisy = scheduler.add_noise(images, noise, times)
    loss = F.mse_loss(model(noisy, times, return_dict=False)[0], noise)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print("losses", *losses)
pipeline = DDPMPipeline(unet=model, scheduler=scheduler)
pipeline.set_progress_bar_config(disable=True)
made = pipeline(
    batch_size=1, generator=torch.manual_seed(1), num_inference_steps=4, output_type="np"
).images
print("ddpm", made.mean(), made.std(), *made[0, 0, 0])
steps = DDIMScheduler(num_train_timesteps=1000)
steps.set_timesteps(5)
sample = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(2))
with torch.no_grad():
    for t in steps.timesteps:
        sample = steps.step(model(sample, t).sample, t, sample).prev_sample
print("ddim", sample.mean().item(), sample.std().item())
with tempfile.TemporaryDirectory() as folder:
    pipeline.save_pretrained(folder)
    again = DDPMPipeline.from_pretrained(folder)
same = all(
    torch.equal(a, b) for a, b in zip(model.parameters(), again.unet.parameters(), strict=True)
)
print("restored", int(same))
