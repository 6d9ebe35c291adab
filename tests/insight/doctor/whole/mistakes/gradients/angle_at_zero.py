# mistake: slope is infinite
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2), nn.ReLU())
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(32, 4)
    out = net(x)
    angle = torch.atan2(out[:, 0], out[:, 1])  #- here
    angle = torch.atan2(out[:, 0] + 1e-4, out[:, 1] + 1e-4)  #+
    loss = (angle - x[:, 0].sigmoid()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
