# mistake: sigmoid before binary_cross_entropy_with_logits
class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=0.25):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha

    def forward(self, pred, target):
        bce = F.binary_cross_entropy_with_logits(pred, target, reduction="none")
        pt = torch.exp(-bce)
        weight = self.alpha * target + (1 - self.alpha) * (1 - target)
        return (weight * (1 - pt) ** self.gamma * bce).mean()

class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1))

    def forward(self, x):
        heat = self.body(x)
        heat = heat.sigmoid()  #- here
        return {"heat": heat}

model, criterion = Detector(), FocalLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    image = torch.randn(4, 1, 12, 12)
    batch = {"image": image, "heat": torch.cat([image > 1, image < -1], 1).float()}
    loss = criterion(model(batch["image"])["heat"], batch["heat"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
