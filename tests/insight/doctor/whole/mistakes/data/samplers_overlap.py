# mistake: overlap
Sampler = torch.utils.data.SubsetRandomSampler
X = torch.randn(150, 8)
Y = (X[:, 0] - X[:, 1] > 0).long()
dataset = TensorDataset(X, Y)
order = torch.randperm(150).tolist()
train_loader = DataLoader(dataset, batch_size=15, sampler=Sampler(order[:120]))
valid_loader = DataLoader(dataset, batch_size=15, sampler=Sampler(order[90:]))  #- here
valid_loader = DataLoader(dataset, batch_size=15, sampler=Sampler(order[120:]))  #+
net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    net.train()
    for a, b in train_loader:
        loss = F.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(a).argmax(1) == b).sum().item() for a, b in valid_loader)
    print(epoch, right)
