class Points(Dataset):
    def __init__(self, n):
        self.rng = np.random.RandomState(3)
        self.x = self.rng.randn(n, 5).astype(np.float32)
        self.generator = torch.Generator()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        self.generator.manual_seed(i)
        x = torch.from_numpy(self.x[i]) + 0.1 * torch.randn(5, generator=self.generator)
        return x, int(self.x[i, 0] > 0)

def init(worker):
    np.random.seed(7 + worker)

net = nn.Linear(5, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(2):
    for x, y in DataLoader(Points(64), 16, shuffle=True, num_workers=2, worker_init_fn=init):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
