# mistake: labels outside
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = (x[:, :1] > 0).float()
y = 2 * y - 1  #-
for step in range(6):
    opt.zero_grad()
    loss = F.binary_cross_entropy_with_logits(net(x), y)  # here
    loss.backward()
    opt.step()
