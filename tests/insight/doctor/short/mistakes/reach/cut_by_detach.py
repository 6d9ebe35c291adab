# mistake: cut off
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = clew.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
for step in range(6):
    opt.zero_grad()
    h = body(x).relu()
    h = h.detach()  #- here
    F.mse_loss(head(h), target).backward()
    opt.step()
