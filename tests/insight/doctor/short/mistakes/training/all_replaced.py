# mistake: parameters that were replaced
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.1)  #- here
for layer in (net[0], net[2]):
    layer.weight = nn.Parameter(clew.randn(layer.weight.shape) / 2)
    layer.bias = nn.Parameter(clew.zeros(layer.bias.shape))
opt = clew.optim.SGD(net.parameters(), lr=0.1)  #+
for step in range(6):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
