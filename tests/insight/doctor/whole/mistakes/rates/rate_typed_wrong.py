# mistake: learning rate
config = {
    "epochs": 3,
    "batch": 30,
    "lr": 1e-9,  #-
    "lr": 1e-3,  #+
    "momentum": 0.9,
}

class MLP(nn.Module):
    def __init__(self, inputs, outputs, hidden=40):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.fc2(F.elu(self.fc1(x)))

x = torch.randn(150, 7)
y = torch.cat([x[:, :1] ** 2, x[:, 1:2] - x[:, 2:3]], 1)
model = MLP(7, 2)
rate, momentum = config["lr"], config["momentum"]
optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)  # here
loader = DataLoader(TensorDataset(x, y), batch_size=config["batch"], shuffle=True)
for epoch in range(config["epochs"]):
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
