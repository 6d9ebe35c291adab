def fit(q, data, steps):
    target = copy.deepcopy(q)
    opt = torch.optim.Adam(q.parameters(), lr=1e-3)
    s, a, r, s2, done = data
    for step in range(steps):
        with torch.no_grad():
            y = r + 0.9 * (1 - done) * target(s2).max(1).values
        loss = F.mse_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
data = (s, torch.randint(2, (16,)), r, s2, (torch.rand(16) < 0.1).float())
for iteration in range(3):
    fit(q, data, 40)
