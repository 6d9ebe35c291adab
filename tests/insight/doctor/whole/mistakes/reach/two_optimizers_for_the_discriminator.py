# mistake: in no optimizer
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.1), nn.Linear(16, 1))
od = torch.optim.Adam(D.parameters(), lr=1e-3)
og = torch.optim.Adam(D.parameters(), lr=1e-3)  #- here
og = torch.optim.Adam(G.parameters(), lr=1e-3)  #+
bce = nn.BCEWithLogitsLoss()
one, zero = torch.ones(16, 1), torch.zeros(16, 1)
for i in range(8):
    fake = G(torch.randn(16, 4))
    od.zero_grad()
    (bce(D(torch.randn(16, 2)), one) + bce(D(fake.detach()), zero)).backward()
    od.step()
    og.zero_grad()
    bce(D(fake), one).backward()
    og.step()
