# mistake: sigmoid before binary_cross_entropy_with_logits
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = (x[:, :1] > 0).float()
criterion = nn.BCEWithLogitsLoss()
for step in range(6):
    p = net(x).sigmoid()  #- here
    p = net(x)  #+
    opt.zero_grad()
    loss = criterion(p, y)
    loss.backward()
    opt.step()
