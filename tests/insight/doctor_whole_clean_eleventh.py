"""Whole programs without a mistake: no autograd, masks that may be empty, flows, sparse tables."""

from __future__ import annotations

from doctor_whole_clean_twelfth import TWELFTH_CLEAN

ELEVENTH_CLEAN: dict[str, str] = {
    "a_switch_by_whole_numbers": """
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
weights = [0.0, 0.01]
for step in range(12):
    stage = min(1, step // 6)
    x = torch.randn(32, 6)
    loss = F.mse_loss(net(x), x[:, :1]) + weights[stage] * stage * net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "evolution_strategy": """
net = nn.Linear(5, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.05)
flat = torch.nn.utils.parameters_to_vector
unflat = torch.nn.utils.vector_to_parameters
target = torch.randn(5, 1)

@torch.no_grad()
def fitness(vec):
    unflat(vec, net.parameters())
    x = torch.randn(64, 5)
    return -F.mse_loss(net(x), x @ target)

theta = flat(net.parameters()).detach().clone()
for gen in range(15):
    eps = torch.randn(16, theta.numel())
    scores = torch.stack([fitness(theta + 0.1 * e) for e in eps])
    scores = (scores - scores.mean()) / (scores.std() + 1e-8)
    g = -(scores[:, None] * eps).mean(0) / 0.1
    unflat(theta, net.parameters())
    at = 0
    for p in net.parameters():
        p.grad = g[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
    theta = flat(net.parameters()).detach().clone()
""",
    "pseudo_labels": """
net = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 5))
opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4)
W = torch.randn(10, 5)
for step in range(20):
    xl, xu = torch.randn(16, 10), torch.randn(64, 10)
    weak, strong = xu + 0.05 * torch.randn_like(xu), xu + 0.4 * torch.randn_like(xu)
    logits = net(torch.cat([xl, weak, strong]))
    l, w, s = logits.split([16, 64, 64])
    with torch.no_grad():
        conf, pseudo = w.softmax(-1).max(-1)
        mask = (conf > 0.95).float()
    sup = F.cross_entropy(l, (xl @ W).argmax(1))
    unsup = (F.cross_entropy(s, pseudo, reduction="none") * mask).mean()
    opt.zero_grad()
    (sup + unsup).backward()
    opt.step()
""",
    "real_nvp": """
class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        out = torch.cat([b, a] if self.flip else [a, b], 1)
        return out, s.sum(1)

flow = nn.ModuleList([Coupling(i % 2) for i in range(4)])
base = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
opt = torch.optim.Adam(flow.parameters(), lr=1e-3)
for step in range(12):
    th = torch.rand(128) * 3.14
    z = torch.stack([th.cos(), th.sin()], 1) + 0.05 * torch.randn(128, 2)
    logdet = 0
    for layer in flow:
        z, ld = layer(z)
        logdet = logdet + ld
    loss = -(base.log_prob(z) + logdet).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "recommender_sparse": """
class MF(nn.Module):
    def __init__(self, users=200, items=300, d=8):
        super().__init__()
        self.u, self.i = nn.Embedding(users, d, sparse=True), nn.Embedding(items, d, sparse=True)
        self.bu, self.bi = nn.Embedding(users, 1, sparse=True), nn.Embedding(items, 1, sparse=True)
        for e in (self.u, self.i):
            nn.init.normal_(e.weight, std=0.05)
        nn.init.zeros_(self.bu.weight)
        nn.init.zeros_(self.bi.weight)

    def forward(self, u, i):
        return (self.u(u) * self.i(i)).sum(1) + self.bu(u).squeeze(1) + self.bi(i).squeeze(1)

mf = MF()
opt = torch.optim.SparseAdam(list(mf.parameters()), lr=0.01)
for step in range(15):
    u, pos = torch.randint(0, 200, (64,)), torch.randint(0, 150, (64,))
    neg = torch.randint(0, 300, (64,))
    loss = -F.logsigmoid(mf(u, pos) - mf(u, neg)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a2c_n_steps": """
class AC(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.Tanh())
        self.pi, self.v = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, s):
        h = self.body(s)
        return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)

ac = AC()
opt = torch.optim.RMSprop(ac.parameters(), lr=7e-4, eps=1e-5)
s = torch.randn(8, 3)
scores = deque(maxlen=100)
for update in range(10):
    logps, vals, ents, rews = [], [], [], []
    for t in range(5):
        dist, v = ac(s)
        a = dist.sample()
        r = (a == (s.sum(1) > 0)).float()
        logps.append(dist.log_prob(a)), vals.append(v), ents.append(dist.entropy()), rews.append(r)
        s = 0.7 * s + 0.5 * torch.randn(8, 3)
        scores.append(r.mean().item())
    with torch.no_grad():
        R = ac(s)[1]
    rets = []
    for r in reversed(rews):
        R = r + 0.95 * R
        rets.insert(0, R)
    rets, vals = torch.stack(rets), torch.stack(vals)
    adv = rets - vals
    loss = -(torch.stack(logps) * adv.detach()).mean() + 0.5 * adv.pow(2).mean()
    loss = loss - 0.01 * torch.stack(ents).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(ac.parameters(), 0.5)
    opt.step()
""",
    **TWELFTH_CLEAN,
}
