# mistake: batch of one
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.context = nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        x = self.down(x)
        return self.out(x + 0.1 * x.mean())

images = torch.randn(24, 3, 8, 8)
masks = (images.mean(1, keepdim=True) > 0).float()
size = 1  #-
size = 6  #+
loader = DataLoader(TensorDataset(images, masks), batch_size=size, shuffle=True)
model = UNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for picture, mask in loader:
        optimizer.zero_grad()
        out = model(picture)
        loss = F.binary_cross_entropy_with_logits(out, mask)
        loss.backward()
        optimizer.step()
