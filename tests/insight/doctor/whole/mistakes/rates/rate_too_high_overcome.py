# mistake: learning rate
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        return self.out(self.net(x))

x = torch.randn(256, 8)
y = x[:, :3].argmax(1)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.3)  #- here
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)  #+
history = []
for epoch in range(14):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
