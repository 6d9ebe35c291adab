net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
begins = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 0.0 if step < 8 else 1.0)
for i in range(20):
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1]).backward()
    opt.step()
    begins.step()
