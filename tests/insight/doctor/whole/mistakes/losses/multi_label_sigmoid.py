# mistake: sigmoid before binary_cross_entropy_with_logits
class MultiLabel(nn.Module):
    def __init__(self, features, labels):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(32, labels)
        self.act = nn.Sigmoid()

    def forward(self, x):
        x = self.head(self.body(x))
        return self.act(x)  #-
        return x  #+

x = torch.randn(120, 10)
y = (x[:, :6] > 0.3).float()
weights = (y == 0).sum(0) / (y == 1).sum(0)
model = MultiLabel(10, 6)
loss_fn = nn.BCEWithLogitsLoss(pos_weight=weights)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(3):
    model.train()
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True):
        pred = model(xb)
        loss = loss_fn(pred, yb)  # here
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
