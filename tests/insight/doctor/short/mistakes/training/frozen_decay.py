# mistake: frozen parameter
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.1)
for step in range(8):
    opt.zero_grad(set_to_none=False)
    F.mse_loss(net(x), target).backward()
    opt.step()  # here
    if step == 2:
        for p in net[0].parameters():
            p.requires_grad_(False)
            p.grad = None  #+
