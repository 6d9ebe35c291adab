# mistake: the same first batch
data = TensorDataset(torch.randn(128, 6), torch.randint(0, 2, (128,)))
loader = DataLoader(data, batch_size=16)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
batches = iter(loader)
for i in range(8):
    x, y = next(iter(loader))  #- here
    x, y = next(batches)  #+
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
