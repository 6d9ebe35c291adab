def task():
    phase, height = torch.rand(1) * 3, 1 + torch.rand(1)
    x = torch.rand(20, 1) * 6 - 3
    return x, height * torch.sin(x + phase)

model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
meta_lr = 0.1
for iteration in range(4):
    before = {name: p.clone() for name, p in model.state_dict().items()}
    x, y = task()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for inner in range(4):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    after = model.state_dict()
    model.load_state_dict(
        {name: before[name] + meta_lr * (after[name] - before[name]) for name in before}
    )
