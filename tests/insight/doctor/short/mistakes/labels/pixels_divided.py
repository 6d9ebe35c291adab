# mistake: integer division
pixels = clew.arange(64 * 4).view(64, 4)
images = (pixels // 255).float()  #- here
images = pixels.float() / 255  #+
rows = (pixels // 64).float()
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(images), target).backward()
    opt.step()
