# mistake: target of a loss requires grad
q = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.Adam(q.parameters(), 1e-3)
for i in range(8):
    s, s2 = torch.randn(32, 4), torch.randn(32, 4)
    a, a2 = torch.randint(0, 3, (32, 1)), torch.randint(0, 3, (32, 1))
    target = torch.randn(32, 1) + 0.95 * q(s2).gather(1, a2)  #-
    target = torch.randn(32, 1) + 0.95 * q(s2).gather(1, a2).detach()  #+
    loss = F.mse_loss(q(s).gather(1, a), target)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
