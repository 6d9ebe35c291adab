trunk = nn.Sequential(nn.Linear(5, 32), nn.ReLU())
one, two = nn.Linear(32, 1), nn.Linear(32, 3)
opt = torch.optim.SGD([*trunk.parameters(), *one.parameters(), *two.parameters()], lr=0.05)
w = torch.randn(5, 3)
for step in range(60):
    x = torch.randn(32, 5)
    if step % 2:
        loss = F.mse_loss(one(trunk(x)), 3 * x[:, :1])
    else:
        loss = 0.1 * F.cross_entropy(two(trunk(x)), (x @ w).argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
