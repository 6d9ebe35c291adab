class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(True))

    def forward(self, x):
        return self.net(x)

class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.up1 = Block(1, 8), Block(8, 16), Block(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        b = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(self.up1(torch.cat([a, b], 1)))

def dice(logits, mask, eps=1.0):
    p = torch.sigmoid(logits)
    overlap = (p * mask).sum((1, 2, 3))
    return (1 - (2 * overlap + eps) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + eps)).mean()

images = torch.randn(32, 1, 16, 16)
masks = (F.avg_pool2d(images, 3, 1, 1) > 0.3).float()
train, valid = random_split(TensorDataset(images, masks), [24, 8])
model = UNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for x, m in DataLoader(train, batch_size=8, shuffle=True):
        logits = model(x)
        loss = F.binary_cross_entropy_with_logits(logits, m) + dice(logits, m)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, m in DataLoader(valid, batch_size=8):
            overlap = ((torch.sigmoid(model(x)) > 0.5) == (m > 0.5)).float().mean().item()
