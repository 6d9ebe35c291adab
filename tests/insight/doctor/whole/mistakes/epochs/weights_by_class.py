# mistake: weights of classes
x = torch.randn(200, 5)
y = (torch.rand(200) < 0.1).long()
x[:, 0] += y * 2
counts = torch.bincount(y)
weights = 1.0 / counts.float()
weights = weights[y]  #+
sampler = torch.utils.data.WeightedRandomSampler(weights, num_samples=200)  # here
loader = DataLoader(TensorDataset(x, y), batch_size=20, sampler=sampler)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(2):
    for xb, yb in loader:
        opt.zero_grad()
        F.cross_entropy(net(xb), yb).backward()
        opt.step()
