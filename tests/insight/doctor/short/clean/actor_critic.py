net, actor, critic = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)
params = [*net.parameters(), *actor.parameters(), *critic.parameters()]
opt = clew.optim.Adam(params, lr=1e-3)
for step in range(8):
    h = net(x).tanh()
    policy = clew.distributions.Categorical(logits=actor(h))
    a = policy.sample()
    value = critic(h).squeeze(-1)
    reward = clew.randn(64)
    advantage = (reward - value).detach()
    loss = -(policy.log_prob(a) * advantage).mean() + F.mse_loss(value, reward)
    opt.zero_grad()
    loss.backward()
    opt.step()
