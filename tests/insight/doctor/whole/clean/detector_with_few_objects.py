class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU())
        self.objectness, self.boxes = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 4, 1)
        nn.init.constant_(self.objectness.bias, -4.0)

    def forward(self, x):
        h = self.body(x)
        return self.objectness(h).squeeze(1), self.boxes(h).permute(0, 2, 3, 1)

images = torch.randn(24, 3, 8, 8)
where = torch.zeros(24, 8, 8)
where[torch.arange(24), torch.randint(0, 8, (24,)), torch.randint(0, 8, (24,))] = 1
boxes = torch.rand(24, 8, 8, 4)
model = Detector()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    rows = torch.randint(0, 24, (8,))
    score, box = model(images[rows])
    positive = where[rows] > 0
    objectness = F.binary_cross_entropy_with_logits(score, where[rows], reduction="none")
    place = F.smooth_l1_loss(box[positive], boxes[rows][positive], beta=0.1, reduction="sum")
    loss = objectness.mean() + place / positive.sum().clamp(min=1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
