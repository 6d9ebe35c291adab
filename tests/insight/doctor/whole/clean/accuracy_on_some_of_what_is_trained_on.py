x = torch.randn(700, 10)
data = TensorDataset(x, (x @ torch.randn(10, 3)).argmax(1))
order = torch.randperm(700).tolist()
train, held_out = Subset(data, order[:560]), Subset(data, order[560:])
loader = DataLoader(train, 32, shuffle=True)
shown = {"train": DataLoader(Subset(train, range(100)), 50), "test": DataLoader(held_out, 70)}
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(2):
    for a, b in loader:
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
    for name, each in shown.items():
        with torch.no_grad():
            print(name, sum((net(a).argmax(1) == b).sum().item() for a, b in each))
