# mistake: normalisation
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.bn = nn.BatchNorm2d(16)
        self.bn2 = nn.BatchNorm2d(16)  #+
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.bn(self.conv1(x)))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.bn(self.conv2(x)))  #- here
        x = F.relu(self.bn2(self.conv2(x)))  #+
        return self.fc(x.mean((2, 3)))

net = Encoder()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
images, labels = torch.randn(64, 3, 8, 8), torch.randint(0, 4, (64,))
for epoch in range(3):
    net.train()
    for x, y in DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
