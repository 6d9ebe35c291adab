net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
for i in range(15):
    x = torch.randn(32, 6)
    F.mse_loss(net(x), x[:, :1] ** 2).backward()
    for p in net.parameters():
        p.data.sub_(p.grad, alpha=0.05)
        p.grad = None
