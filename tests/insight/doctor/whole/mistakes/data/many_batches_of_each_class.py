# mistake: not shuffled
class Folder(Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, k):
        g = torch.Generator().manual_seed(k)
        label = k // 160
        return torch.randn(12, generator=g) + label, label

loader = DataLoader(Folder(), batch_size=8)  #- here
loader = DataLoader(Folder(), batch_size=8, shuffle=True)  #+
net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
