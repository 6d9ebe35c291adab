class Net(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, h), nn.ReLU(), nn.Linear(h, 1))
    def forward(self, x):
        return self.f(x)
x = torch.randn(64, 4)
y = x[:, :1]
best = None
for trial in range(5):
    torch.manual_seed(trial)
    net = Net(16)
    opt = torch.optim.Adam(net.parameters(), lr=10 ** random.uniform(-3, -2))
    order = torch.Generator().manual_seed(0)
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, generator=order)
    for epoch in range(2):
        for a, b in loader:
            loss = F.mse_loss(net(a), b)
            opt.zero_grad()
            loss.backward()
            opt.step()
    best = loss.item() if best is None else min(best, loss.item())
