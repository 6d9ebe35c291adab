# mistake: batch
class Activity(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.lstm = nn.LSTM(channels, 24)  #- here
        self.lstm = nn.LSTM(channels, 24, batch_first=True)  #+
        self.fc = nn.Linear(24, classes)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])

class Recordings(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 30, 6)
        self.y = (self.x.mean((1, 2)) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

net = Activity(6, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(2):
    for x, y in DataLoader(Recordings(96), batch_size=16, shuffle=True):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
