# mistake: named, not called
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
sched = torch.optim.lr_scheduler.StepLR(opt, 4)
for epoch in range(10):
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
    sched.step  #- here
    sched.step()  #+
