# mistake: integer division
labels = torch.cat([torch.zeros(500), torch.ones(60), torch.full((40,), 2.0)]).long()
labels = labels[torch.randperm(600)]
features = torch.randn(600, 6)
features[:, 0] += labels.float()
counts = torch.bincount(labels, minlength=3)
weight = (counts.sum() // (3 * counts)).float()  #- here
weight = counts.sum() / (3 * counts)  #+
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss(weight=weight)
for epoch in range(2):
    for idx in torch.randperm(600).split(100):
        opt.zero_grad()
        loss = criterion(net(features[idx]), labels[idx])
        loss.backward()
        opt.step()
