ab, ba = nn.Linear(6, 6), nn.Linear(6, 6)
da, db = nn.Linear(6, 1), nn.Linear(6, 1)
og = torch.optim.Adam([*ab.parameters(), *ba.parameters()], lr=1e-3)
od = torch.optim.Adam([*da.parameters(), *db.parameters()], lr=1e-3)
for step in range(12):
    a, b = torch.randn(16, 6), torch.randn(16, 6) + 1
    fb, fa = ab(a), ba(b)
    lg = ((db(fb) - 1) ** 2).mean() + ((da(fa) - 1) ** 2).mean()
    lg = lg + F.l1_loss(ba(fb), a) + F.l1_loss(ab(fa), b)
    og.zero_grad()
    lg.backward()
    og.step()
    od.zero_grad()
    ld = 0
    for d, real, fake in ((da, a, fa), (db, b, fb)):
        ld = ld + ((d(real) - 1) ** 2).mean() + (d(fake.detach()) ** 2).mean()
    ld.backward()
    od.step()
