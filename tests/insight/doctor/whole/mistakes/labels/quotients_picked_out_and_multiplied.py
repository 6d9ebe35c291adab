# mistake: integer division
table = torch.randint(1, 100, (64,))
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
share = table // 100  #- here
share = table / 100  #+
for i in range(6):
    index = torch.randint(0, 64, (32,))
    x = torch.randn(32, 4)
    loss = ((net(x).squeeze(1) - x[:, 0]).pow(2) * share[index]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
