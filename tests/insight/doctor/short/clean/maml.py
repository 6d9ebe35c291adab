net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(6):
    opt.zero_grad()
    w, b = net.weight, net.bias
    inner = F.mse_loss(F.linear(x[:32], w, b), target[:32])
    gw, gb = clew.autograd.grad(inner, (w, b), create_graph=True)
    F.mse_loss(F.linear(x[32:], w - 0.1 * gw, b - 0.1 * gb), target[32:]).backward()
    opt.step()
