class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(),
                                    nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x)

x = torch.randn(160, 5)
y = x[:, :1].sin() + x[:, 1:2]
train_set, valid_set = random_split(TensorDataset(x, y), [0.8, 0.2])
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
best, best_state, patience = float("inf"), None, 3
for epoch in range(5):
    model.train()
    for xb, yb in DataLoader(train_set, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = [F.mse_loss(model(xb), yb).item() for xb, yb in DataLoader(valid_set, 32)]
    score = sum(scores) / len(scores)
    plateau.step(score)
    if score < best:
        best, best_state, patience = score, copy.deepcopy(model.state_dict()), 3
    else:
        patience -= 1
        if patience == 0:
            break
model.load_state_dict(best_state)
