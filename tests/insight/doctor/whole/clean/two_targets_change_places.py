q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(q)
for step in range(80):
    if step % 20 == 0:
        q, target = target, q
        opt = torch.optim.Adam(q.parameters(), lr=1e-3)
    s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
    a, done = torch.randint(2, (16,)), (torch.rand(16) < 0.1).float()
    with torch.no_grad():
        y = r + 0.9 * (1 - done) * target(s2).max(1).values
    loss = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
