"""lightning: the autoencoder of its first page, callbacks, checkpoints, resuming, bf16, Fabric."""

import logging
import tempfile
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.simplefilter("ignore")
for name in ("lightning.pytorch", "lightning.fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)


class Autoencoder(lightning.LightningModule):
    def __init__(self, rate=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(28, 16), nn.ReLU(), nn.Linear(16, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 28))

    def step(self, batch):
        return nn.functional.mse_loss(self.decoder(self.encoder(batch[0])), batch[0])

    def training_step(self, batch, index):
        loss = self.step(batch)
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.step(batch))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


lightning.seed_everything(0, verbose=False)
rows = TensorDataset(torch.randn(48, 28))
train, valid = random_split(rows, [32, 16])
quiet = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
with tempfile.TemporaryDirectory() as folder:
    saver = ModelCheckpoint(monitor="val_loss", save_last=True)
    trainer = lightning.Trainer(
        max_epochs=3,
        logger=CSVLogger(folder),
        log_every_n_steps=1,
        callbacks=[saver, EarlyStopping("val_loss"), LearningRateMonitor()],
        gradient_clip_val=0.5,
        accumulate_grad_batches=2,
        default_root_dir=folder,
        **quiet,
    )
    module = Autoencoder()
    trainer.fit(module, DataLoader(train, 8, shuffle=True), DataLoader(valid, 8))
    print("fit", *[float(v) for _, v in sorted(trainer.callback_metrics.items())])
    again = Autoencoder.load_from_checkpoint(saver.best_model_path)
    print("loaded", again.hparams.rate, *again.encoder[2].bias.tolist())
    more = lightning.Trainer(max_epochs=4, logger=False, default_root_dir=folder, **quiet)
    more.fit(module, DataLoader(train, 8), DataLoader(valid, 8), ckpt_path=saver.last_model_path)
    print("resumed", more.global_step, float(more.callback_metrics["val_loss"]))
    print("validated", more.validate(module, DataLoader(valid, 8), verbose=False)[0]["val_loss"])
    half = lightning.Trainer(
        max_epochs=1, logger=False, precision="bf16-mixed", default_root_dir=folder, **quiet
    )
    half.fit(module, DataLoader(train, 8), DataLoader(valid, 8))
    print("bf16", round(float(half.callback_metrics["val_loss"]), 2))
fabric = lightning.Fabric(accelerator="cpu", devices=1)
fabric.seed_everything(1, verbose=False)
model = nn.Linear(4, 1)
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
for (batch,) in fabric.setup_dataloaders(DataLoader(TensorDataset(torch.randn(8, 4)), 4)):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    fabric.backward(loss)
    optimizer.step()
print("fabric", loss.item(), *model.weight.flatten().tolist())
