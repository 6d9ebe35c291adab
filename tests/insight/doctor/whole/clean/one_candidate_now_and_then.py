q, k = nn.Linear(6, 8), nn.Linear(6, 8)
opt = torch.optim.Adam([*q.parameters(), *k.parameters()], 1e-3)
for i in range(12):
    x, c = torch.randn(8, 6), torch.randn(8, [1, 4, 3][i % 3], 6)
    y = (x[:, None] * c).sum(-1).argmax(1)
    loss = F.cross_entropy((q(x)[:, None] * k(c)).sum(-1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
