"""Whole programs without a mistake: pairs, bags, orders and copies that are meant."""

from __future__ import annotations

FIFTH_CLEAN: dict[str, str] = {
    "adapters_of_low_rank": """
class Low(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = nn.Parameter(torch.ones(base.out_features))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.t() @ self.b.t())

class Gate(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.body, self.gate = nn.Linear(d, d), nn.Linear(d, d)
        nn.init.zeros_(self.gate.weight)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x):
        g = torch.sigmoid(self.gate(x))
        return g * torch.relu(self.body(x)) + (1 - g) * x

net = nn.Sequential(Low(nn.Linear(6, 16)), nn.ReLU(), Gate(16), Low(nn.Linear(16, 3)))
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-3)
x = torch.randn(128, 6)
y = x[:, :3].argmax(1)
for step in range(16):
    i = torch.randint(0, 128, (32,))
    loss = F.cross_entropy(net(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "loops_that_end_early": """
def first_loss(model, loader):
    for x, y in loader:
        return F.cross_entropy(model(x), y).item()

data = TensorDataset(torch.randn(100, 6), torch.randint(0, 3, (100,)))
loader = DataLoader(data, batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(5):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    with torch.no_grad():
        first_loss(net, loader)
""",
    "equal_weights_by_nature": """
class Prototype(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4, 4))
        self.fc = nn.Linear(4, 4)
        self.mixing = nn.Parameter(torch.zeros(4, 3))
    def forward(self, x):
        w = self.mixing.softmax(0)
        h = torch.stack([x, x.tanh(), x.relu()], -1)
        return self.fc((h * w).sum(-1)) * self.scale.mean()
net = Prototype()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(10):
    x = torch.randn(32, 4)
    loss = F.mse_loss(net(x), x.flip(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "critic_and_actor_share_an_encoder": """
enc, pi = nn.Linear(6, 16), nn.Linear(16, 2)
q = nn.Sequential(nn.Linear(18, 16), nn.ReLU(), nn.Linear(16, 1))
oq = torch.optim.Adam([*enc.parameters(), *q.parameters()], lr=1e-3)
op = torch.optim.Adam(pi.parameters(), lr=1e-3)
for step in range(12):
    s, a, r = torch.randn(32, 6), torch.randn(32, 2), torch.randn(32)
    h = torch.relu(enc(s))
    lq = F.mse_loss(q(torch.cat([h, a], 1)).squeeze(1), r)
    oq.zero_grad()
    lq.backward()
    oq.step()
    h = torch.relu(enc(s)).detach()
    lp = -q(torch.cat([h, torch.tanh(pi(h))], 1)).mean()
    op.zero_grad()
    lp.backward()
    op.step()
""",
    "cycle_of_two_generators": """
ab, ba = nn.Linear(6, 6), nn.Linear(6, 6)
da, db = nn.Linear(6, 1), nn.Linear(6, 1)
og = torch.optim.Adam([*ab.parameters(), *ba.parameters()], lr=1e-3)
od = torch.optim.Adam([*da.parameters(), *db.parameters()], lr=1e-3)
for step in range(12):
    a, b = torch.randn(16, 6), torch.randn(16, 6) + 1
    fb, fa = ab(a), ba(b)
    lg = ((db(fb) - 1) ** 2).mean() + ((da(fa) - 1) ** 2).mean()
    lg = lg + F.l1_loss(ba(fb), a) + F.l1_loss(ab(fa), b)
    og.zero_grad()
    lg.backward()
    og.step()
    od.zero_grad()
    ld = 0
    for d, real, fake in ((da, a, fa), (db, b, fb)):
        ld = ld + ((d(real) - 1) ** 2).mean() + (d(fake.detach()) ** 2).mean()
    ld.backward()
    od.step()
""",
    "encoder_in_seq_first": """
class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(30, 16)
        self.register_buffer("pe", torch.randn(64, 1, 16) * 0.1)
        self.t = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 1)
        self.f = nn.Linear(16, 3)
    def forward(self, x):
        h = self.e(x.transpose(0, 1)) * 4
        h = h + self.pe[: h.size(0)]
        h = self.t(h)
        return self.f(h[0]), self.f(h.mean(dim=0)), self.f(h).transpose(0, 1)[:, 0]
net = Enc()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randint(0, 30, (10, 6))
    y = x[:, 1] % 3
    loss = sum(F.cross_entropy(o, y) for o in net(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "contrast_with_several_positives": """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(24, 8)
    y = torch.arange(24) % 4
    z = F.normalize(net(x), dim=1)
    sim = z @ z.t() / 0.5
    self_mask = torch.eye(24, dtype=torch.bool)
    logp = F.log_softmax(sim.masked_fill(self_mask, -1e9), dim=1)
    positive = ((y[:, None] == y[None, :]) & ~self_mask).float()
    loss = -((positive * logp).sum(1) / positive.sum(1)).mean()
    soft = positive / positive.sum(1, keepdim=True)
    loss = loss + 0.1 * F.cross_entropy(sim, soft)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "masked_after_reduction_none": """
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(30, 16, padding_idx=0)
        self.r, self.o = nn.GRU(16, 24, batch_first=True), nn.Linear(24, 30)
    def forward(self, x):
        return self.o(self.r(self.e(x))[0])
net = LM()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randint(1, 30, (16, 10))
    lengths = torch.randint(4, 10, (16,))
    x[torch.arange(10)[None] >= lengths[:, None]] = 0
    logits, y = net(x[:, :-1]), x[:, 1:]
    keep = y != 0
    loss = F.cross_entropy(logits[keep], y[keep])
    each = F.cross_entropy(logits.transpose(1, 2), y, reduction="none")
    loss = loss + (each * keep).sum() / keep.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "sets_and_lists_in_place": """
class Log:
    def __init__(self):
        self.seen, self.rows = set(), []
    def add(self, x):
        self.seen.add(x)
        self.rows.append(x)
        self.rows.sort()
        return self

log = Log()
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(inplace=True), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x = torch.randn(64, 6)
for step in range(10):
    h = x.clone()
    h.clamp_(-2, 2)
    F.relu(h, inplace=True)
    torch.clamp(h, max=1.5, out=h)
    net.float()
    net.to("cpu")
    loss = net(h).square().mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    log.add(round(loss.item(), 3))
    x.detach_()
    h.sum().item()
""",
    "random_search_over_models": """
class Net(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, h), nn.ReLU(), nn.Linear(h, 1))
    def forward(self, x):
        return self.f(x)
x = torch.randn(64, 4)
y = x[:, :1]
best = None
for trial in range(5):
    torch.manual_seed(trial)
    net = Net(16)
    opt = torch.optim.Adam(net.parameters(), lr=10 ** random.uniform(-3, -2))
    order = torch.Generator().manual_seed(0)
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, generator=order)
    for epoch in range(2):
        for a, b in loader:
            loss = F.mse_loss(net(a), b)
            opt.zero_grad()
            loss.backward()
            opt.step()
    best = loss.item() if best is None else min(best, loss.item())
""",
    "teacher_student_same_loop": """
s, t = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.SGD(s.parameters(), lr=0.1)
for step in range(10):
    x = torch.randn(16, 4)
    loss = F.mse_loss(s(x), t(x).detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
    new = {}
    for (n, a), b in zip(t.named_parameters(), s.parameters()):
        a = 0.9 * a.detach() + 0.1 * b.detach()
        new[n] = a
    t.load_state_dict(new)
""",
    "attention_pool_queries": """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.k = nn.Linear(5, 12), nn.Linear(12, 12)
        self.q = nn.Parameter(torch.randn(12) * 0.2)
        self.o = nn.Linear(12, 2)
    def forward(self, x):
        h = torch.tanh(self.f(x))
        w = F.softmax(self.k(h) @ self.q, dim=1)
        a = (w.unsqueeze(1) @ h).squeeze(1)
        w2 = F.softmax(h.mean(-1, keepdim=True), dim=1)
        return self.o(a + (w2 * h).sum(1) + (w2.transpose(1, 2) @ h).squeeze(1))
net = Pool()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randn(16, 7, 5)
    loss = F.cross_entropy(net(x), (x.mean((1, 2)) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "gan_joint_encoder": """
e, g = nn.Linear(6, 3), nn.Linear(3, 6)
d = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 1))
oeg = torch.optim.Adam([*e.parameters(), *g.parameters()], lr=1e-3)
od = torch.optim.Adam(d.parameters(), lr=1e-3)
for step in range(10):
    x, z = torch.randn(16, 6), torch.randn(16, 3)
    a, b = torch.cat([x, e(x)], 1), torch.cat([g(z), z], 1)
    ld = F.softplus(-d(a.detach())).mean() + F.softplus(d(b.detach())).mean()
    od.zero_grad()
    ld.backward()
    od.step()
    lg = F.softplus(d(a)).mean() + F.softplus(-d(b)).mean()
    oeg.zero_grad()
    lg.backward()
    oeg.step()
""",
    "siamese_supervised_pairs": """
net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 6))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
crit = nn.CosineEmbeddingLoss(margin=0.2)
for step in range(60):
    a = torch.randn(32, 8)
    same = torch.rand(32) < 0.5
    b = torch.where(same[:, None], a + 0.1 * torch.randn(32, 8), torch.randn(32, 8))
    loss = crit(net(a), net(b), torch.where(same, 1.0, -1.0))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "order_of_what_is_only_evaluated": """
from clew.utils.data.distributed import DistributedSampler

train = TensorDataset(torch.randn(96, 6), torch.randint(0, 3, (96,)))
test = TensorDataset(torch.randn(40, 6), torch.randint(0, 3, (40,)))
parts = DataLoader(test, batch_size=5, sampler=DistributedSampler(test, 2, 0))
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)

def validate():
    order = torch.Generator().manual_seed(0)
    some = DataLoader(test, batch_size=8, shuffle=True, generator=order)
    with torch.no_grad():
        for x, y in some:
            F.cross_entropy(net(x), y)
        for x, y in parts:
            F.cross_entropy(net(x), y)

for epoch in range(6):
    for x, y in DataLoader(train, batch_size=24, shuffle=True):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    validate()
""",
    "copies_trained_by_hand": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return self.f(x)

net = Net()
meta = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    fast = Net()
    fast.load_state_dict(net.state_dict())
    w = torch.randn(2, 1)
    for _ in range(3):
        x = torch.randn(16, 2)
        fast.zero_grad()
        F.mse_loss(fast(x), x @ w).backward()
        with torch.no_grad():
            for p in fast.parameters():
                p -= 0.05 * p.grad
    meta.zero_grad()
    for p, q in zip(net.parameters(), fast.parameters()):
        p.grad = p.detach() - q.detach()
    meta.step()
""",
    "labels_against_the_numbers_of_classes": """
net = nn.Linear(6, 8)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
classes = torch.arange(8)
for step in range(8):
    x = torch.randn(8, 6)
    y = x.argmax(1)
    column = y.reshape(-1, 1)
    hot = (column == classes).float()
    loss = F.mse_loss(net(x).softmax(1), hot)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        found = (column == classes).any(0).sum()
""",
    "sizes_after_a_layer": """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(6, 6, 3, padding=1)
        self.fc = nn.Linear(6, 2)

    def both(self, x):
        return self.conv(x.transpose(1, 2)), x.mean()

    def forward(self, x):
        b, t, c = x.shape
        x, mean = self.both(x)
        return self.fc(x.reshape(b, c, t).mean(2)) + mean

net = Layer()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(6):
    loss = F.cross_entropy(net(torch.randn(8, 9, 6)), torch.randint(0, 2, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
