# mistake: permute
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        b, h, w, c = x.shape
        x = x.view(b, c, h, w)  #- here
        x = x.permute(0, 3, 1, 2)  #+
        return self.fc(F.relu(self.conv(x)).amax((2, 3)))

pictures = np.random.rand(64, 12, 12, 3).astype("float32")
labels = np.random.randint(0, 5, 64)
x, y = torch.from_numpy(pictures), torch.from_numpy(labels)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    order = torch.randperm(64)
    for i in range(0, 64, 16):
        index = order[i : i + 16]
        loss = F.cross_entropy(net(x[index]), y[index])
        opt.zero_grad()
        loss.backward()
        opt.step()
