# mistake: saturated
class Controller(nn.Module):
    def __init__(self, sizes=(6, 64, 64, 2)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        for layer in self.layers[:-1]:
            nn.init.normal_(layer.weight, mean=0.0, std=30.0)  #-
            nn.init.xavier_normal_(layer.weight)  #+
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.sigmoid(layer(x))
        return self.layers[-1](x)

x = torch.randn(120, 6)
y = torch.stack([x[:, 0] * x[:, 1], x[:, 2]], 1)
model = Controller()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True):
        loss = F.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
