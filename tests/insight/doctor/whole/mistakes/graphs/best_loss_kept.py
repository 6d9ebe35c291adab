# mistake: kept with their graphs
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
log = deque(maxlen=50)
for step in range(14):
    x = torch.randn(16, 4)
    pred = net(x)
    loss = F.mse_loss(pred, x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    log.append({"step": step, "loss": loss})  #- here
    log.append({"step": step, "loss": loss.item()})  #+
