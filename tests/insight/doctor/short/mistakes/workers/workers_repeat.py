# mistake: same random data
class Noisy(Dataset):
    def __init__(self):
        self.random = np.random.RandomState(0)  # here
    def __len__(self):
        return 32
    def __getitem__(self, i):
        noise = self.random.randn(8).astype("float32")  #-
        noise = np.random.randn(8).astype("float32")  #+
        return noise
net = nn.Linear(8, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Noisy(), batch_size=4, num_workers=2):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
