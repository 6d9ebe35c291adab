# mistake: no seed reaches
class Noise(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return np.random.rand(4).astype("float32")
def begin(worker):
    np.random.seed()  #- here
    np.random.seed(worker)  #+
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Noise(), batch_size=8, num_workers=2, worker_init_fn=begin):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
