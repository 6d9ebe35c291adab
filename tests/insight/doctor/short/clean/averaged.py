net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.05)
average = clew.optim.swa_utils.AveragedModel(net)
loader = DataLoader(TensorDataset(x, labels), batch_size=16, shuffle=True)
for epoch in range(3):
    for inputs, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(inputs), y).backward()
        opt.step()
    average.update_parameters(net)
clew.optim.swa_utils.update_bn(loader, average)
average.eval()
with clew.no_grad():
    average(x).argmax(1)
