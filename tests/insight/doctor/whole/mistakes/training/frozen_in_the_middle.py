# mistake: frozen parameter
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.backbone(x))

def freeze(module):
    for p in module.parameters():
        p.requires_grad = False
        p.grad = None  #+

x = torch.randn(96, 8)
y = x[:, :3].argmax(1)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
for epoch in range(4):
    if epoch == 2:
        freeze(model.backbone)
    for rows in torch.randperm(96).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()  # here
