# mistake: order
def loaders(x, y):
    g = torch.Generator().manual_seed(42)
    data = TensorDataset(x[:160], y[:160])
    train = DataLoader(data, batch_size=16, shuffle=True, generator=g)  # here
    return train, DataLoader(TensorDataset(x[160:], y[160:]), batch_size=40)

x = torch.randn(200, 5)
y = x @ torch.tensor([1.0, -1.0, 0.5, 0.0, 2.0])
net = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
train, valid = loaders(x, y)  #+
for epoch in range(5):
    train, valid = loaders(x, y)  #-
    for a, b in train:
        loss = F.huber_loss(net(a).squeeze(-1), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        score = sum(F.mse_loss(net(a).squeeze(-1), b).item() for a, b in valid)
