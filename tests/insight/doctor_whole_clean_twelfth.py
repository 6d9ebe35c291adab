"""Whole programs without a mistake: one picture alone, seeds for each sample, parts of samplers."""

from __future__ import annotations

from doctor_whole_clean_thirteenth import THIRTEENTH_CLEAN

TWELFTH_CLEAN: dict[str, str] = {
    "deep_image_prior": """
target = torch.rand(1, 1, 16, 16)
noisy = target + 0.1 * torch.randn_like(target)
z = torch.randn(1, 4, 16, 16)

def part(a, b):
    return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.LeakyReLU(0.1)]

net = nn.Sequential(*part(4, 16), *part(16, 16), nn.Conv2d(16, 1, 1), nn.Sigmoid())
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for i in range(15):
    out = net(z + 0.03 * torch.randn_like(z))
    loss = F.mse_loss(out, noisy)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "sharded_stream": """
class Lines(torch.utils.data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        rank, world = (info.id, info.num_workers) if info else (0, 1)
        for i in range(rank, self.n, world):
            g = torch.Generator().manual_seed(i)
            x = torch.randn(6, generator=g)
            yield x, int(x[0] > 0)

net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(2):
    for x, y in DataLoader(Lines(96), batch_size=8, num_workers=2):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
    "tabular_q": """
S, A = 12, 3
Q = nn.Embedding(S, A)
nn.init.zeros_(Q.weight)
opt = torch.optim.SGD(Q.parameters(), lr=0.5)
s = 0
for t in range(120):
    a = random.randrange(A) if random.random() < 0.5 else int(Q.weight[s].argmax())
    n = max(0, min(S - 1, s + (a - 1)))
    r = 1.0 if n == S - 1 else 0.0
    with torch.no_grad():
        target = r + (0.0 if r else 0.9 * Q(torch.tensor([n])).max().item())
    q = Q(torch.tensor([s]))[0, a]
    loss = 0.5 * (q - target) ** 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    s = 0 if r else n
""",
    "rare_positives": """
x = torch.randn(600, 10)
y = (x[:, 0] + 0.3 * torch.randn(600) > 2.2).float()
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
net[-1].bias.data.fill_(math.log(0.02 / 0.98))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
for epoch in range(2):
    for a, b in loader:
        logit = net(a).squeeze(-1)
        loss = F.binary_cross_entropy_with_logits(logit, b, pos_weight=torch.tensor(20.0))
        opt.zero_grad()
        loss.backward()
        opt.step()
with torch.no_grad():
    p = net(x).sigmoid().squeeze(-1)
    print(((p > 0.5).float() == y).float().mean())
""",
    "checkpointed": """
from clew.utils.checkpoint import checkpoint

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(8, 32)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.1))
            for _ in range(4)
        )
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + checkpoint(b, h, use_reentrant=False)
        return self.out(h)

net = Deep()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randn(32, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > x[:, 1]).long()).backward()
    opt.step()
""",
    "anomaly_autoencoder": """
normal = torch.randn(200, 12) @ torch.randn(12, 12) * 0.3
odd = torch.randn(40, 12) * 2
train, held = normal[:160], normal[160:]
enc, dec = [nn.Linear(12, 6), nn.ELU(), nn.Linear(6, 3)], [nn.Linear(3, 6), nn.ELU()]
ae = nn.Sequential(*enc, nn.ELU(), *dec, nn.Linear(6, 12))
opt = torch.optim.Adam(ae.parameters(), lr=2e-3, weight_decay=1e-5)
for epoch in range(4):
    ae.train()
    for (batch,) in DataLoader(TensorDataset(train), batch_size=32, shuffle=True):
        loss = F.mse_loss(ae(batch), batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
ae.eval()
with torch.no_grad():
    err = lambda x: (ae(x) - x).pow(2).mean(1)
    limit = err(held).quantile(0.95)
    print((err(odd) > limit).float().mean().item())
""",
    "seeds_and_samplers_on_purpose": """
class Points(Dataset):
    def __init__(self, base):
        self.base = base
        self.x = torch.randn(60, 5)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        np.random.seed(self.base + i)
        noise = torch.from_numpy(np.random.randn(5).astype(np.float32))
        return self.x[i] + 0.1 * noise, 2 * (self.x[i, 0] > 0).float() - 1

Sampler = torch.utils.data.SubsetRandomSampler
data = Points(7)
train = DataLoader(data, 10, sampler=Sampler(range(40)))
fit = DataLoader(data, 10, sampler=Sampler(range(20)))
test = DataLoader(data, 10, sampler=Sampler(range(40, 60)))
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
loss_fn = nn.SoftMarginLoss()
for epoch in range(3):
    for x, y in train:
        opt.zero_grad()
        loss_fn(net(x).squeeze(1), y).backward()
        opt.step()
    with torch.no_grad():
        for loader in (fit, test):
            print(sum(loss_fn(net(x).squeeze(1), y).item() for x, y in loader))
""",
    "pruned_by_masks": """
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
masks = {}
with torch.no_grad():
    for n, p in net.named_parameters():
        if p.dim() > 1:
            masks[n] = (p.abs() > p.abs().quantile(0.5)).float()
            p.mul_(masks[n])
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for step in range(10):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    for n, p in net.named_parameters():
        if n in masks:
            p.grad *= masks[n]
    opt.step()
""",
    "dreaming_through_a_model": """
world = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 4))
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1), nn.Tanh())
ow, op = torch.optim.Adam(world.parameters(), 3e-3), torch.optim.Adam(policy.parameters(), 1e-3)
for it in range(12):
    s, a = torch.randn(64, 4), torch.rand(64, 1) * 2 - 1
    nxt = 0.9 * s + 0.2 * a
    ow.zero_grad()
    F.mse_loss(world(torch.cat([s, a], 1)), nxt).backward()
    ow.step()
    world.requires_grad_(False)
    s = torch.randn(64, 4)
    ret = 0
    for t in range(6):
        s = world(torch.cat([s, policy(s)], 1))
        ret = ret - 0.95**t * s.pow(2).mean()
    op.zero_grad()
    (-ret).backward()
    op.step()
    world.requires_grad_(True)
""",
    "attention_pooling_over_time": """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(6, 24, 3, padding=1)
        self.att = nn.Conv1d(24, 1, 1)
        self.fc = nn.Linear(24, 4)

    def forward(self, x, lengths):
        h = F.relu(self.conv(x))
        a = self.att(h).squeeze(1)
        a = a.masked_fill(torch.arange(x.size(2)) >= lengths[:, None], float("-inf"))
        w = a.softmax(dim=1)
        return self.fc(torch.einsum("bct,bt->bc", h, w))

net = Pool()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for _ in range(10):
    x = torch.randn(16, 6, 20)
    lengths = torch.randint(5, 21, (16,))
    loss = F.cross_entropy(net(x, lengths), x[:, :4, :5].mean(2).argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "gradients_cleaned": """
words, out = nn.Embedding(40, 8), nn.Linear(8, 3)
opt = torch.optim.AdamW([*words.parameters(), *out.parameters()], lr=1e-2)
for step in range(8):
    ids = torch.randint(0, 20, (16,))
    opt.zero_grad()
    F.cross_entropy(out(words(ids)), ids % 3).backward()
    for p in words.parameters():
        p.grad[torch.isnan(p.grad)] = 0
        p.grad[p.grad.abs() < 1e-6] = 0.0
    opt.step()
""",
    "two_names_of_one_tower": """
class Twin(nn.Module):
    def __init__(self, tower):
        super().__init__()
        self.left = tower
        self.right = tower

    def forward(self, a, b, c):
        return self.left(a), self.right(b), self.right(c)

twin = Twin(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8)))
opt = torch.optim.Adam(twin.parameters(), lr=2e-3)
centres = torch.randn(6, 10)
for step in range(20):
    c = torch.randint(0, 6, (32,))
    other = (c + torch.randint(1, 6, (32,))) % 6
    seen = [centres[k] + 0.4 * torch.randn(32, 10) for k in (c, c, other)]
    loss = F.triplet_margin_loss(*twin(*seen), margin=0.5)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "accuracy_on_some_of_what_is_trained_on": """
x = torch.randn(700, 10)
data = TensorDataset(x, (x @ torch.randn(10, 3)).argmax(1))
order = torch.randperm(700).tolist()
train, held_out = Subset(data, order[:560]), Subset(data, order[560:])
loader = DataLoader(train, 32, shuffle=True)
shown = {"train": DataLoader(Subset(train, range(100)), 50), "test": DataLoader(held_out, 70)}
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(2):
    for a, b in loader:
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
    for name, each in shown.items():
        with torch.no_grad():
            print(name, sum((net(a).argmax(1) == b).sum().item() for a, b in each))
""",
    "advantage_of_values_that_are_trained_apart": """
actor = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
for step in range(12):
    s, s2 = torch.randn(64, 4), torch.randn(64, 4)
    reward, done = torch.randn(64), (torch.rand(64) < 0.1).float()
    dist = torch.distributions.Categorical(logits=actor(s))
    action = dist.sample()
    value = critic(s).squeeze(-1)
    target = reward + 0.99 * (1 - done) * critic(s2).squeeze(-1)
    advantage = (target - value).detach()
    loss = F.smooth_l1_loss(value, target.detach()) - (dist.log_prob(action) * advantage).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "small_parts_of_a_batch": """
x = torch.randn(512, 6)
data = TensorDataset(x, (x[:, :1] - x[:, 1:2]).relu())
loader = DataLoader(data, batch_size=8, shuffle=True)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.08)
for epoch in range(3):
    opt.zero_grad()
    for i, (a, b) in enumerate(loader):
        loss = F.mse_loss(net(a), b) / 8
        loss.backward()
        if (i + 1) % 8 == 0:
            opt.step()
            opt.zero_grad()
""",
    "two_tasks_in_turn": """
trunk = nn.Sequential(nn.Linear(5, 32), nn.ReLU())
one, two = nn.Linear(32, 1), nn.Linear(32, 3)
opt = torch.optim.SGD([*trunk.parameters(), *one.parameters(), *two.parameters()], lr=0.05)
w = torch.randn(5, 3)
for step in range(60):
    x = torch.randn(32, 5)
    if step % 2:
        loss = F.mse_loss(one(trunk(x)), 3 * x[:, :1])
    else:
        loss = 0.1 * F.cross_entropy(two(trunk(x)), (x @ w).argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "wrapper_of_an_optimizer_that_skips_steps": """
class Gathering(torch.optim.Optimizer):
    def __init__(self, optimizer, every):
        self.optimizer, self.every, self.count = optimizer, every, 0

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def step(self, closure=None):
        self.count += 1
        if self.count % self.every == 0:
            self.optimizer.step()

    def zero_grad(self, set_to_none=True):
        if self.count % self.every == 0:
            self.optimizer.zero_grad(set_to_none=set_to_none)

net = nn.Linear(6, 2)
opt = Gathering(torch.optim.AdamW(net.parameters(), lr=1e-2), 2)
for i in range(24):
    x = torch.randn(8, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long()) / 2
    loss.backward()
    opt.step()
    opt.zero_grad()
""",
    "closure_that_gathers": """
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)

def closure(first):
    x = torch.randn(8, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long()) / 2
    if first:
        opt.zero_grad()
    loss.backward()
    return loss

for i in range(12):
    closure(True)
    opt.step(lambda: closure(False))
""",
    "a_wrapper_with_two_names": """
class Wrapper(nn.Module):
    def __init__(self, module, original=None):
        super().__init__()
        self.inner = module
        self.original = module if original is None else original

    def forward(self, x):
        return self.inner(x)

net = Wrapper(nn.Linear(6, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for i in range(12):
    x = torch.randn(8, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a_second_name_for_a_part": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.features = self.body
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.features(x))

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for i in range(12):
    x = torch.randn(8, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    **THIRTEENTH_CLEAN,
}
