# mistake: dead ReLU
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()
        )
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))

def init_weights(m):
    if isinstance(m, nn.Conv2d):
        nn.init.kaiming_normal_(m.weight)
        nn.init.constant_(m.bias, -10.0)  #-
        nn.init.constant_(m.bias, 0.0)  #+

model = Net()
model.apply(init_weights)
images, labels = torch.randn(60, 1, 8, 8), torch.randint(0, 3, (60,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(3):
    for rows in torch.randperm(60).split(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
