# mistake: broadcast to all pairs
value, slow = nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD(value.parameters(), lr=0.02)
for step in range(24):
    now, then = torch.randn(2, 32, 4)
    reward = now[:, 0] * 0.5
    goal = reward + 0.9 * slow(then).detach()  #- here
    goal = reward[:, None] + 0.9 * slow(then).detach()  #+
    opt.zero_grad()
    (value(now) - goal).square().mean().backward()
    opt.step()
    if step % 8 == 7:
        slow.load_state_dict(value.state_dict())
