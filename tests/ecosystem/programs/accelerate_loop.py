"""accelerate's training loop: prepare, accumulate, clip, gather, save and load the state."""

import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=8)
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
losses = []
for inputs, targets in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    losses.append(accelerator.gather_for_metrics(loss.detach()).item())
print("losses", *losses)
print("rate", scheduler.get_last_lr()[0])
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    before = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        p.data.zero_()
    accelerator.load_state(folder)
    same = all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
print("restored", int(same))
print("weights", *accelerator.unwrap_model(model)[2].weight.flatten()[:6].tolist())
