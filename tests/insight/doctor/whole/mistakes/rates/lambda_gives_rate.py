# mistake: gives the rate
LR = 1e-3
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=LR)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: LR * min(1.0, (step + 1) / 5))  #- here
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: min(1.0, (step + 1) / 5))  #+
for step in range(20):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
