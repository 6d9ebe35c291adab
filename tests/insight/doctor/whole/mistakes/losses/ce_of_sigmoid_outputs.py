# mistake: softmax before cross_entropy
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(10, 32), nn.Linear(32, 5)
    def forward(self, x):
        return torch.sigmoid(self.b(F.relu(self.a(x))))  #- here
        return self.b(F.relu(self.a(x)))  #+
model, ce = Net(), nn.CrossEntropyLoss()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(128, 10)
y = x[:, :5].argmax(1)
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = ce(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
