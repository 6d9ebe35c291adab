q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
old = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
old.load_state_dict(q.state_dict())
opt = clew.optim.Adam(q.parameters(), lr=1e-3)
action, reward = clew.randint(0, 2, (64, 1)), clew.randn(64)
for step in range(8):
    with clew.no_grad():
        best = old(x.roll(1, 0)).max(1).values
    value = q(x).gather(1, action).squeeze(1)
    loss = F.smooth_l1_loss(value, reward + 0.9 * best)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(q.parameters(), 100)
    opt.step()
