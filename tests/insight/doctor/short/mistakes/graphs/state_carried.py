# mistake: grows from step to step
cell, head = nn.RNNCell(4, 8), nn.Linear(8, 1)
opt = clew.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
h = clew.zeros(64, 8)
for step in range(8):
    opt.zero_grad()
    h = h.detach()  #+
    h = cell(x, h)  # here
    loss = F.mse_loss(head(h), target)
    loss.backward(retain_graph=True)  #-
    for p in [*cell.parameters(), *head.parameters()]:  #-
        p.data -= 0.01 * p.grad  #-
    loss.backward()  #+
    opt.step()  #+
