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
