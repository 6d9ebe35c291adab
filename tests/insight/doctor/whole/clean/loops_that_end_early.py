def first_loss(model, loader):
    for x, y in loader:
        return F.cross_entropy(model(x), y).item()

data = TensorDataset(torch.randn(100, 6), torch.randint(0, 3, (100,)))
loader = DataLoader(data, batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(5):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    with torch.no_grad():
        first_loss(net, loader)
