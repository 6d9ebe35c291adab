# mistake: integer division
class Ratings(Dataset):
    def __init__(self, n):
        self.user, self.item = torch.randint(0, 20, (n,)), torch.randint(0, 30, (n,))
        stars = (self.user + self.item) % 5
        self.rating = stars // 5  #- here
        self.rating = stars / 5  #+

    def __len__(self):
        return len(self.user)

    def __getitem__(self, i):
        return {"user": self.user[i], "item": self.item[i], "rating": self.rating[i].float()}

class Factors(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.user, self.item = nn.Embedding(20, size), nn.Embedding(30, size)

    def forward(self, batch):
        return (self.user(batch["user"]) * self.item(batch["item"])).sum(1)

model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for batch in DataLoader(Ratings(120), 24, shuffle=True):
        loss = F.mse_loss(model(batch), batch["rating"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
