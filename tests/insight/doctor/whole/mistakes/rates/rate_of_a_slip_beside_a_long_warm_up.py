# mistake: learning rate does not fit
x = torch.randn(160, 8)
y = (x[:, 0] > x[:, 1]).long()
net = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-9)  #- here
falls = torch.optim.lr_scheduler.StepLR(opt, 10, gamma=0.5)  #-
opt = torch.optim.Adam(net.parameters(), lr=1e-4)  #+
grows = lambda step: (step % 30 + 1) * 1e-6  #+
falls = torch.optim.lr_scheduler.LambdaLR(opt, grows)  #+
for step in range(40):
    rows = torch.randint(0, 160, (32,))
    opt.zero_grad()
    F.cross_entropy(net(x[rows]), y[rows]).backward()
    opt.step()
    falls.step()
