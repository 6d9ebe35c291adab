# mistake: retain_graph
net = nn.Linear(4, 3)
x = torch.randn(50, 4)
y = x[:, :3].argmax(1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(10):
    out = net(x)
    loss = F.cross_entropy(out, y) + 1e-3 * sum(p.pow(2).sum() for p in net.parameters())
    opt.zero_grad()
    loss.backward(retain_graph=True)  #- here
    loss.backward()  #+
    opt.step()
