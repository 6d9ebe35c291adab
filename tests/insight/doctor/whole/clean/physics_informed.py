class PINN(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(),
                                 nn.Linear(20, 1))

    def forward(self, t):
        return self.net(t)

def derivative(y, t):
    return torch.autograd.grad(y, t, torch.ones_like(y), create_graph=True)[0]

model = PINN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
t0 = torch.zeros(1, 1, requires_grad=True)
for step in range(8):
    optimizer.zero_grad()
    t = torch.rand(40, 1, requires_grad=True)
    u = model(t)
    du = derivative(u, t)
    residual = (derivative(du, t) + 4 * du + 100 * u).pow(2).mean()
    u0 = model(t0)
    start = (u0 - 1).pow(2).mean() + 0.1 * derivative(u0, t0).pow(2).mean()
    loss = start + 1e-4 * residual
    loss.backward()
    optimizer.step()
