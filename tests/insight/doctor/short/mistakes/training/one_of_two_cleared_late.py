# mistake: between backward and step
one, two = nn.Linear(4, 8), nn.Linear(8, 1)
opt1, opt2 = (clew.optim.Adam(part.parameters(), lr=0.01) for part in (one, two))
for step in range(8):
    opt1.zero_grad()
    opt2.zero_grad()  #+
    F.mse_loss(two(one(x).tanh()), target).backward()
    opt1.step()
    opt2.zero_grad()  #- here
    opt2.step()
