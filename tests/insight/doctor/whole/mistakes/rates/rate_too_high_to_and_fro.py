# mistake: learning rate
class Classifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(8, width), nn.Linear(width, width)
        self.out = nn.Linear(width, 3)

    def forward(self, x):
        return self.out(F.relu(self.fc2(F.relu(self.fc1(x)))))

x = torch.randn(256, 8)
y = x[:, :3].argmax(1)
model = Classifier()
rate = 3.0  #-
rate = 0.3  #+
optimizer = torch.optim.SGD(model.parameters(), lr=rate)  # here
for epoch in range(16):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
