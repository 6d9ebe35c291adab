# mistake: softmax before cross_entropy
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))  #-
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))  #+
opt = clew.optim.Adam(net.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for step in range(6):
    opt.zero_grad()
    loss = criterion(net(x), labels)  # here
    loss.backward()
    opt.step()
