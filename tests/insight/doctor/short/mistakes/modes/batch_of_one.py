# mistake: batch of one
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.01)
images = clew.randn(8, 1, 4, 4)
for i in range(8):
    opt.zero_grad()
    out = net(images[i : i + 1])  #- here
    out = net(images)  #+
    out.square().mean().backward()
    opt.step()
