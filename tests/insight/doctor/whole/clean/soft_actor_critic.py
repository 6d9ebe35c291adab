def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))

actor, q1, q2 = mlp(3, 2), mlp(4, 1), mlp(4, 1)
t1, t2 = copy.deepcopy(q1), copy.deepcopy(q2)
for p in [*t1.parameters(), *t2.parameters()]:
    p.requires_grad = False
log_alpha = torch.zeros(1, requires_grad=True)
opt_pi = torch.optim.Adam(actor.parameters(), lr=3e-4)
opt_q = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=3e-4)
opt_alpha = torch.optim.Adam([log_alpha], lr=3e-4)

def act(s):
    mean, log_std = actor(s).chunk(2, 1)
    dist = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
    u = dist.rsample()
    a = torch.tanh(u)
    return a, (dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)).sum(1, keepdim=True)

for step in range(8):
    s, s2, r = torch.randn(64, 3), torch.randn(64, 3), torch.randn(64, 1)
    a = torch.rand(64, 1) * 2 - 1
    with torch.no_grad():
        a2, logp2 = act(s2)
        q_next = torch.min(t1(torch.cat([s2, a2], 1)), t2(torch.cat([s2, a2], 1)))
        backup = r + 0.99 * (q_next - log_alpha.exp() * logp2)
    sa = torch.cat([s, a], 1)
    loss_q = F.mse_loss(q1(sa), backup) + F.mse_loss(q2(sa), backup)
    opt_q.zero_grad()
    loss_q.backward()
    opt_q.step()
    a_new, logp = act(s)
    q = torch.min(q1(torch.cat([s, a_new], 1)), q2(torch.cat([s, a_new], 1)))
    loss_pi = (log_alpha.exp().detach() * logp - q).mean()
    opt_pi.zero_grad()
    loss_pi.backward()
    opt_pi.step()
    loss_alpha = -(log_alpha * (logp - 1.0).detach()).mean()
    opt_alpha.zero_grad()
    loss_alpha.backward()
    opt_alpha.step()
    with torch.no_grad():
        for q_, t_ in ((q1, t1), (q2, t2)):
            for p, tp in zip(q_.parameters(), t_.parameters()):
                tp.data.mul_(0.995)
                tp.data.add_(0.005 * p.data)
