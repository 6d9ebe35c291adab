# mistake: no seed reaches
class Jitter(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return torch.ones(4) * (random.random() - 0.5)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for x in DataLoader(
    Jitter(),
    batch_size=8,
    num_workers=2,
    worker_init_fn=lambda worker: random.seed(),  #- here
    worker_init_fn=lambda worker: random.seed(worker),  #+
):
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
