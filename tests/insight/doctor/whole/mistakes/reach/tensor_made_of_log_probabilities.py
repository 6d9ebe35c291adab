# mistake: cut off from the loss
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(policy.parameters(), 1e-2)
for episode in range(6):
    logs, rewards = [], []
    for t in range(8):
        s = torch.randn(4)
        dist = torch.distributions.Categorical(logits=policy(s))
        action = dist.sample()
        logs.append(dist.log_prob(action))
        rewards.append(float(s[0]) * (2 * action.item() - 1))
    together = torch.tensor(logs, requires_grad=True)  #- here
    together = torch.stack(logs)  #+
    loss = -(together * torch.tensor(rewards)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
