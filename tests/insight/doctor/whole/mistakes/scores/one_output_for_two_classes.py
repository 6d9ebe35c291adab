# mistake: softmax over a single value
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
criterion = nn.CrossEntropyLoss()  #-
criterion = nn.BCEWithLogitsLoss()  #+
for i in range(8):
    x = torch.randn(16, 6)
    y = (x[:, :1] > 0).float()
    loss = criterion(net(x), y)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
