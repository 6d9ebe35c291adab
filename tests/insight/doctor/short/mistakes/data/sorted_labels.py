# mistake: sorted by label
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
order = labels.argsort()
loader = DataLoader(TensorDataset(x[order], labels[order]), batch_size=8)  #- here
loader = DataLoader(TensorDataset(x[order], labels[order]), batch_size=8, shuffle=True)  #+
for epoch in range(2):
    for inputs, y in loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(inputs), y)
        loss.backward()
        opt.step()
