# mistake: integer division
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
counts = torch.tensor([3, 40, 7])
weights = counts // counts.sum()  #- here
weights = counts / counts.sum()  #+
for i in range(6):
    x = torch.randn(30, 3)
    kind = torch.randint(0, 3, (30,))
    errors = (net(x).squeeze(1) - x.sum(1)).pow(2)
    loss = (errors * (1 + weights[kind])).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
