"""A thirteenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

from doctor_whole_fourteenth import FOURTEENTH

THIRTEENTH: dict[str, tuple[str, str]] = {
    "workers_seeded_alike": (
        "same random data",
        """
class Noisy(Dataset):
    def __init__(self, n):
        self.x = np.random.randn(n, 6).astype(np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i] + 0.1 * np.random.randn(6).astype(np.float32)
        return torch.from_numpy(x), int(self.x[i, 0] > 0)

def seed_worker(worker_id):
    np.random.seed(42)  #- here
    np.random.seed(torch.initial_seed() % 2**32)  #+

loader = DataLoader(Noisy(96), 12, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(2):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
    ),
    "buffer_with_graphs": (
        "kept with their graphs",
        """
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 1e-3)
memory = deque(maxlen=2000)
s = torch.randn(1, 4)
for t in range(60):
    dist = torch.distributions.Categorical(logits=actor(s))
    a = dist.sample()
    value = critic(s)
    r = float((a == (s[0, 0] > 0)).item())
    memory.append((s, a, r, value))  #- here
    memory.append((s, a, r, value.item()))  #+
    loss = -(dist.log_prob(a) * (r - value.detach().squeeze())) .mean()+ (value.squeeze() - r) ** 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    s = torch.randn(1, 4)
""",
    ),
    "lambda_gives_rate": (
        "gives the rate",
        """
LR = 1e-3
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=LR)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: LR * min(1.0, (step + 1) / 5))  #- here
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: min(1.0, (step + 1) / 5))  #+
for step in range(20):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
""",
    ),
    "all_keys_masked": (
        "slope is infinite",
        """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 16)
        self.score = nn.Linear(16, 1)
        self.fc = nn.Linear(16, 2)

    def forward(self, ids):
        h = self.emb(ids)
        s = self.score(h).squeeze(-1).masked_fill(ids == 0, float("-inf"))  #-
        s = self.score(h).squeeze(-1).masked_fill(ids == 0, -1e9)  #+
        w = torch.softmax(s, 1)  # here
        return self.fc((w.unsqueeze(-1) * h).sum(1))

net = Pool()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(6):
    ids = torch.randint(1, 20, (16, 6))
    ids[0] = 0  # an empty text
    ids[1, 3:] = 0
    loss = F.cross_entropy(net(ids), ids[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "module_as_default": (
        "two modules are one",
        """
class Block(nn.Module):
    def __init__(self, dim, norm=nn.LayerNorm(16)):  #- here
    def __init__(self, dim, norm=nn.LayerNorm):  #+
        super().__init__()
        self.norm = norm  #-
        self.norm = norm(dim)  #+
        self.ff = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))

net = nn.Sequential(nn.Linear(6, 16), Block(16), Block(16), Block(16), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "scaled_twice": (
        "not normalised",
        """
class Images(Dataset):
    def __init__(self):
        self.data = torch.randint(0, 256, (128, 1, 8, 8), dtype=torch.uint8)
        self.y = torch.randint(0, 4, (128,))
        self.x = self.data.float() / 255

    def __len__(self):
        return 128

    def __getitem__(self, i):
        return self.x[i], self.y[i]

net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(Images(), batch_size=16, shuffle=True):
        x = x / 255.0  #-
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)  # here
        loss.backward()
        opt.step()
""",
    ),
    "plateau_on_accuracy": (
        "wrong direction",
        """
x = torch.randn(320, 6)
y = (x[:, 0] + x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)  #- here
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="max", patience=1)  #+
for epoch in range(8):
    for xb, yb in DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True):
        opt.zero_grad()
        F.cross_entropy(net(xb), yb).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        acc = (net(x[256:]).argmax(1) == y[256:]).float().mean().item()
    net.train()
    sched.step(acc)
""",
    ),
    "update_bound_anew": (
        "an update never reaches",
        """
w = torch.randn(5, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
x = torch.randn(100, 5)
y = x @ torch.randn(5, 1) + 0.3
lr = 0.05
params = [w, b]
for i in range(15):
    loss = ((x @ params[0] + params[1] - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in params:
            p = p - lr * p.grad  #- here
            p -= lr * p.grad  #+
    for p in params:
        p.grad.zero_()
""",
    ),
    "vae_unequal_terms": (
        "a mean over all",
        """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(64, 32)
        self.mu, self.lv = nn.Linear(32, 4), nn.Linear(32, 4)
        self.d = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())

    def forward(self, x):
        h = F.relu(self.e(x))
        mu, lv = self.mu(h), self.lv(h)
        return self.d(mu + torch.randn_like(mu) * (0.5 * lv).exp()), mu, lv

vae = VAE()
opt = torch.optim.Adam(vae.parameters(), 1e-3)
for _ in range(10):
    x = torch.rand(32, 64)
    out, mu, lv = vae(x)
    rec = F.binary_cross_entropy(out, x)  #-
    rec = F.binary_cross_entropy(out, x, reduction="sum")  #+
    kld = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())  # here
    loss = rec + kld
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "angle_at_zero": (
        "slope is infinite",
        """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2), nn.ReLU())
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 4)
    out = net(x)
    angle = torch.atan2(out[:, 0], out[:, 1])  #- here
    angle = torch.atan2(out[:, 0] + 1e-4, out[:, 1] + 1e-4)  #+
    loss = (angle - x[:, 0].sigmoid()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    **FOURTEENTH,
}
