# mistake: learning rate does not fit
x = torch.randn(160, 8)
y = x[:, :1] - x[:, 1:2]
net = nn.Sequential(nn.Linear(8, 24), nn.ELU(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-8, momentum=0.9)  # here
change = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)  #-
change = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=1.1)  #+
for step in range(30):
    rows = torch.randint(0, 160, (32,))
    opt.zero_grad()
    F.mse_loss(net(x[rows]), y[rows]).backward()
    opt.step()
    change.step()
