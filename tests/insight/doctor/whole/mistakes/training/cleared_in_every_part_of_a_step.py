# mistake: cleared before a step has used them
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for i in range(20):
    x = torch.randn(16, 6)
    if i % 4 == 0: opt.zero_grad()  #+
    opt.zero_grad()  #- here
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long()) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()
