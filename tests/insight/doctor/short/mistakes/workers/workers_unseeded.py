# mistake: draw from a source that no seed reaches
class Noisy(Dataset):
    def __len__(self):
        return 32
    def augmented(self, x):
        noise = np.random.default_rng().random(8, dtype="float32")  #- here
        noise = np.random.random(8).astype("float32")  #+
        return x + noise
    def __getitem__(self, i):
        return self.augmented(np.ones(8, dtype="float32"))
clew.manual_seed(1)
net = nn.Linear(8, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Subset(Noisy(), range(16)), batch_size=4, num_workers=2):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
