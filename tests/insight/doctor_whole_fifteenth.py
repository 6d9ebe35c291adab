"""A fifteenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

from doctor_whole_sixteenth import SIXTEENTH

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
    "one_block_many_times": (
        "two modules are one",
        """
class Mixer(nn.Module):
    def __init__(self, depth=4, d=16):
        super().__init__()
        block = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU())
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            block = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU())  #+
            self.blocks.append(block)  # here
        self.head = nn.Linear(d, 2)

    def forward(self, x):
        for b in self.blocks:
            x = x + b(x)
        return self.head(x)

net = Mixer()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randn(32, 16)
    loss = F.cross_entropy(net(x), (x[:, 0] * x[:, 1] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "kept_in_the_buffer": (
        "kept with their graphs",
        """
class Replay:
    def __init__(self, size=500):
        self.items = deque(maxlen=size)

    def push(self, *item):
        self.items.append(item)  #- here
        self.items.append([t.detach() if torch.is_tensor(t) else t for t in item])  #+

world = nn.GRUCell(3, 12)
head = nn.Linear(12, 3)
opt = torch.optim.Adam([*world.parameters(), *head.parameters()], lr=1e-3)
replay = Replay()
for t in range(40):
    obs, nxt = torch.randn(8, 3), torch.randn(8, 3)
    h = world(obs)
    loss = F.mse_loss(head(h), nxt)
    opt.zero_grad()
    loss.backward()
    opt.step()
    replay.push(obs, h, nxt)
""",
    ),
    "rows_of_a_gradient_zeroed": (
        "a frozen parameter is changed",
        """
words, out = nn.Embedding(20, 8), nn.Linear(8, 3)
opt = torch.optim.AdamW([*words.parameters(), *out.parameters()], lr=1e-2, weight_decay=0.1)
kept = words.weight[:10].detach().clone()
for step in range(8):
    ids = torch.randint(0, 20, (64,))
    opt.zero_grad()
    F.cross_entropy(out(words(ids)), ids % 3).backward()
    words.weight.grad[:10] = 0  # here
    nn.utils.clip_grad_norm_(words.parameters(), 0.01)
    opt.step()
    words.weight.data[:10] = kept  #+
""",
    ),
    **SIXTEENTH,
}
