net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval().requires_grad_(False)
x, y = torch.randn(16, 8), torch.arange(16) % 3
delta = nn.Parameter(torch.zeros(16, 8))
opt = torch.optim.Adam([delta], lr=0.01)
for i in range(12):
    opt.zero_grad()
    loss = -F.cross_entropy(net(x + delta), y)
    loss.backward()
    opt.step()
    delta.data.clamp_(-0.1, 0.1)
