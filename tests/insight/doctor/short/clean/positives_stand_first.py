net = nn.Linear(4, 8)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
others = F.normalize(clew.randn(32, 8), dim=1)
for step in range(8):
    z = F.normalize(net(x), dim=1)
    near = F.normalize(net(x + 0.1 * clew.randn_like(x)), dim=1).detach()
    scores = clew.cat([(z * near).sum(1, keepdim=True), z @ others.t()], 1) / 0.1
    loss = F.cross_entropy(scores, clew.zeros(64, dtype=clew.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
