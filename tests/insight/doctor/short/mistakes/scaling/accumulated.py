# mistake: without dividing
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    opt.zero_grad()
    for i in range(4):
        loss = F.mse_loss(net(x[i * 16 : i * 16 + 16]), target[i * 16 : i * 16 + 16])
        loss.backward()  #- here
        (loss / 4).backward()  #+
    opt.step()
