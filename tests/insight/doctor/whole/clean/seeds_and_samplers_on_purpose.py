class Points(Dataset):
    def __init__(self, base):
        self.base = base
        self.x = torch.randn(60, 5)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        np.random.seed(self.base + i)
        noise = torch.from_numpy(np.random.randn(5).astype(np.float32))
        return self.x[i] + 0.1 * noise, 2 * (self.x[i, 0] > 0).float() - 1

Sampler = torch.utils.data.SubsetRandomSampler
data = Points(7)
train = DataLoader(data, 10, sampler=Sampler(range(40)))
fit = DataLoader(data, 10, sampler=Sampler(range(20)))
test = DataLoader(data, 10, sampler=Sampler(range(40, 60)))
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), 0.05)
loss_fn = nn.SoftMarginLoss()
for epoch in range(3):
    for x, y in train:
        opt.zero_grad()
        loss_fn(net(x).squeeze(1), y).backward()
        opt.step()
    with torch.no_grad():
        for loader in (fit, test):
            print(sum(loss_fn(net(x).squeeze(1), y).item() for x, y in loader))
