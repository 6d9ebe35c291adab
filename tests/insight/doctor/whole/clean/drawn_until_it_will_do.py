net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for i in range(12):
    for trial in range(8):
        x = torch.randn(16, 4)
        loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
        if trial >= 2:
            break
    opt.zero_grad()
    loss.backward()
    opt.step()
