# mistake: gives no batches
x = torch.randn(50, 6)
y = (x[:, 0] > 0).long()
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)  #- here
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, drop_last=True)  #+
for epoch in range(3):
    for a, b in loader:
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
