class Speech(nn.Module):
    def __init__(self, features=13, letters=6):
        super().__init__()
        self.rnn = nn.LSTM(features, 24, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(48, letters)

    def forward(self, x):
        return self.fc(self.rnn(x)[0]).log_softmax(-1)

audio = torch.randn(40, 30, 13)
letters = torch.randint(1, 6, (40, 5))
lengths = torch.randint(2, 6, (40,))
model, ctc = Speech(), nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for rows in torch.randperm(40).split(10):
        log_probs = model(audio[rows]).transpose(0, 1)
        loss = ctc(log_probs, letters[rows], torch.full((10,), 30), lengths[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
