net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
slow = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
written = []

def packed(model):
    state = model.state_dict()
    for name in state:
        state[name] = state[name].half()
    return state

for step in range(12):
    x = torch.randn(40, 5)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1].sin()).backward()
    opt.step()
    mine, new = slow.state_dict(), net.state_dict()
    for name in mine:
        mine[name].copy_(0.9 * mine[name] + 0.1 * new[name])
    mixed = slow.state_dict()
    for name in mixed:
        mixed[name] = 0.5 * (mixed[name] + new[name])
    written.append(len(packed(net)) + sum(t.numel() for t in mixed.values()))
