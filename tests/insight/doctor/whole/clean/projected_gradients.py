net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)

def grads():
    return torch.cat([p.grad.flatten() for p in net.parameters()])

for _ in range(8):
    x = torch.randn(32, 6)
    a, b = net(x).unbind(1)
    opt.zero_grad()
    F.mse_loss(a, x[:, 0]).backward(retain_graph=True)
    one = grads()
    opt.zero_grad()
    F.mse_loss(b, x[:, 1]).backward()
    two = grads()
    if torch.dot(one, two) < 0:
        one = one - torch.dot(one, two) / two.norm() ** 2 * two
    total, at = one + two, 0
    for p in net.parameters():
        p.grad = total[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
