net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
halved = torch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.5 ** (epoch // 4))
for i in range(20):
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1]).backward()
    opt.step()
    halved.step()
