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
