# mistake: learning rate does not fit
x = torch.randn(160, 8)
y = (x[:, 0] > x[:, 1]).long()
net = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 2))
rate = 5e-9  #-
rate = 5e-4  #+
opt = torch.optim.AdamW(net.parameters(), lr=rate)  # here
wave = lambda step: min(1.0, (step + 1) / 5) * 0.5 * (1 + math.cos(math.pi * step / 41))
falls = torch.optim.lr_scheduler.LambdaLR(opt, wave)
for step in range(40):
    rows = torch.randint(0, 160, (32,))
    opt.zero_grad()
    F.cross_entropy(net(x[rows]), y[rows]).backward()
    opt.step()
    falls.step()
