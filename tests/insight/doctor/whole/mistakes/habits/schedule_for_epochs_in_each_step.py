# mistake: lowered the learning rate to nothing
net = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.1)
x = torch.randn(256, 10)
y = x[:, :3].argmax(1)
for epoch in range(2):
    for a, b in zip(x.split(16), y.split(16)):
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
        schedule.step()  #- here
    schedule.step()  #+
