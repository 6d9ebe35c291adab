net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 6)
    rank = x[:, 0]
    s = net(x)
    wanted = torch.sign(rank[:, None] - rank)
    loss = F.relu(1 - wanted * (s - s.t())).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
