"""Programs with a silent mistake, and each one's clean twin.

A line that ends in `#-` belongs to the program with the mistake alone, one that ends in `#+` to the
twin. `# here` marks the line that the doctor is to name (`#- here` one of the mistake alone).
"""

from __future__ import annotations

from doctor_forms import FORMS
from doctor_whole import WHOLE, WHOLE_HEADER
from doctor_whole_eighth import EIGHTH
from doctor_whole_eleventh import ELEVENTH
from doctor_whole_fifth import FIFTH
from doctor_whole_fourth import FOURTH
from doctor_whole_more import MORE
from doctor_whole_ninth import NINTH
from doctor_whole_second import SECOND
from doctor_whole_seventh import SEVENTH
from doctor_whole_sixth import SIXTH
from doctor_whole_tenth import TENTH
from doctor_whole_third import THIRD

HEADER = """
import numpy as np
import clew
from clew import nn
from clew.nn import functional as F
from clew.utils.data import DataLoader, Dataset, TensorDataset, Subset
clew.manual_seed(0)
x = clew.randn(64, 4)
labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
target = x @ clew.tensor([[1.0], [-2.0], [0.5], [0.0]])
"""


# name: (part of what the finding is called, program)
PROGRAMS: dict[str, tuple[str, str]] = {
    "softmax_module": (
        "softmax before cross_entropy",
        """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))  #-
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))  #+
opt = clew.optim.Adam(net.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for step in range(6):
    opt.zero_grad()
    loss = criterion(net(x), labels)  # here
    loss.backward()
    opt.step()
""",
    ),
    "softmax_by_hand": (
        "softmax before cross_entropy",
        """
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    z = net(x)
    z = z.exp() / z.exp().sum(1, keepdim=True)  #-
    opt.zero_grad()
    F.cross_entropy(z, labels).backward()  # here
    opt.step()
""",
    ),
    "nll_of_scores": (
        "log_softmax missing",
        """
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    z = net(x)  #-
    z = F.log_softmax(net(x), dim=1)  #+
    opt.zero_grad()
    loss = F.nll_loss(z, labels)  # here
    loss.backward()
    opt.step()
""",
    ),
    "sigmoid_twice": (
        "sigmoid before binary_cross_entropy_with_logits",
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = (x[:, :1] > 0).float()
criterion = nn.BCEWithLogitsLoss()
for step in range(6):
    p = net(x).sigmoid()  #- here
    p = net(x)  #+
    opt.zero_grad()
    loss = criterion(p, y)
    loss.backward()
    opt.step()
""",
    ),
    "broadcast_mse": (
        "broadcast",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.05)
y = target[:, 0]
for step in range(6):
    opt.zero_grad()
    p = net(x)
    p = p.squeeze(-1)  #+
    loss = F.mse_loss(p, y)  # here
    loss.backward()
    opt.step()
""",
    ),
    "broadcast_by_hand": (
        "broadcast",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.05)
y = target[:, 0]
y = target  #+
for step in range(6):
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()  # here
    loss.backward()
    opt.step()
""",
    ),
    "no_zero_grad": (
        "never cleared",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.001)
for step in range(8):
    opt.zero_grad()  #+
    loss = F.mse_loss(net(x), target)
    loss.backward()  # here
    opt.step()
""",
    ),
    "zero_grad_late": (
        "between backward and step",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()  #+
    loss = F.mse_loss(net(x), target)
    loss.backward()
    opt.zero_grad()  #- here
    opt.step()
""",
    ),
    "plain_list": (
        "plain list",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]  #- here
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])  #+
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh()
        return self.out(x)
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "plain_dict": (
        "plain dict",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = {"a": nn.Parameter(clew.randn(4, 4))}  #- here
        self.w = nn.ParameterDict({"a": nn.Parameter(clew.randn(4, 4))})  #+
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        return self.out(x @ self.w["a"])
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.02)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "replaced_head": (
        "were replaced",
        """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
net[2] = nn.Linear(8, 1)  #+
opt = clew.optim.SGD(net.parameters(), lr=0.02)  # here
net[2] = nn.Linear(8, 1)  #-
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "not_optimized": (
        "in no optimizer",
        """
body = nn.Linear(4, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)
    def forward(self, x):
        return self.head(self.body(x).relu())
net = Net()
opt = clew.optim.SGD(net.head.parameters(), lr=0.02)  #- here
opt = clew.optim.SGD(net.parameters(), lr=0.02)  #+
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "never_steps": (
        "never steps",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.02)  # here
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()  #+
""",
    ),
    "frozen_decay": (
        "frozen parameter",
        """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.1)
for step in range(8):
    opt.zero_grad(set_to_none=False)
    F.mse_loss(net(x), target).backward()
    opt.step()  # here
    if step == 2:
        for p in net[0].parameters():
            p.requires_grad_(False)
            p.grad = None  #+
""",
    ),
    "evaluated_in_training": (
        "evaluated in training mode",
        """
net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for step in range(6):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    net.eval()  #+
    with clew.no_grad():
        accuracy = (net(x).argmax(1) == labels).float().mean()  # here
""",
    ),
    "dropout_judged": (
        "evaluated in training mode",
        """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(5):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
net.eval()  #+
hits = 0
for i in range(4):
    hits += (net(x[i * 16 : i * 16 + 16]).argmax(1) == labels[i * 16 : i * 16 + 16]).sum()  # here
""",
    ),
    "stays_in_eval": (
        "training goes on in evaluation mode",
        """
net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    net.train()  #+
    for step in range(5):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    net.eval()  # here
    with clew.no_grad():
        net(x).argmax(1)
""",
    ),
    "batch_of_one": (
        "batch of one",
        """
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.01)
images = clew.randn(8, 1, 4, 4)
for i in range(8):
    opt.zero_grad()
    out = net(images[i : i + 1])  #- here
    out = net(images)  #+
    out.square().mean().backward()
    opt.step()
""",
    ),
    "cut_by_item": (
        "cut off",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.out = nn.Linear(4, 1), nn.Linear(4, 1)
    def forward(self, x):
        scale = self.gate(x).mean().item()  #- here
        scale = self.gate(x).mean()  #+
        return self.out(x) * scale
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "cut_by_detach": (
        "cut off",
        """
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = clew.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
for step in range(6):
    opt.zero_grad()
    h = body(x).relu()
    h = h.detach()  #- here
    F.mse_loss(head(h), target).backward()
    opt.step()
""",
    ),
    "losses_kept": (
        "kept with their graphs",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
history = []
for step in range(8):
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward()
    opt.step()
    history.append(loss)  #- here
    history.append(loss.item())  #+
""",
    ),
    "running_total": (
        "running total",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
total = 0.0
for step in range(8):
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward()
    opt.step()
    total += loss  #- here
    total += loss.item()  #+
""",
    ),
    "state_carried": (
        "grows from step to step",
        """
cell, head = nn.RNNCell(4, 8), nn.Linear(8, 1)
opt = clew.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
h = clew.zeros(64, 8)
for step in range(8):
    opt.zero_grad()
    h = h.detach()  #+
    h = cell(x, h)  # here
    loss = F.mse_loss(head(h), target)
    loss.backward(retain_graph=True)  #-
    for p in [*cell.parameters(), *head.parameters()]:  #-
        p.data -= 0.01 * p.grad  #-
    loss.backward()  #+
    opt.step()  #+
""",
    ),
    "retained": (
        "retain_graph",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward(retain_graph=True)  #- here
    loss.backward()  #+
    opt.step()
""",
    ),
    "dead_relu": (
        "dead ReLU",
        """
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.01)
net[0].bias.data.fill_(-50.0)  #-
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()  # elsewhere
    opt.step()
""",
    ),
    "saturated": (
        "saturated",
        """
net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.01)
net[0].weight.data.mul_(200.0)  #-
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "vanishing": (
        "vanish",
        """
layers = [part for _ in range(10) for part in (nn.Linear(8, 8), nn.Sigmoid())]  #-
layers = [part for _ in range(3) for part in (nn.Linear(8, 8), nn.ReLU())]  #+
net = nn.Sequential(nn.Linear(4, 8), *layers, nn.Linear(8, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "rate_too_high": (
        "learning rate",
        """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = clew.optim.SGD(net.parameters(), lr=5.0)  #- here
opt = clew.optim.SGD(net.parameters(), lr=0.05)  #+
for step in range(8):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "rate_too_low": (
        "learning rate",
        """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = clew.optim.SGD(net.parameters(), lr=1e-9)  #- here
opt = clew.optim.SGD(net.parameters(), lr=0.05)  #+
for step in range(8):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "sqrt_at_zero": (
        "slope is infinite",
        """
net = nn.Linear(4, 8)
opt = clew.optim.SGD(net.parameters(), lr=0.001)
for step in range(4):
    opt.zero_grad()
    h = net(x).relu()
    h = h + 1e-6  #+
    h.sqrt().mean().backward()  # here
    opt.step()
""",
    ),
    "division_by_norm": (
        "slope is infinite",
        """
net = nn.Linear(4, 8)
opt = clew.optim.SGD(net.parameters(), lr=0.001)
inputs = clew.cat([x, clew.zeros(2, 4)])
with clew.no_grad():
    net.bias.zero_()
for step in range(4):
    opt.zero_grad()
    h = net(inputs)
    n = h.norm(dim=1, keepdim=True)
    n = n + 1e-6  #+
    (h / n).square().mean().backward()  # here
    with clew.no_grad():
        net.bias.zero_()
""",
    ),
    "where_trap": (
        "where() hides",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.001)
for step in range(4):
    opt.zero_grad()
    h = net(x)
    safe = h  #-
    safe = clew.where(h > 0, h, 1.0)  #+
    y = clew.where(h > 0, safe.log(), clew.zeros_like(h))  # here
    y.mean().backward()
    opt.step()
""",
    ),
    "labels_minus_one": (
        "labels outside",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = (x[:, :1] > 0).float()
y = 2 * y - 1  #-
for step in range(6):
    opt.zero_grad()
    loss = F.binary_cross_entropy_with_logits(net(x), y)  # here
    loss.backward()
    opt.step()
""",
    ),
    "constant_labels": (
        "labels are constant",
        """
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = clew.zeros(64, dtype=clew.long)  #-
y = labels  #+
for step in range(6):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)  # here
    loss.backward()
    opt.step()
""",
    ),
    "not_normalised": (
        "not normalised",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=1e-6)  #-
opt = clew.optim.SGD(net.parameters(), lr=0.01)  #+
inputs = clew.randint(0, 256, (64, 4)).float()
inputs = (inputs / 255 - 0.5) / 0.3  #+
for step in range(4):
    opt.zero_grad()
    p = net(inputs)  # here
    F.mse_loss(p, target).backward()
    opt.step()
""",
    ),
    "sorted_labels": (
        "sorted by label",
        """
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
order = labels.argsort()
loader = DataLoader(TensorDataset(x[order], labels[order]), batch_size=8)  #- here
loader = DataLoader(TensorDataset(x[order], labels[order]), batch_size=8, shuffle=True)  #+
for epoch in range(2):
    for inputs, y in loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(inputs), y)
        loss.backward()
        opt.step()
""",
    ),
    "sorted_slices": (
        "sorted data",
        """
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
order = labels.argsort()
order = clew.randperm(64)  #+
for i in range(0, 64, 8):
    opt.zero_grad()
    loss = F.cross_entropy(net(x[order[i : i + 8]]), labels[order[i : i + 8]])  # here
    loss.backward()
    opt.step()
""",
    ),
    "overlap": (
        "overlap",
        """
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(x, labels)
train = DataLoader(Subset(data, range(0, 48)), batch_size=8, shuffle=True)
test = DataLoader(Subset(data, range(32, 64)), batch_size=8)  #- here
test = DataLoader(Subset(data, range(48, 64)), batch_size=8)  #+
for inputs, y in train:
    opt.zero_grad()
    F.cross_entropy(net(inputs), y).backward()
    opt.step()
with clew.no_grad():
    for inputs, y in test:
        net(inputs)
""",
    ),
    "schedule_first": (
        "steps before the optimizer",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
schedule = clew.optim.lr_scheduler.StepLR(opt, 2)
for step in range(6):
    schedule.step()  #- here
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
    schedule.step()  #+
""",
    ),
    "schedule_forgotten": (
        "schedule never steps",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
schedule = clew.optim.lr_scheduler.StepLR(opt, 2)  # here
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
    schedule.step()  #+
""",
    ),
    "clip_scaled": (
        "before they are unscaled",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
scaler = clew.amp.GradScaler("cpu")
for step in range(6):
    opt.zero_grad()
    scaler.scale(F.mse_loss(net(x), target)).backward()
    scaler.unscale_(opt)  #+
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # here
    scaler.step(opt)
    scaler.update()
""",
    ),
    "accumulated": (
        "without dividing",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    opt.zero_grad()
    for i in range(4):
        loss = F.mse_loss(net(x[i * 16 : i * 16 + 16]), target[i * 16 : i * 16 + 16])
        loss.backward()  #- here
        (loss / 4).backward()  #+
    opt.step()
""",
    ),
    "integer_division": (
        "integer division",
        """
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    opt.zero_grad()
    z = net(x)
    F.cross_entropy(z, labels).backward()
    opt.step()
    accuracy = (z.argmax(1) == labels).sum() // len(labels)  #- here
    accuracy = (z.argmax(1) == labels).sum() / len(labels)  #+
""",
    ),
    "target_requires_grad": (
        "requires grad",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
y = target.clone().requires_grad_()  #-
y = target.clone()  #+
for step in range(6):
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)  # here
    loss.backward()
    opt.step()
""",
    ),
    "repeated_block": (
        "share their weights",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4)] * 3)  #- here
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])  #+
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return self.out(x)
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "double_target": (
        "float64",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
y = clew.from_numpy(np.asarray(target.numpy(), dtype=np.float64))
y = y.float()  #+
for step in range(6):
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()  # here
    loss.backward()
    opt.step()
""",
    ),
    "slow_loader": (
        "waits for the data",
        """
import time
class Slow(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        time.sleep(0.002)  #-
        return x[i], target[i]
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs, y in DataLoader(Slow(), batch_size=6, shuffle=True):  # here
    opt.zero_grad()
    F.mse_loss(net(inputs), y).backward()
    opt.step()
""",
    ),
    "workers_unseeded": (
        "draw from a source that no seed reaches",
        """
class Noisy(Dataset):
    def __len__(self):
        return 32
    def augmented(self, x):
        noise = np.random.default_rng().random(8, dtype="float32")  #- here
        noise = np.random.random(8).astype("float32")  #+
        return x + noise
    def __getitem__(self, i):
        return self.augmented(np.ones(8, dtype="float32"))
clew.manual_seed(1)
net = nn.Linear(8, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Subset(Noisy(), range(16)), batch_size=4, num_workers=2):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
""",
    ),
    "workers_system_random": (
        "draw from a source that no seed reaches",
        """
import os, random
def start(worker):
    random.seed(os.urandom(8))  #- here
    random.seed(worker)  #+
class Noisy(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return clew.tensor([i + random.random() for _ in range(8)]) / 32
clew.manual_seed(1)
net = nn.Linear(8, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Noisy(), batch_size=4, num_workers=2, worker_init_fn=start):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
""",
    ),
    "workers_repeat": (
        "same random data",
        """
class Noisy(Dataset):
    def __init__(self):
        self.random = np.random.RandomState(0)  # here
    def __len__(self):
        return 32
    def __getitem__(self, i):
        noise = self.random.randn(8).astype("float32")  #-
        noise = np.random.randn(8).astype("float32")  #+
        return noise
net = nn.Linear(8, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Noisy(), batch_size=4, num_workers=2):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
""",
    ),
    **FORMS,
    **WHOLE,
    **MORE,
    **SECOND,
    **THIRD,
    **FOURTH,
    **FIFTH,
    **SIXTH,
    **SEVENTH,
    **EIGHTH,
    **NINTH,
    **TENTH,
    **ELEVENTH,
}


_WHOLE = (WHOLE, MORE, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH, TENTH, ELEVENTH)


def variants(name: str) -> tuple[str, int | None, str]:
    """The program with the mistake, the line to name (None where none is marked), the twin."""
    bad, good, line = [], [], None
    whole = any(name in programs for programs in _WHOLE)
    header = WHOLE_HEADER if whole else HEADER
    for text in (header + PROGRAMS[name][1]).split("\n"):
        stripped = text.rstrip()
        marked = stripped.endswith("here")
        if not stripped.endswith("#+"):
            bad.append(text)
            if marked:
                line = len(bad)
        if not stripped.endswith(("#-", "#- here")):
            good.append(text)
    return "\n".join(bad), line, "\n".join(good)
