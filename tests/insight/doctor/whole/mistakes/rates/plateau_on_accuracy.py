# mistake: wrong direction
x = torch.randn(320, 6)
y = (x[:, 0] + x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)  #- here
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="max", patience=1)  #+
for epoch in range(8):
    for xb, yb in DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True):
        opt.zero_grad()
        F.cross_entropy(net(xb), yb).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        acc = (net(x[256:]).argmax(1) == y[256:]).float().mean().item()
    net.train()
    sched.step(acc)
