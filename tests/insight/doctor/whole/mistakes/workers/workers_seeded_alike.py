# mistake: same random data
class Noisy(Dataset):
    def __init__(self, n):
        self.x = np.random.randn(n, 6).astype(np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i] + 0.1 * np.random.randn(6).astype(np.float32)
        return torch.from_numpy(x), int(self.x[i, 0] > 0)

def seed_worker(worker_id):
    np.random.seed(42)  #- here
    np.random.seed(torch.initial_seed() % 2**32)  #+

loader = DataLoader(Noisy(96), 12, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(2):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
