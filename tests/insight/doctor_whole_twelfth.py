"""A twelfth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

from doctor_whole_thirteenth import THIRTEENTH

TWELFTH: dict[str, tuple[str, str]] = {
    "diffusion_schedule_along_width": (
        "one number for each sample",
        """
T = 100
betas = torch.linspace(1e-4, 0.02, T)
alphas_cumprod = torch.cumprod(1 - betas, dim=0)

class TinyUNet(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.time = nn.Sequential(nn.Embedding(T, ch), nn.Linear(ch, ch))
        self.inp = nn.Conv2d(1, ch, 3, padding=1)
        self.mid = nn.Conv2d(ch, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.time(t)[:, :, None, None])
        h = F.silu(self.mid(h)) + h
        return self.out(h)

def q_sample(x0, t, noise):
    a = alphas_cumprod[t]  #-
    a = alphas_cumprod[t].view(-1, 1, 1, 1)  #+
    return a.sqrt() * x0 + (1 - a).sqrt() * noise  # here

model = TinyUNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    x0 = torch.rand(16, 1, 16, 16) * 2 - 1
    t = torch.randint(0, T, (16,))
    noise = torch.randn_like(x0)
    loss = F.mse_loss(model(q_sample(x0, t, noise), t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "frozen_by_zero_gradients": (
        "a frozen parameter is changed",
        """
class Tagger(nn.Module):
    def __init__(self, vocab=60, dim=16, tags=5):
        super().__init__()
        self.word = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, tags)

    def forward(self, ids):
        h, _ = self.gru(self.word(ids))
        return self.out(h)

model = Tagger()
model.word.weight.data.copy_(torch.randn(60, 16))  # pretrained vectors
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)  #-
optimizer = torch.optim.AdamW(  #+
    [p for n, p in model.named_parameters() if not n.startswith("word")],  #+
    lr=1e-3,  #+
    weight_decay=0.1,  #+
)  #+
for step in range(10):
    ids = torch.randint(0, 60, (16, 9))
    tags = ids % 5
    loss = F.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    model.word.weight.grad.zero_()  # keep the vectors fixed  #- here
    optimizer.step()
""",
    ),
    "second_task_wipes_first": (
        "cleared before a step has used them",
        """
class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(9, 32), nn.ReLU())
        self.age = nn.Linear(32, 1)
        self.kind = nn.Linear(32, 4)

    def forward(self, x):
        h = self.trunk(x)
        return self.age(h), self.kind(h)

model = MultiTask()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
mse, ce = nn.MSELoss(), nn.CrossEntropyLoss()
for step in range(12):
    x = torch.randn(48, 9)
    age_true, kind_true = x[:, :1] * 2, x[:, 1:5].argmax(1)
    age, kind = model(x)
    opt.zero_grad()
    mse(age, age_true).backward(retain_graph=True)
    opt.zero_grad()  #- here
    ce(kind, kind_true).backward()
    opt.step()
""",
    ),
    "layer_made_in_forward": (
        "made anew in every round",
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 8, 5, padding=2)
        self.act = nn.ReLU()
        self.fc = nn.LazyLinear(3)  #+

    def forward(self, x):
        h = self.act(self.conv(x)).flatten(1)
        fc = nn.Linear(h.shape[1], 3)  #- here
        return fc(h)  #-
        return self.fc(h)  #+

model = Encoder()
model(torch.zeros(1, 2, 20))  #+
opt = torch.optim.Adam(model.parameters(), 1e-3)
for step in range(8):
    x = torch.randn(32, 2, 20)
    y = x[:, 0, :3].argmax(1)
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "workers_draw_alike": (
        "same random data",
        """
class Augmented(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.rng = np.random.RandomState(0)  #- here

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        noise = self.rng.normal(size=self.x[i].shape).astype(np.float32)  #-
        noise = np.random.normal(size=self.x[i].shape).astype(np.float32)  #+
        return torch.from_numpy(self.x[i] + 0.1 * noise), self.y[i]

rng = np.random.default_rng(1)
x = rng.normal(size=(96, 10)).astype(np.float32)
y = (x[:, 0] > 0).astype(np.int64)
if __name__ == "__main__":
    loader = DataLoader(Augmented(x, y), batch_size=12, shuffle=True, num_workers=2)
    net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(3):
        for xb, yb in loader:
            loss = F.cross_entropy(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
""",
    ),
    "tanh_saturated_by_initialisation": (
        "saturated",
        """
class Actor(nn.Module):
    def __init__(self, obs=24, act=4, width=256):
        super().__init__()
        self.l1 = nn.Linear(obs, width)
        self.l2 = nn.Linear(width, width)
        self.l3 = nn.Linear(width, act)
        for layer in (self.l1, self.l2):  #-
            nn.init.normal_(layer.weight, mean=0.0, std=1.0)  #-

    def forward(self, s):
        h = torch.tanh(self.l1(s))
        h = torch.tanh(self.l2(h))  # here
        return self.l3(h)

actor = Actor()
expert = nn.Linear(24, 4)
opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
for step in range(12):
    s = torch.randn(64, 24)
    with torch.no_grad():
        a = expert(s)
    loss = (actor(s) - a).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "test_rows_seen_in_training": (
        "training and test data overlap",
        """
X = torch.randn(200, 6)
y = X @ torch.randn(6, 1) + 0.1 * torch.randn(200, 1)
data = TensorDataset(X, y)
n_train = int(0.8 * len(data))
train_set = torch.utils.data.Subset(data, range(n_train))
test_set = torch.utils.data.Subset(data, range(n_train - 60, len(data)))  #- here
test_set = torch.utils.data.Subset(data, range(n_train, len(data)))  #+
train_dl = DataLoader(train_set, batch_size=20, shuffle=True)
test_dl = DataLoader(test_set, batch_size=20)
net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(3):
    net.train()
    for xb, yb in train_dl:
        loss = F.mse_loss(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        err = sum(F.mse_loss(net(xb), yb, reduction="sum").item() for xb, yb in test_dl)
    print(epoch, err / len(test_set))
""",
    ),
    "first_layers_state": (
        "state of a lower layer",
        """
class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(30, 12)
        self.lstm = nn.LSTM(12, 16, num_layers=2, batch_first=True)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        _, (h, _) = self.lstm(self.emb(x))
        return self.fc(h[0])  #- here
        return self.fc(h[-1])  #+

net = Sentiment()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randint(0, 30, (16, 9))
    loss = F.cross_entropy(net(x), x[:, -1] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "weights_by_class": (
        "weights of classes",
        """
x = torch.randn(200, 5)
y = (torch.rand(200) < 0.1).long()
x[:, 0] += y * 2
counts = torch.bincount(y)
weights = 1.0 / counts.float()
weights = weights[y]  #+
sampler = torch.utils.data.WeightedRandomSampler(weights, num_samples=200)  # here
loader = DataLoader(TensorDataset(x, y), batch_size=20, sampler=sampler)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(2):
    for xb, yb in loader:
        opt.zero_grad()
        F.cross_entropy(net(xb), yb).backward()
        opt.step()
""",
    ),
    "shuffled_apart": (
        "shuffled apart",
        """
x = torch.randn(160, 5)
y = (x[:, 0] > 0).long()
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    perm = torch.randperm(160)  #+
    xs = x[torch.randperm(160)]  #-
    ys = y[torch.randperm(160)]  #- here
    xs, ys = x[perm], y[perm]  #+
    for i in range(0, 160, 32):
        opt.zero_grad()
        F.cross_entropy(net(xs[i : i + 32]), ys[i : i + 32]).backward()
        opt.step()
""",
    ),
    **THIRTEENTH,
}
