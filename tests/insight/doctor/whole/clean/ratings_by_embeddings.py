class Factors(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)
        self.mean = nn.Parameter(torch.tensor(3.5))

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(1)
        return dot + self.user_bias(u).squeeze(1) + self.item_bias(i).squeeze(1) + self.mean

u, i = torch.randint(0, 30, (300,)), torch.randint(0, 40, (300,))
ratings = torch.randint(1, 6, (300,)).float()
model = Factors(30, 40)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
for epoch in range(2):
    for ub, ib, rb in DataLoader(TensorDataset(u, i, ratings), batch_size=50, shuffle=True):
        loss = F.mse_loss(model(ub, ib), rb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
