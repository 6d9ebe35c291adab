net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
x = torch.randn(80, 5)
for epoch in range(3):
    x = x[torch.randperm(80)]
    y = x[:, :1].sin()
    for i in range(0, 80, 20):
        opt.zero_grad()
        F.mse_loss(net(x[i : i + 20]), y[i : i + 20]).backward()
        opt.step()
