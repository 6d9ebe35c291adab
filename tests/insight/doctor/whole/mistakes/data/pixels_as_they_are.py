# mistake: not normalised
images = torch.randint(0, 256, (60, 3, 8, 8), dtype=torch.uint8)
labels = torch.randint(0, 3, (60,))
class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 8, 3), nn.Linear(8, 3)
    def forward(self, x):
        x = F.relu(self.conv(x))
        return self.fc(x.mean((2, 3)))
net = CNN()
opt = torch.optim.Adam(net.parameters(), lr=1e-4)
for epoch in range(2):
    for rows in torch.randperm(60).split(15):
        loss = F.cross_entropy(net(images[rows].float()), labels[rows])  #- here
        loss = F.cross_entropy(net(images[rows] / 127.5 - 1), labels[rows])  #+
        opt.zero_grad()
        loss.backward()
        opt.step()
