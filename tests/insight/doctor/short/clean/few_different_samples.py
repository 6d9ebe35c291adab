bits = clew.randint(0, 2, (256, 4)).float()
data = TensorDataset(bits + 0.1 * clew.arange(4), bits.sum(1).remainder(2).long())
train = DataLoader(Subset(data, range(192)), batch_size=32, shuffle=True, num_workers=2)
test = DataLoader(Subset(data, range(192, 256)), batch_size=32)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for inputs, y in train:
    opt.zero_grad()
    F.cross_entropy(net(inputs), y).backward()
    opt.step()
with clew.no_grad():
    [net(inputs).argmax(1) for inputs, _ in test]
