"""One training step of a GPT in PyTorch, as bench/gpt.ts times its own: forward, cross-entropy, backward, clipping, AdamW.

python gpt-torch.py VOCABULARY CONTEXT LAYERS WIDTH HEADS BATCH LENGTH THREADS STEPS
"""
import json
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

vocabulary, context, layers, width, heads, batch, length, threads, steps = map(int, sys.argv[1:])
torch.set_num_threads(threads)
torch.manual_seed(0)


def attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    # Before PyTorch 2.0, as Debian 12 has it.
    scores = q @ k.transpose(2, 3) / math.sqrt(width // heads)
    return F.softmax(scores.masked_fill(ahead, float("-inf")), 3) @ v


ahead = torch.ones(length, length, dtype=torch.bool).triu(1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (
            t.view(batch, length, heads, width // heads).transpose(1, 2)
            for t in self.qkv(self.norm1(x)).split(width, 2)
        )
        mixed = attention(q, k, v)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block() for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(length))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


model = Gpt()
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95))
ids = torch.randint(vocabulary, (batch, length + 1))


def step():
    optimiser.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(ids[:, :-1]).view(-1, vocabulary), ids[:, 1:].reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()


step()
times = []
used = time.process_time()
for _ in range(steps):
    start = time.perf_counter()
    step()
    times.append(1000 * (time.perf_counter() - start))
used = 1000 * (time.process_time() - used)
print(json.dumps({"times_ms": [round(t, 1) for t in times], "cpu_ms": round(used, 1), "torch": torch.__version__}))
