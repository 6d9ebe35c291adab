# mistake: attribute of an optimizer
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(4):
    if epoch == 2:
        opt.lr = 0.005  #- here
        for g in opt.param_groups:  #+
            g["lr"] = 0.005  #+
    for _ in range(4):
        x = torch.randn(32, 8)
        loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
