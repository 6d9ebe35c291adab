# mistake: float64
a = np.random.randn(60, 4)
b = a @ np.array([1.0, 2.0, 0.5, -1.0])
x, y = torch.tensor(a, dtype=torch.float32), torch.tensor(b)  #-
x, y = torch.tensor(a, dtype=torch.float32), torch.tensor(b, dtype=torch.float32)  #+
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(10):
    loss = torch.mean((net(x).squeeze(1) - y) ** 2)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
