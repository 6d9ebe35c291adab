body, one, two = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)
opt = clew.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.02)
for step in range(8):
    h = body(x).relu()
    opt.zero_grad()
    F.cross_entropy(one(h), labels).backward(retain_graph=True)
    F.mse_loss(two(h), target).backward()
    opt.step()
