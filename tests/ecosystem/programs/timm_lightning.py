"""Image models of timm, and a Trainer of lightning with its checkpoint."""

import logging
import tempfile
import warnings

import lightning
import timm
import torch
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
for name, size in (("resnet18", 64), ("vit_tiny_patch16_224", 224)):
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=5).eval()
    loss = model(torch.randn(1, 3, size, size)).pow(2).sum()
    loss.backward()
    slopes = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    print(name, loss.item(), slopes)


class Small(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)


torch.manual_seed(0)
module = Small()
data = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8)
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=3,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        default_root_dir=folder,
    )
    trainer.fit(module, data)
    again = Small.load_from_checkpoint(trainer.checkpoint_callback.best_model_path)
print("lightning", *module.layer.weight.flatten().tolist())
print("resumed", int(torch.equal(again.layer.weight, module.layer.weight)))
