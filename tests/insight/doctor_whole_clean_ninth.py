"""More whole programs that come near to a mistake and make none."""

from __future__ import annotations

from doctor_whole_clean_tenth import TENTH_CLEAN

NINTH_CLEAN: dict[str, str] = {
    "rates_and_factors": """
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 100))
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=50)
for step in range(30):
    x = torch.randn(32, 6)
    y = (x[:, 0] > 0).long()
    out = net(x)
    loss = F.cross_entropy(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    warm.step()
    acc = (out.argmax(1) == y).float().mean().item()
    plateau.step(1 - acc)
""",
    "unpaired_domains": """
X, Y = torch.randn(120, 3), torch.randn(120, 3) * 0.5 + 1
G = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3))
H = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3))
DY = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og = torch.optim.Adam([*G.parameters(), *H.parameters()], 1e-3)
od = torch.optim.Adam(DY.parameters(), 1e-3)
for epoch in range(3):
    xs = X[torch.randperm(len(X))]
    ys = Y[torch.randperm(len(Y))]
    for x, y in zip(xs.split(30), ys.split(30)):
        fake = G(x)
        og.zero_grad()
        ones = torch.ones(len(x), 1)
        g_loss = F.mse_loss(DY(fake), ones) + 5 * F.l1_loss(H(fake), x) + 5 * F.l1_loss(G(H(y)), y)
        g_loss.backward()
        og.step()
        od.zero_grad()
        d_loss = F.mse_loss(DY(y), ones) + F.mse_loss(DY(fake.detach()), torch.zeros(len(x), 1))
        d_loss.backward()
        od.step()
""",
    "empty_rows_made_zero": """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.score, self.fc = nn.Embedding(20, 16), nn.Linear(16, 1), nn.Linear(16, 2)

    def forward(self, ids):
        h = self.emb(ids)
        s = self.score(h).squeeze(-1).masked_fill(ids == 0, float("-inf"))
        w = torch.nan_to_num(torch.softmax(s, 1), nan=0.0)
        return self.fc((w.unsqueeze(-1) * h).sum(1))

net = Pool()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(6):
    ids = torch.randint(1, 20, (16, 6))
    ids[0] = 0
    loss = F.cross_entropy(net(ids), ids[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "norm_shared_on_purpose": """
class Block(nn.Module):
    def __init__(self, dim, norm=None, act=nn.ReLU()):
        super().__init__()
        self.norm = norm if norm is not None else nn.LayerNorm(dim)
        self.act = act
        self.a, self.b = nn.Linear(dim, 32), nn.Linear(32, dim)

    def forward(self, x):
        return x + self.b(self.act(self.a(self.norm(x))))

shared = nn.LayerNorm(16)
blocks = [Block(16, shared), Block(16, shared), Block(16)]
net = nn.Sequential(nn.Linear(6, 16), *blocks, nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "divergence_weighed": """
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
for step in range(10):
    x = torch.rand(32, 64)
    out, mu, lv = vae(x)
    kld = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
    if step % 2:
        loss = F.mse_loss(out, x) + 1e-4 * kld
    else:
        loss = F.mse_loss(out, x) + kld / x.numel()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "sifted_by_name": """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(60, 16)
        self.gru = nn.GRU(16, 24, batch_first=True)
        self.out = nn.Linear(24, 5)

    def forward(self, ids):
        return self.out(self.gru(self.word(ids))[0])

model = Tagger()
trained = [p for n, p in model.named_parameters() if "word" not in n]
optimizer = torch.optim.AdamW(trained, lr=1e-3)
for step in range(8):
    ids = torch.randint(0, 60, (16, 9))
    loss = F.cross_entropy(model(ids).flatten(0, 1), (ids % 5).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "update_into_a_new_list": """
params = [torch.randn(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)]
x = torch.randn(64, 4)
y = x[:, :1]
for i in range(10):
    loss = F.mse_loss(x @ params[0] + params[1], y)
    loss.backward()
    new = []
    for p in params:
        p = p - 0.1 * p.grad
        new.append(p.detach().requires_grad_())
    params = new
""",
    "history_of_states_for_k_steps": """
cell, out = nn.GRUCell(3, 8), nn.Linear(8, 1)
opt = torch.optim.Adam([*cell.parameters(), *out.parameters()], 1e-3)
h = torch.zeros(16, 8)
states = deque(maxlen=5)
for t in range(40):
    x = torch.randn(16, 3)
    h = cell(x, h)
    states.append(h)
    if t % 5 == 4:
        loss = F.mse_loss(out(torch.stack(list(states)).mean(0)), x[:, :1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        h = h.detach()
""",
    "manual_zero_and_two_tasks": """
body, a, b = nn.Linear(6, 16), nn.Linear(16, 1), nn.Linear(16, 1)
params = [*body.parameters(), *a.parameters(), *b.parameters()]
opt = torch.optim.AdamW(params, 1e-3)
for step in range(16):
    for p in params:
        if p.grad is not None:
            p.grad.zero_()
    x = torch.randn(32, 6)
    h = torch.tanh(body(x))
    head = a if step % 2 else b
    F.mse_loss(head(h), x[:, :1]).backward()
    opt.step()
""",
    **TENTH_CLEAN,
}
