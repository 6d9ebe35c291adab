x = torch.randn(640, 8)
y = x.prod(1, keepdim=True).sign()
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2, T_mult=2)
for epoch in range(6):
    batches = torch.randperm(640).split(64)
    for number, i in enumerate(batches):
        loss = F.mse_loss(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        schedule.step(epoch + number / len(batches))
