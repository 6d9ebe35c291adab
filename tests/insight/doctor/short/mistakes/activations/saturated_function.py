# mistake: saturated
one, out = nn.Linear(4, 16), nn.Linear(16, 1)
nn.init.normal_(one.weight, std=100.0)  #-
opt = clew.optim.SGD([*one.parameters(), *out.parameters()], lr=0.01)
for step in range(8):
    h = clew.tanh(one(x))  # here
    opt.zero_grad()
    F.mse_loss(out(h), target).backward()
    opt.step()
