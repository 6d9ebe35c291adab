"""Whole programs that come near to a mistake and make none."""

from __future__ import annotations

from doctor_whole_clean_ninth import NINTH_CLEAN

EIGHTH_CLEAN: dict[str, str] = {
    "scale_of_columns": """
table = torch.rand(40) + 0.5
columns = torch.arange(16) * 2
net = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(16, 3, 16) * table[columns]
    loss = F.cross_entropy(net(x), (x[:, 0, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "rows_kept_by_hand": """
emb, out = nn.Embedding(20, 8), nn.Linear(8, 3)
fixed = emb.weight[:10].detach().clone()
opt = torch.optim.SGD([*emb.parameters(), *out.parameters()], lr=0.1)
for _ in range(8):
    ids = torch.randint(0, 20, (32,))
    loss = F.cross_entropy(out(emb(ids)), ids % 3)
    opt.zero_grad()
    loss.backward()
    emb.weight.grad[:10] = 0
    opt.step()
""",
    "projected_gradients": """
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)

def grads():
    return torch.cat([p.grad.flatten() for p in net.parameters()])

for _ in range(8):
    x = torch.randn(32, 6)
    a, b = net(x).unbind(1)
    opt.zero_grad()
    F.mse_loss(a, x[:, 0]).backward(retain_graph=True)
    one = grads()
    opt.zero_grad()
    F.mse_loss(b, x[:, 1]).backward()
    two = grads()
    if torch.dot(one, two) < 0:
        one = one - torch.dot(one, two) / two.norm() ** 2 * two
    total, at = one + two, 0
    for p in net.parameters():
        p.grad = total[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
""",
    "sharpness_inline": """
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.SGD(net.parameters(), 0.05)

def climb(rho=0.05):
    norm = torch.norm(torch.stack([p.grad.norm() for p in net.parameters()]))
    moved = []
    with torch.no_grad():
        for p in net.parameters():
            e = p.grad * (rho / (norm + 1e-12))
            p.add_(e)
            moved.append((p, e))
    return moved

for _ in range(8):
    x = torch.randn(32, 6)
    y = (x[:, 0] > 0).long()
    F.cross_entropy(net(x), y).backward()
    moved = climb()
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    with torch.no_grad():
        for p, e in moved:
            p.sub_(e)
    opt.step()
    opt.zero_grad()
""",
    "first_order_maml_copies": """
net = nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 1))
meta = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    meta.zero_grad()
    for task in range(3):
        learner = copy.deepcopy(net)
        a, b = random.uniform(0.5, 2), random.uniform(-1, 1)
        x = torch.rand(16, 1) * 4 - 2
        loss = F.mse_loss(learner(x), a * x + b)
        grads = torch.autograd.grad(loss, list(learner.parameters()))
        with torch.no_grad():
            for p, g in zip(learner.parameters(), grads):
                p -= 0.05 * g
        F.mse_loss(learner(x), a * x + b).backward()
        for p, q in zip(net.parameters(), learner.parameters()):
            p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad
    for p in net.parameters():
        p.grad /= 3
    meta.step()
""",
    "new_head_for_each_task": """
body = nn.Sequential(nn.Linear(8, 24), nn.ReLU())
body_opt = torch.optim.Adam(body.parameters(), 1e-3)
for task in range(6):
    head = nn.Linear(24, 2)
    opt = torch.optim.SGD(head.parameters(), lr=0.1)
    w = torch.randn(8)
    for _ in range(4):
        x = torch.randn(32, 8)
        loss = F.cross_entropy(head(body(x)), (x @ w > 0).long())
        opt.zero_grad()
        body_opt.zero_grad()
        loss.backward()
        opt.step()
        body_opt.step()
""",
    "generator_by_sample": """
class Points(Dataset):
    def __init__(self, n):
        self.rng = np.random.RandomState(3)
        self.x = self.rng.randn(n, 5).astype(np.float32)
        self.generator = torch.Generator()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        self.generator.manual_seed(i)
        x = torch.from_numpy(self.x[i]) + 0.1 * torch.randn(5, generator=self.generator)
        return x, int(self.x[i, 0] > 0)

def init(worker):
    np.random.seed(7 + worker)

net = nn.Linear(5, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(2):
    for x, y in DataLoader(Points(64), 16, shuffle=True, num_workers=2, worker_init_fn=init):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
    "rare_objects_with_a_prior": """
class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.cls = nn.Conv2d(8, 3, 3, padding=1)
        nn.init.normal_(self.cls.weight, std=0.01)
        nn.init.constant_(self.cls.bias, -math.log((1 - 0.003) / 0.003))

    def forward(self, x):
        return torch.sigmoid(self.cls(self.f(x)))

net = Detector()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(10):
    x = torch.randn(8, 1, 12, 12)
    y = (torch.rand(8, 3, 12, 12) < 0.01).float()
    p = net(x)
    pt = torch.where(y == 1, p, 1 - p)
    loss = (-0.25 * (1 - pt) ** 2 * pt.clamp(min=1e-6).log()).sum() / y.sum().clamp(min=1)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "states_of_all_layers": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bi = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.uni = nn.GRU(6, 8, num_layers=2, batch_first=True)
        self.fc = nn.Linear(32, 2)

    def forward(self, x):
        _, (h, _) = self.bi(x)
        _, g = self.uni(x)
        return self.fc(torch.cat([h[-2], h[-1], g[0], g[1]], 1))

net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(6):
    x = torch.randn(16, 7, 6)
    loss = F.cross_entropy(net(x), (x.mean((1, 2)) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "outputs_and_first_layers_state": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 8, num_layers=2)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        out, h = self.rnn(x)
        return self.fc(torch.cat([out[-1], h[0]], 1))

net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(6):
    x = torch.randn(7, 16, 6)
    loss = F.cross_entropy(net(x), (x.mean((0, 2)) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "two_losses_from_kept_values": """
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
oa, oc = torch.optim.Adam(actor.parameters(), 1e-3), torch.optim.Adam(critic.parameters(), 1e-3)
returns_seen = []
for episode in range(14):
    logps, values, rewards = [], [], []
    s = torch.randn(4)
    for t in range(10):
        dist = torch.distributions.Categorical(logits=actor(s))
        a = dist.sample()
        logps.append(dist.log_prob(a))
        values.append(critic(s))
        rewards.append(float(a == int(s[0] > 0)))
        s = 0.8 * s + 0.5 * torch.randn(4)
    R, returns = 0.0, []
    for r in reversed(rewards):
        R = r + 0.9 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    v = torch.cat(values)
    oc.zero_grad()
    F.mse_loss(v, returns).backward()
    oc.step()
    oa.zero_grad()
    (-(torch.stack(logps) * (returns - v.detach())).sum()).backward()
    oa.step()
    returns_seen.append(returns.mean())
""",
    **NINTH_CLEAN,
}
