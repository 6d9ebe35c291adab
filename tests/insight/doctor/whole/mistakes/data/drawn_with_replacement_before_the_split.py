# mistake: overlap
x = torch.randn(100, 8)
y = x.sum(1, keepdim=True)
index = torch.randint(0, 100, (150,))  #-
index = torch.cat([torch.randint(0, 70, (110,)), torch.randint(70, 100, (40,))])  #+
train = TensorDataset(x[index[:110]], y[index[:110]])
valid = TensorDataset(x[index[110:]], y[index[110:]])
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
train_loader = DataLoader(train, 22, shuffle=True)
valid_loader = DataLoader(valid, 20)  # here
for epoch in range(2):
    for a, b in train_loader:
        opt.zero_grad()
        F.mse_loss(net(a), b).backward()
        opt.step()
    with torch.no_grad():
        errors = [F.mse_loss(net(a), b).item() for a, b in valid_loader]
