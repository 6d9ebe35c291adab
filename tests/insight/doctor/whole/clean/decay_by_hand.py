net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    for p in net.parameters():
        p.data.add_(p.data, alpha=-1e-5)
    opt.step()
