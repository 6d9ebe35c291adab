"""A fifteenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

FIFTEENTH: dict[str, tuple[str, str]] = {
    "constant_column_standardised": (
        "slope is infinite",
        """
table = np.random.default_rng(0).normal(size=(160, 6)).astype(np.float32)
table[:, 3] = 1.0  # the unit, the same in every row
X = torch.from_numpy(table)
y = X[:, :1] - X[:, 1:2]
X = (X - X.mean(0)) / X.std(0)  #- here
X = (X - X.mean(0)) / (X.std(0) + 1e-6)  #+
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    for idx in torch.randperm(160).split(32):
        opt.zero_grad()
        loss = F.mse_loss(net(X[idx]), y[idx])
        loss.backward()
        opt.step()
""",
    ),
    "pairs_labelled_zero_and_one": (
        "labels outside",
        """
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return self.f(x)

tower = Tower()
loss_fn = nn.CosineEmbeddingLoss(margin=0.2)
opt = torch.optim.Adam(tower.parameters(), lr=1e-3)
for step in range(10):
    a = torch.randn(48, 9)
    same = (torch.rand(48) < 0.5).long()
    b = torch.where(same[:, None] == 1, a + 0.1 * torch.randn(48, 9), torch.randn(48, 9))
    loss = loss_fn(tower(a), tower(b), same)  #- here
    loss = loss_fn(tower(a), tower(b), 2 * same - 1)  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "seeded_for_every_sample": (
        "same random numbers",
        """
class Crops(Dataset):
    def __init__(self):
        g = np.random.default_rng(5)
        self.signal = g.normal(size=(64, 40)).astype(np.float32)
        self.label = (self.signal.mean(1) > 0).astype(np.int64)

    def __len__(self):
        return 64

    def __getitem__(self, i):
        np.random.seed(123)  #- here
        at = np.random.randint(0, 8)
        noise = np.random.normal(size=32).astype(np.float32)
        return self.signal[i, at : at + 32] + 0.1 * noise, self.label[i]

net = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in DataLoader(Crops(), batch_size=16, shuffle=True):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
""",
    ),
    "samplers_overlap": (
        "overlap",
        """
Sampler = torch.utils.data.SubsetRandomSampler
X = torch.randn(150, 8)
Y = (X[:, 0] - X[:, 1] > 0).long()
dataset = TensorDataset(X, Y)
order = torch.randperm(150).tolist()
train_loader = DataLoader(dataset, batch_size=15, sampler=Sampler(order[:120]))
valid_loader = DataLoader(dataset, batch_size=15, sampler=Sampler(order[90:]))  #- here
valid_loader = DataLoader(dataset, batch_size=15, sampler=Sampler(order[120:]))  #+
net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    net.train()
    for a, b in train_loader:
        loss = F.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(a).argmax(1) == b).sum().item() for a, b in valid_loader)
    print(epoch, right)
""",
    ),
    "never_comes_to_the_eighth": (
        "never steps",
        """
x = torch.randn(96, 7)
y = x[:, :1].sin()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(7, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
accumulate = 8  #-
accumulate = 2  #+
for epoch in range(4):
    optimizer.zero_grad()
    for i, (a, b) in enumerate(loader):
        loss = F.mse_loss(net(a), b) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
""",
    ),
}
