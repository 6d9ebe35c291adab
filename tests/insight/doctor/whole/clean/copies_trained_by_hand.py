class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return self.f(x)

net = Net()
meta = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    fast = Net()
    fast.load_state_dict(net.state_dict())
    w = torch.randn(2, 1)
    for _ in range(3):
        x = torch.randn(16, 2)
        fast.zero_grad()
        F.mse_loss(fast(x), x @ w).backward()
        with torch.no_grad():
            for p in fast.parameters():
                p -= 0.05 * p.grad
    meta.zero_grad()
    for p, q in zip(net.parameters(), fast.parameters()):
        p.grad = p.detach() - q.detach()
    meta.step()
