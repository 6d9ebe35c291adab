"""ignite: a trainer, an evaluator, metrics, handlers."""

import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping, global_step_from_engine
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
data = TensorDataset(torch.randn(60, 6), torch.randint(0, 3, (60,)))
loader = DataLoader(data, batch_size=12, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
score = nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, optimizer, score)
RunningAverage(output_transform=lambda loss: loss).attach(trainer, "running")
metrics = {"accuracy": Accuracy(), "loss": Loss(score), "confusion": ConfusionMatrix(3)}
evaluator = create_supervised_evaluator(model, metrics=metrics)
losses = []


@trainer.on(Events.ITERATION_COMPLETED(every=3))
def note(engine):
    losses.append(engine.state.output)


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(loader)
    found = evaluator.state.metrics
    print(f"epoch{engine.state.epoch}", found["accuracy"], found["loss"])


with tempfile.TemporaryDirectory() as folder:
    saver = Checkpoint(
        {"model": model, "optimizer": optimizer},
        DiskSaver(folder, create_dir=True),
        n_saved=2,
        score_function=lambda engine: engine.state.metrics["accuracy"],
        global_step_transform=global_step_from_engine(trainer),
    )
    evaluator.add_event_handler(Events.COMPLETED, saver)
    stopper = EarlyStopping(2, lambda e: -e.state.metrics["loss"], trainer)
    evaluator.add_event_handler(Events.COMPLETED, stopper)
    trainer.run(loader, max_epochs=3)
    Checkpoint.load_objects({"model": model}, checkpoint=saver.last_checkpoint)
print("losses", *losses)
print("confusion", *evaluator.state.metrics["confusion"].flatten().tolist())
print("running", trainer.state.metrics["running"])
