net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 16))
net.extend([nn.Dropout(0.5), nn.Linear(16, 1)])
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
net.eval()
for part in net.modules():
    if isinstance(part, nn.Dropout):
        part.train()
with clew.no_grad():
    net(x).square().mean()
