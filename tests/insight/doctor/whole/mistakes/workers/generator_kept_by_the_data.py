# mistake: same random data
class Noisy(Dataset):
    def __init__(self, size):
        self.clean = np.linspace(-1, 1, size * 4).reshape(size, 4).astype("float32")
        self.source = np.random.default_rng(7)  #- here
        self.source = None  #+

    def __len__(self):
        return len(self.clean)

    def noise(self):
        return self.source.normal(0, 1, 4)  #-
        return np.random.normal(0, 1, 4)  #+

    def __getitem__(self, i):
        return self.noise().astype("float32"), self.clean[i]

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Noisy(48), batch_size=6, shuffle=True, num_workers=2)
for epoch in range(1):
    for noise, clean in loader:
        loss = F.mse_loss(model(noise), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
