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
