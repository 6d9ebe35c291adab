# mistake: slope is infinite
net = nn.Linear(4, 8)
opt = clew.optim.SGD(net.parameters(), lr=0.001)
inputs = clew.cat([x, clew.zeros(2, 4)])
with clew.no_grad():
    net.bias.zero_()
for step in range(4):
    opt.zero_grad()
    h = net(inputs)
    n = h.norm(dim=1, keepdim=True)
    n = n + 1e-6  #+
    (h / n).square().mean().backward()  # here
    with clew.no_grad():
        net.bias.zero_()
