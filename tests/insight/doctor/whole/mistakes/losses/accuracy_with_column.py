# mistake: broadcast against each other
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
bce = nn.BCEWithLogitsLoss(reduction="none")
for _ in range(8):
    x = torch.randn(32, 6)
    y = (x[:, 0] > 0).float()
    out = net(x)
    weight = torch.where(y > 0, 2.0, 1.0)
    weight = weight[:, None]  #+
    loss = (weight * bce(out, y[:, None])).mean()  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
