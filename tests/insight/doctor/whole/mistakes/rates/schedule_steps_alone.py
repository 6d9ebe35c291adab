# mistake: never steps
class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU())
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.net(x)).squeeze(-1)

x = torch.randn(128, 6)
y = x.sum(1).sin()
model = Regressor()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)  # here
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=40)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
losses = []
for epoch in range(5):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()  #+
        scheduler.step()
        losses.append(loss.item())
