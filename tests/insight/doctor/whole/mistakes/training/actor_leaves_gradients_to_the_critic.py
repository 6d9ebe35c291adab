# mistake: left are used
actor = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
by_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)
by_critic = torch.optim.Adam(critic.parameters(), lr=2e-3)
for step in range(12):
    s = torch.randn(48, 3)
    a = (actor(s).detach() + 0.2 * torch.randn(48, 1)).clamp(-1, 1)
    reward = -(a - s[:, :1]).abs()
    by_critic.zero_grad()  #+
    error = F.mse_loss(critic(torch.cat([s, a], 1)), reward)
    error.backward()  # here
    by_critic.step()
    by_critic.zero_grad()  #-
    gain = critic(torch.cat([s, actor(s)], 1)).mean()
    (-gain).backward()
    by_actor.step()
    by_actor.zero_grad()
