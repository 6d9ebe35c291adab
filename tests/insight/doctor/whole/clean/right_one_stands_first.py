class Matcher:
    def __init__(self, users, items, dim=8):
        self.users, self.items = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.opt = torch.optim.Adam(
            [*self.users.parameters(), *self.items.parameters()], lr=1e-2
        )
        self.first = torch.zeros(64, dtype=torch.long)

    def step(self, user, item):
        others = torch.randint(0, 50, (len(user), 5))
        shown = self.items(torch.cat([item[:, None], others], 1))
        scores = torch.einsum("bd,bkd->bk", self.users(user), shown)
        loss = F.cross_entropy(scores, self.first[: len(user)])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

matcher = Matcher(30, 50)
user = torch.randint(0, 30, (200,))
item = (user + 10 * torch.randint(0, 2, (200,))) % 50
for u, i in DataLoader(TensorDataset(user, item), batch_size=25, shuffle=True):
    matcher.step(u, i)
