model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
x = torch.randn(256, 6)
y = x[:, :1] * x[:, 1:2]
start = copy.deepcopy(model.state_dict())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
rates, losses = [], []
for i in range(60):
    rows = torch.randint(0, 256, (32,))
    loss = F.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rates.append(optimizer.param_groups[0]["lr"])
    losses.append(loss.item())
    if loss.item() > 4 * losses[0]:
        break
    for group in optimizer.param_groups:
        group["lr"] *= 1.35
model.load_state_dict(start)
