# mistake: same random data
class Augmented(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.rng = np.random.RandomState(0)  #- here

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        noise = self.rng.normal(size=self.x[i].shape).astype(np.float32)  #-
        noise = np.random.normal(size=self.x[i].shape).astype(np.float32)  #+
        return torch.from_numpy(self.x[i] + 0.1 * noise), self.y[i]

rng = np.random.default_rng(1)
x = rng.normal(size=(96, 10)).astype(np.float32)
y = (x[:, 0] > 0).astype(np.int64)
if __name__ == "__main__":
    loader = DataLoader(Augmented(x, y), batch_size=12, shuffle=True, num_workers=2)
    net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(3):
        for xb, yb in loader:
            loss = F.cross_entropy(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
