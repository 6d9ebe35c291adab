# mistake: compared where it was to be set
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
for p in net[0].parameters():
    p.requires_grad == False  #- here
    p.requires_grad = False  #+
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(8):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
