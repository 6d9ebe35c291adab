cells = clew.arange(64)
rows, columns = (cells // 32).float(), (cells % 32).float() / 32
inputs = clew.stack([rows, columns], 1)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(inputs), target).backward()
    opt.step()
