net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
weights = [0.0, 0.01]
for step in range(12):
    stage = min(1, step // 6)
    x = torch.randn(32, 6)
    loss = F.mse_loss(net(x), x[:, :1]) + weights[stage] * stage * net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
