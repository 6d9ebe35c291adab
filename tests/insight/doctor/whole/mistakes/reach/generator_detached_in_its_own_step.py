# mistake: cut off from the loss
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 6))
D = nn.Sequential(nn.Linear(6, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
og = torch.optim.Adam(G.parameters(), 2e-4)
od = torch.optim.Adam(D.parameters(), 2e-4)
bce = nn.BCEWithLogitsLoss()
one, zero = torch.ones(16, 1), torch.zeros(16, 1)
def step_of_d(real, fake):
    od.zero_grad()
    (bce(D(real), one) + bce(D(fake.detach()), zero)).backward()
    od.step()
def step_of_g(fake):
    og.zero_grad()
    bce(D(fake.detach()), one).backward()  #- here
    bce(D(fake), one).backward()  #+
    og.step()
for i in range(6):
    fake = G(torch.randn(16, 4))
    step_of_d(torch.randn(16, 6), fake)
    step_of_g(fake)
