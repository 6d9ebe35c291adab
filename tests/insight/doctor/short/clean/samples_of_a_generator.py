G = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
D = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
og, od = clew.optim.Adam(G.parameters(), lr=2e-4), clew.optim.Adam(D.parameters(), lr=2e-4)
criterion, fixed, sums = nn.BCEWithLogitsLoss(), clew.randn(8, 3), []
ones, zeros = clew.ones(64, 1), clew.zeros(64, 1)
for step in range(8):
    fake = G(clew.randn(64, 3))
    od.zero_grad()
    right, wrong = criterion(D(x), ones), criterion(D(fake.detach()), zeros)
    right.backward()
    wrong.backward()
    od.step()
    sums.append((right + wrong).item())
    og.zero_grad()
    criterion(D(fake), ones).backward()
    og.step()
    if step % 4 == 3:
        with clew.no_grad():
            G(fixed).numpy()
