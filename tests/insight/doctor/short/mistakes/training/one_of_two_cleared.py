# mistake: never cleared
one, two = nn.Linear(4, 8), nn.Linear(8, 1)
opt1, opt2 = (clew.optim.SGD(part.parameters(), lr=0.01) for part in (one, two))
for step in range(8):
    loss = F.mse_loss(two(one(x).tanh()), target)
    opt1.zero_grad()
    opt2.zero_grad()  #+
    loss.backward()  # here
    opt1.step()
    opt2.step()
