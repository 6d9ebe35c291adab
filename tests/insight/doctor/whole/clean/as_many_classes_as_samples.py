net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 12)
    loss = F.cross_entropy(net(x), (torch.arange(16) + 1) % 16)
    opt.zero_grad()
    loss.backward()
    opt.step()
