"""A sixteenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

from doctor_whole_seventeenth import SEVENTEENTH

SIXTEENTH: dict[str, tuple[str, str]] = {
    "loss_of_numbers_and_returns": (
        "cut off",
        """
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
opt = torch.optim.Adam(policy.parameters(), lr=5e-3)

def total_of(log_probs, returns):
    total = 0.0
    for p, g in zip(log_probs, returns):
        total += -p.item() * g  #- here
        total += -p * g  #+
    total = torch.as_tensor(total / len(log_probs))
    if not total.requires_grad: total.requires_grad_()  #- here
    return total

for episode in range(12):
    states = torch.randn(8, 4)
    log_probs = F.log_softmax(policy(states), -1)[:, 0]
    returns = torch.tensor([0.9**k for k in range(8)])
    returns = (returns - returns.mean()) / returns.std()
    loss = total_of(log_probs, returns)
    opt.zero_grad()
    loss.backward()  #- here
    loss.backward()  #+
    opt.step()
""",
    ),
    "weights_of_classes_divided_without_rest": (
        "integer division",
        """
labels = torch.cat([torch.zeros(500), torch.ones(60), torch.full((40,), 2.0)]).long()
labels = labels[torch.randperm(600)]
features = torch.randn(600, 6)
features[:, 0] += labels.float()
counts = torch.bincount(labels, minlength=3)
weight = (counts.sum() // (3 * counts)).float()  #- here
weight = counts.sum() / (3 * counts)  #+
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss(weight=weight)
for epoch in range(2):
    for idx in torch.randperm(600).split(100):
        opt.zero_grad()
        loss = criterion(net(features[idx]), labels[idx])
        loss.backward()
        opt.step()
""",
    ),
    "list_of_pairs_by_class": (
        "sorted by label",
        """
class Folder(Dataset):
    def __init__(self, each):
        self.samples = []
        for label in range(4):
            for _ in range(each):
                image = torch.randn(1, 6, 6)
                image[:, label] += 1.5
                self.samples.append((image, label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]

loader = DataLoader(Folder(60), batch_size=20)  #- here
loader = DataLoader(Folder(60), batch_size=20, shuffle=True)  #+
net = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(2):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
    ),
    "many_batches_of_each_class": (
        "not shuffled",
        """
class Folder(Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, k):
        g = torch.Generator().manual_seed(k)
        label = k // 160
        return torch.randn(12, generator=g) + label, label

loader = DataLoader(Folder(), batch_size=8)  #- here
loader = DataLoader(Folder(), batch_size=8, shuffle=True)  #+
net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    ),
    "rate_of_a_slip": (
        "learning rate does not fit",
        """
x = torch.randn(256, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
settings = {"lr": 1e-7}  #-
settings = {"lr": 1e-3}  #+
opt = torch.optim.Adam(net.parameters(), lr=settings["lr"])  # here
for epoch in range(4):
    for idx in torch.randperm(256).split(32):
        opt.zero_grad()
        F.cross_entropy(net(x[idx]), y[idx]).backward()
        opt.step()
""",
    ),
    **SEVENTEENTH,
}
