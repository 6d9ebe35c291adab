class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.ReLU())
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.backbone(x))

x = torch.randn(128, 8)
y = x[:, :3].argmax(1)
model = Net()
for p in model.backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-3)
for epoch in range(4):
    if epoch == 2:
        for p in model.backbone.parameters():
            p.requires_grad = True
        optimizer.add_param_group({"params": model.backbone.parameters(), "lr": 1e-4})
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.step()
