"""Whole programs without a mistake: closures, adapters, queues, energies, layers used twice."""

from __future__ import annotations

from doctor_whole_clean_eleventh import ELEVENTH_CLEAN

TENTH_CLEAN: dict[str, str] = {
    "iterator_made_in_each_epoch": """
x = torch.randn(96, 6)
y = (x[:, 0] > 0).long()
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
warm = zip(x.split(16), y.split(16))
for a, b in warm:
    opt.zero_grad()
    F.cross_entropy(net(a), b).backward()
    opt.step()
for epoch in range(3):
    batches = zip(x.split(16), y.split(16))
    for i, (a, b) in enumerate(batches):
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
stream = ((x[i : i + 16], y[i : i + 16]) for i in range(0, 96, 16))
for a, b in stream:
    for _ in range(2):
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
""",
    "one_layer_twice_and_a_spare": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.rec = nn.Linear(8, 32), nn.Linear(32, 32)
        self.out, self.aux = nn.Linear(32, 3), nn.Linear(32, 3)

    def forward(self, x, aux=False):
        h = F.relu(self.inp(x))
        for _ in range(2):
            h = F.relu(self.rec(h))
        if aux:
            return self.aux(h)
        return self.out(h)

net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
""",
    "closures": """
x = torch.linspace(-2, 2, 60).unsqueeze(1)
y = torch.sin(2 * x)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=5)

def closure():
    opt.zero_grad()
    total = 0.0
    for a, b in zip(x.split(20), y.split(20)):
        loss = F.mse_loss(net(a), b) / 3
        loss.backward()
        total += loss.item()
    return torch.tensor(total)

for _ in range(6):
    opt.step(closure)

net2 = nn.Linear(1, 1)
sgd = torch.optim.SGD(net2.parameters(), 0.01)

def fit():
    for p in net2.parameters():
        p.grad = None
    loss = F.mse_loss(net2(x), y)
    loss.backward()
    return loss

for _ in range(8):
    sgd.step(fit)
""",
    "state_and_parameters_in_one_optimizer": """
codes = torch.randn(64, 3, requires_grad=True)
offset = torch.zeros(3)
dec = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 5))
data = torch.randn(64, 5)
opt = torch.optim.Adam([{"params": dec.parameters()}, {"params": [codes], "lr": 1e-2}], 1e-3)
for step in range(12):
    idx = torch.randperm(64)[:16]
    loss = F.mse_loss(dec(codes[idx] + offset), data[idx]) + 1e-3 * codes[idx].pow(2).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "probabilities_scored_once": """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 8)
    y = x[:, :4].argmax(1)
    scores = net(x)
    probs = torch.softmax(scores, 1)
    entropy = -(probs * (probs + 1e-9).log()).sum(1).mean()
    loss = F.cross_entropy(scores, y) - 0.01 * entropy
    opt.zero_grad()
    loss.backward()
    opt.step()
    top = probs.detach().argmax(1)
""",
    "pairwise_hinge": """
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 6)
    rank = x[:, 0]
    s = net(x)
    wanted = torch.sign(rank[:, None] - rank)
    loss = F.relu(1 - wanted * (s - s.t())).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "temperature_calibration": """
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(12):
    x = torch.randn(64, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
net.eval()
xv = torch.randn(128, 6)
yv = xv[:, :3].argmax(1)
with torch.no_grad():
    logits = net(xv)
T = nn.Parameter(torch.ones(1))
cal = torch.optim.LBFGS([T], lr=0.05, max_iter=10)

def closure():
    cal.zero_grad()
    loss = F.cross_entropy(logits / T, yv)
    loss.backward()
    return loss

for _ in range(3):
    cal.step(closure)
""",
    "gan_hinge_r1": """
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
og = torch.optim.Adam(G.parameters(), 2e-4, betas=(0, 0.99))
od = torch.optim.Adam(D.parameters(), 2e-4, betas=(0, 0.99))
avg = copy.deepcopy(G)
for step in range(12):
    real = (torch.randn(32, 2) * 0.2 + 1).requires_grad_(True)
    out = D(real)
    fake = G(torch.randn(32, 4))
    d_loss = F.relu(1 - out).mean() + F.relu(1 + D(fake.detach())).mean()
    if step % 4 == 0:
        (g,) = torch.autograd.grad(out.sum(), real, create_graph=True)
        d_loss = d_loss + 5 * g.pow(2).sum(1).mean()
    od.zero_grad(set_to_none=True)
    d_loss.backward()
    od.step()
    g_loss = -D(G(torch.randn(32, 4))).mean()
    og.zero_grad(set_to_none=True)
    g_loss.backward()
    og.step()
    with torch.no_grad():
        for a, p in zip(avg.parameters(), G.parameters()):
            a.copy_(p.lerp(a, 0.99))
""",
    "energy_model_langevin": """
E = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(E.parameters(), 1e-3)
chain = torch.randn(64, 2)
for step in range(10):
    data = torch.randn(64, 2) * 0.3 + torch.tensor([1.0, 0.0])
    x = chain.clone().requires_grad_(True)
    for _ in range(5):
        (g,) = torch.autograd.grad(E(x).sum(), x)
        x = (x - 0.1 * g + 0.05 * torch.randn_like(x)).detach().requires_grad_(True)
    chain = x.detach()
    real, fake = E(data), E(chain)
    loss = real.mean() - fake.mean() + 0.01 * (real.pow(2).mean() + fake.pow(2).mean())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "moco_queue": """
q_enc = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
k_enc = copy.deepcopy(q_enc)
for p in k_enc.parameters():
    p.requires_grad = False
queue = F.normalize(torch.randn(8, 128), dim=0)
ptr = 0
opt = torch.optim.SGD(q_enc.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
for step in range(12):
    x = torch.randn(16, 10)
    q = F.normalize(q_enc(x + 0.1 * torch.randn_like(x)), dim=1)
    with torch.no_grad():
        for pk, pq in zip(k_enc.parameters(), q_enc.parameters()):
            pk.data = pk.data * 0.99 + pq.data * 0.01
        k = F.normalize(k_enc(x + 0.1 * torch.randn_like(x)), dim=1)
    pos = (q * k).sum(1, keepdim=True)
    neg = q @ queue.clone().detach()
    logits = torch.cat([pos, neg], 1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(16, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue[:, ptr : ptr + 16] = k.t()
    ptr = (ptr + 16) % 128
""",
    "gradual_unfreezing": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x))

net = Net()
net.body.requires_grad_(False)
opt = torch.optim.AdamW([{"params": net.head.parameters(), "lr": 1e-2}], weight_decay=0.01)
for epoch in range(4):
    if epoch == 2:
        net.body.requires_grad_(True)
        opt.add_param_group({"params": net.body.parameters(), "lr": 1e-3})
    net.train()
    if epoch < 2:
        net.body.eval()
    for _ in range(4):
        x = torch.randn(32, 8)
        opt.zero_grad()
        F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
        opt.step()
""",
    "sac_style": """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1 = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
        self.q2 = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, s, a):
        sa = torch.cat([s, a], -1)
        return self.q1(sa), self.q2(sa)

actor, critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)), Critic()
target = copy.deepcopy(critic).requires_grad_(False)
log_alpha = torch.zeros(1, requires_grad=True)
oa, oc = torch.optim.Adam(actor.parameters(), 3e-4), torch.optim.Adam(critic.parameters(), 3e-4)
ol = torch.optim.Adam([log_alpha], 3e-4)

def act(s):
    mu, log_std = actor(s).chunk(2, -1)
    dist = torch.distributions.Normal(mu, log_std.clamp(-5, 2).exp())
    u = dist.rsample()
    a = torch.tanh(u)
    logp = (dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)).sum(-1, keepdim=True)
    return a, logp

for t in range(12):
    s, n = torch.randn(64, 4), torch.randn(64, 4)
    a = torch.rand(64, 1) * 2 - 1
    r = -(a - s[:, :1].tanh()).pow(2)
    done = (torch.rand(64, 1) < 0.05).float()
    with torch.no_grad():
        na, nlp = act(n)
        nq = torch.min(*target(n, na)) - log_alpha.exp() * nlp
        y = r + 0.99 * (1 - done) * nq
    q1, q2 = critic(s, a)
    oc.zero_grad()
    (F.mse_loss(q1, y) + F.mse_loss(q2, y)).backward()
    oc.step()
    pa, lp = act(s)
    oa.zero_grad()
    (log_alpha.exp().detach() * lp - torch.min(*critic(s, pa))).mean().backward()
    oa.step()
    ol.zero_grad()
    (-(log_alpha * (lp.detach() - 1.0)).mean()).backward()
    ol.step()
    with torch.no_grad():
        for p, q in zip(critic.parameters(), target.parameters()):
            q.data.mul_(0.995).add_(p.data, alpha=0.005)
""",
    "lora_adapters": """
class LoRA(nn.Module):
    def __init__(self, base, r=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(r, base.in_features) * 0.01)
        self.B = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + (x @ self.A.t()) @ self.B.t()

net = nn.Sequential(LoRA(nn.Linear(8, 32)), nn.ReLU(), LoRA(nn.Linear(32, 3)))
trainable = [p for p in net.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-3)
for _ in range(10):
    x = torch.randn(32, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
""",
    "stepped_and_run_backward_again_on_purpose": """
class Lookahead:
    def __init__(self, base, k=3):
        self.base, self.k, self.n = base, k, 0
        self.slow = [p.detach().clone() for g in base.param_groups for p in g["params"]]

    def step(self):
        self.base.step()
        self.n += 1
        if self.n % self.k == 0:
            with torch.no_grad():
                mine = [p for g in self.base.param_groups for p in g["params"]]
                for s, p in zip(self.slow, mine):
                    s.lerp_(p, 0.5)
                    p.copy_(s)

class Rate(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)

net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
one, two = Lookahead(Rate(net[0].parameters(), lr=0.05)), Rate(net[2].parameters(), lr=0.05)
for _ in range(10):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    net.zero_grad()
    loss.backward(retain_graph=True)
    sizes = [p.grad.norm() for p in net.parameters()]
    net.zero_grad()
    (loss / (1 + max(sizes).item())).backward()
    one.step()
    two.step()
""",
    "backwards_for_parts": """
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og, od = torch.optim.SGD(G.parameters(), 0.01), torch.optim.SGD(D.parameters(), 0.01)
for _ in range(10):
    out = D(G(torch.randn(32, 4)))
    loss = F.softplus(out).mean()
    og.zero_grad()
    od.zero_grad()
    loss.backward(inputs=list(D.parameters()), retain_graph=True)
    loss.backward(inputs=list(G.parameters()))
    for p in G.parameters():
        p.grad.neg_()
    og.step()
    od.step()
""",
    "own_optimizer_with_a_rate": """
class Plain(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {})
        self.lr = lr

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(self.lr * p.grad)

net = nn.Linear(6, 2)
opt = Plain(net.parameters(), 0.1)
for i in range(10):
    if i == 5:
        opt.lr = 0.05
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
net.training == False
""",
    **ELEVENTH_CLEAN,
}
