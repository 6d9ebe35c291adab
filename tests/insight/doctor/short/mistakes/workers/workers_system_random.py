# mistake: draw from a source that no seed reaches
import os, random
def start(worker):
    random.seed(os.urandom(8))  #- here
    random.seed(worker)  #+
class Noisy(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return clew.tensor([i + random.random() for _ in range(8)]) / 32
clew.manual_seed(1)
net = nn.Linear(8, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Noisy(), batch_size=4, num_workers=2, worker_init_fn=start):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
