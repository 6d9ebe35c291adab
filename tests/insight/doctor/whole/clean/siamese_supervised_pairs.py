net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 6))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
crit = nn.CosineEmbeddingLoss(margin=0.2)
for step in range(60):
    a = torch.randn(32, 8)
    same = torch.rand(32) < 0.5
    b = torch.where(same[:, None], a + 0.1 * torch.randn(32, 8), torch.randn(32, 8))
    loss = crit(net(a), net(b), torch.where(same, 1.0, -1.0))
    opt.zero_grad()
    loss.backward()
    opt.step()
