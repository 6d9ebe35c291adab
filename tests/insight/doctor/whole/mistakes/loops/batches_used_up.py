# mistake: used up after the first epoch
x = torch.randn(160, 6)
y = (x[:, 0] > 0).long()
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
batches = zip(x.split(16), y.split(16))  #- here
batches = list(zip(x.split(16), y.split(16)))  #+
for epoch in range(5):
    for a, b in batches:
        opt.zero_grad()
        loss = F.cross_entropy(net(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
