# mistake: scores are compared with 0.5
x = torch.randn(320, 10)
y = (x @ torch.randn(10, 4) > 1).float()
train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
test = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    net.train()
    for a, b in train:
        opt.zero_grad()
        criterion(net(a), b).backward()
        opt.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for a, b in test:
            out = net(a)
            out = out.sigmoid()  #+
            guess = (out > 0.5).float()  # here
            hits += (guess == b).sum().item()
