class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(F.relu(self.bn(self.conv(x))), 1).flatten(1))

def mixup(x, y, alpha=0.4):
    lam = np.random.beta(alpha, alpha)
    index = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[index], y, y[index], lam

images, labels = torch.randn(90, 3, 6, 6), torch.randint(0, 5, (90,))
model, criterion = Net(), nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 1.0, 0.5, 1.0]))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
loader = DataLoader(TensorDataset(images, labels), batch_size=30, shuffle=True)
for epoch in range(3):
    for i, (x, y) in enumerate(loader):
        mixed, ya, yb, lam = mixup(x, y)
        out = model(mixed)
        loss = lam * criterion(out, ya) + (1 - lam) * criterion(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step(epoch + i / len(loader))
