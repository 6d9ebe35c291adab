trunk = nn.Sequential(nn.Linear(6, 24), nn.Tanh())
first, second = nn.Linear(24, 1), nn.Linear(24, 3)
of_trunk = torch.optim.Adam(trunk.parameters(), lr=1e-3)
of_first = torch.optim.Adam(first.parameters(), lr=1e-3)
of_second = torch.optim.Adam(second.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(32, 6)
    for opt in (of_trunk, of_first, of_second):
        opt.zero_grad()
    F.mse_loss(first(trunk(x)), x[:, :1]).backward()
    of_first.step()
    F.cross_entropy(second(trunk(x)), x[:, 1:4].argmax(1)).backward()
    of_second.step()
    of_trunk.step()
