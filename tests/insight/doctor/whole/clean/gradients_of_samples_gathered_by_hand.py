net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for i in range(6):
    parts = []
    for k in range(4):
        opt.zero_grad()
        x = torch.randn(8, 6)
        F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
        parts.append([p.grad.clone() for p in net.parameters()])
    for p, *grads in zip(net.parameters(), *parts):
        p.grad = torch.stack(grads).mean(0)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
