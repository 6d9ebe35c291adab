# mistake: kept with their graphs
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 1e-3)
memory = deque(maxlen=2000)
s = torch.randn(1, 4)
for t in range(60):
    dist = torch.distributions.Categorical(logits=actor(s))
    a = dist.sample()
    value = critic(s)
    r = float((a == (s[0, 0] > 0)).item())
    memory.append((s, a, r, value))  #- here
    memory.append((s, a, r, value.item()))  #+
    loss = -(dist.log_prob(a) * (r - value.detach().squeeze())) .mean()+ (value.squeeze() - r) ** 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    s = torch.randn(1, 4)
