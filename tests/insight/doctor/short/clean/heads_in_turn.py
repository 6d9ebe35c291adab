trunk, heads = nn.Linear(4, 8), nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
opt = clew.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.05)
for step in range(6):
    opt.zero_grad()
    for i, head in enumerate(heads):
        F.mse_loss(head(trunk(x).tanh()), x[:, i : i + 1]).backward()
    opt.step()
