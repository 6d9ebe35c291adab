# mistake: steps without gradients
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for i in range(6):
    x = torch.randn(32, 5)
    opt.zero_grad()
    loss = F.mse_loss(net(x), x[:, :1])
    loss.backward  #-
    loss.backward()  #+
    opt.step()  # here
