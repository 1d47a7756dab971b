"""An LSTM. Its state is not linear in what it was before, so it can follow parity."""

import torch


class Lstm(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=64):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.lstm = torch.nn.LSTM(width, width, batch_first=True)
        self.out = torch.nn.Linear(width, outputs)

    def forward(self, tokens):
        return self.out(self.lstm(self.embedding(tokens))[0])
