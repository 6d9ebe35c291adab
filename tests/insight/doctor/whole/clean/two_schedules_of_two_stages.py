net = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
x = torch.randn(96, 5)
y = x[:, :1] * x[:, 1:2]
for kind, epochs in ((torch.optim.Adam, 4), (torch.optim.SGD, 4)):
    opt = kind(net.parameters(), lr=1e-2)
    falls = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    for epoch in range(epochs):
        for rows in torch.randperm(96).split(24):
            opt.zero_grad()
            F.mse_loss(net(x[rows]), y[rows]).backward()
            opt.step()
        falls.step()
