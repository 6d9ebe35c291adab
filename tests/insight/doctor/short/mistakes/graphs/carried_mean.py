# mistake: grows from step to step
net, head, mean = nn.Linear(4, 8), nn.Linear(8, 1), clew.zeros(8)
opt = clew.optim.Adam([*net.parameters(), *head.parameters()], lr=0.01)
for step in range(8):
    h = net(x)
    mean = 0.9 * mean + 0.1 * h.mean(0)  #- here
    mean = 0.9 * mean + 0.1 * h.detach().mean(0)  #+
    opt.zero_grad()
    F.mse_loss(head(h - mean.detach()), target).backward()
    opt.step()
