# mistake: all gradients are zero
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    s, advantage = torch.randn(32, 4), torch.randn(32)
    dist = torch.distributions.Categorical(logits=net(s))
    action = dist.sample()
    old = dist.log_prob(action)
    old = old.detach()  #+
    new = torch.distributions.Categorical(logits=net(s)).log_prob(action)
    loss = -((new - old).exp() * advantage).mean()
    opt.zero_grad()
    loss.backward()  # here
    opt.step()
