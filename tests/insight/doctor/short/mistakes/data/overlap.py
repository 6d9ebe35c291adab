# mistake: overlap
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(x, labels)
train = DataLoader(Subset(data, range(0, 48)), batch_size=8, shuffle=True)
test = DataLoader(Subset(data, range(32, 64)), batch_size=8)  #- here
test = DataLoader(Subset(data, range(48, 64)), batch_size=8)  #+
for inputs, y in train:
    opt.zero_grad()
    F.cross_entropy(net(inputs), y).backward()
    opt.step()
with clew.no_grad():
    for inputs, y in test:
        net(inputs)
