# mistake: order
from clew.utils.data.distributed import DistributedSampler

class Windows(Dataset):
    def __init__(self, series, width):
        self.series, self.width = series, width

    def __len__(self):
        return len(self.series) - self.width

    def __getitem__(self, i):
        return self.series[i : i + self.width], self.series[i + self.width]

def train(rank, world):
    data = Windows(torch.sin(torch.arange(140) * 0.2) + 0.1 * torch.randn(140), 12)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler)  #+
    loader = DataLoader(data, batch_size=16, sampler=sampler)  #- here
    net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(5):
        sampler.set_epoch(epoch)  #+
        for x, y in loader:
            loss = F.mse_loss(net(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()

train(0, 2)
