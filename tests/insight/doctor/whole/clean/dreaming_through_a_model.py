world = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 4))
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1), nn.Tanh())
ow, op = torch.optim.Adam(world.parameters(), 3e-3), torch.optim.Adam(policy.parameters(), 1e-3)
for it in range(12):
    s, a = torch.randn(64, 4), torch.rand(64, 1) * 2 - 1
    nxt = 0.9 * s + 0.2 * a
    ow.zero_grad()
    F.mse_loss(world(torch.cat([s, a], 1)), nxt).backward()
    ow.step()
    world.requires_grad_(False)
    s = torch.randn(64, 4)
    ret = 0
    for t in range(6):
        s = world(torch.cat([s, policy(s)], 1))
        ret = ret - 0.95**t * s.pow(2).mean()
    op.zero_grad()
    (-ret).backward()
    op.step()
    world.requires_grad_(True)
