net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(40):
    s = torch.randn(1, 4)
    target = s.sum() * 2 + 3 * torch.randn(())
    loss = (net(s).squeeze() - target) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
