# mistake: not detached from its critic
body, policy, critic = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)
params = [*body.parameters(), *policy.parameters(), *critic.parameters()]
opt = torch.optim.Adam(params, 1e-3)
for i in range(8):
    s = torch.randn(32, 4)
    h = torch.tanh(body(s))
    dist = torch.distributions.Categorical(logits=policy(h))
    action = dist.sample()
    advantage = s[:, 0] * (2 * action.float() - 1) - critic(h).squeeze(1)
    fit = advantage.pow(2).mean()
    advantage = advantage.detach()  #+
    loss = fit - (dist.log_prob(action) * advantage).mean()  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
