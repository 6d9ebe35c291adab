# mistake: between backward and step
def train_step(model, optimizer, batch):
    features, target = batch["features"], batch["target"]
    optimizer.zero_grad()  # here
    output = model(features)
    loss = F.mse_loss(output, target)
    optimizer.step()  #-
    loss.backward()
    optimizer.step()  #+
    return {"loss": loss.item()}

model = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 2))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
history = []
for step in range(12):
    features = torch.randn(32, 6)
    batch = {"features": features, "target": features[:, :2] * features[:, 2:4]}
    history.append(train_step(model, optimizer, batch))
