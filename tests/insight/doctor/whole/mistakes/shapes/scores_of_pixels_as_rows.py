# mistake: view() where permute() was meant
CLASSES = 4

def conv(a, b, act=True):
    layers = [nn.Conv2d(a, b, 3, padding=1)] + ([nn.BatchNorm2d(b), nn.ReLU()] if act else [])
    return nn.Sequential(*layers)

def pixel_loss(scores, masks):
    flat = scores.reshape(-1, CLASSES)  #- here
    flat = scores.movedim(1, -1).reshape(-1, CLASSES)  #+
    return F.cross_entropy(flat, masks.reshape(-1))

net = nn.Sequential(conv(3, 12), conv(12, 12), conv(12, CLASSES, act=False))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
net.train()
for step in range(10):
    image = torch.randn(4, 3, 9, 11)
    mask = (image[:, 0] > 0).long() + 2 * (image[:, 1] > 0).long()
    loss = pixel_loss(net(image), mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
