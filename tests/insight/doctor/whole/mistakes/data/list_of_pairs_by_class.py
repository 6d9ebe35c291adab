# mistake: sorted by label
class Folder(Dataset):
    def __init__(self, each):
        self.samples = []
        for label in range(4):
            for _ in range(each):
                image = torch.randn(1, 6, 6)
                image[:, label] += 1.5
                self.samples.append((image, label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]

loader = DataLoader(Folder(60), batch_size=20)  #- here
loader = DataLoader(Folder(60), batch_size=20, shuffle=True)  #+
net = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(2):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
