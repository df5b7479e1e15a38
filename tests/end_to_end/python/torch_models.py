"""Small models of every kind that the memory planner is asked for, with one training step of each."""

import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    """ResNet's block: in-place activations behind batch norms, and a sum in place."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
                                   nn.ReLU(inplace=True))
        self.second = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.second(self.first(x))
        y += x
        return functional.relu(y, inplace=True)


class ResNet(nn.Module):
    def __init__(self, width=8, blocks=8):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), *[Residual(width) for _ in range(blocks)])
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(4 * width, 10))

    def forward(self, x):
        return self.head(self.body(x))


class UNet(nn.Module):
    def __init__(self, width=4, depth=3):
        super().__init__()
        widths = [width * 2**level for level in range(depth)]
        self.down = nn.ModuleList(self.pair(a, b) for a, b in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, stride=2) for a in reversed(widths[:-1]))
        self.join = nn.ModuleList(self.pair(2 * a, a) for a in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 10, 1)

    @staticmethod
    def pair(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.LeakyReLU(0.1), nn.Dropout2d(0.1),
                             nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x if not skips else functional.max_pool2d(x, 2))
            skips.append(x)
        for up, join, skip in zip(self.up, self.join, skips[-2::-1]):
            x = join(torch.cat([up(x), skip], dim=1))
        return self.head(x).mean((2, 3))


class ViT(nn.Module):
    def __init__(self, width=32, layers=6):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.places = nn.Parameter(torch.randn(1, 17, width) * 0.02)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.size(0), -1, -1), x], dim=1) + self.places
        return self.head(self.layers(x)[:, 0])


class GPTBlock(nn.Module):
    def __init__(self, width, heads, dropout=0.1):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        scores = self.dropout(scores.masked_fill(mask, float("-inf")).softmax(-1))
        x = x + self.dropout(self.out((scores @ v).transpose(1, 2).reshape(batch, length, width)))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, width=32, layers=6, length=32, words=64):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(GPTBlock(width, 4) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).triu(1))

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x)).mean(1)


class LSTM(nn.Module):
    def __init__(self, words=64, width=32):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.cells = nn.LSTM(width, width, num_layers=2, dropout=0.2, batch_first=True)
        self.head = nn.Linear(width, 10)

    def forward(self, tokens):
        return self.head(self.cells(self.words(tokens))[0].mean(1))


MODELS = {"resnet": ResNet, "unet": UNet, "vit": ViT, "gpt": GPT, "lstm": LSTM}


class Training:
    """A model with a batch: `step()` is one iteration with the same random state, and leaves its gradients."""

    def __init__(self, name, batch=4):
        torch.manual_seed(0)
        self.model = MODELS[name]()
        images = torch.randn(batch, 3, 16, 16)
        tokens = torch.randint(0, 64, (batch, 16 if name == "lstm" else 32))
        self.batch = tokens if name in ("gpt", "lstm") else images
        self.labels = torch.randint(0, 10, (batch,))
        self.step()

    def loss(self):
        torch.manual_seed(1)
        return functional.cross_entropy(self.model(self.batch), self.labels)

    def step(self):
        for parameter in self.model.parameters():
            parameter.grad = None
        loss = self.loss()
        loss.backward()
        return loss.detach()

    def outcome(self, step):
        """Loss, gradients, buffers and random state behind `step`, from the same buffers."""
        before = [buffer.clone() for buffer in self.model.buffers()]
        loss = step()
        found = [loss, *[parameter.grad.clone() for parameter in self.model.parameters()],
                 *[buffer.clone() for buffer in self.model.buffers()], torch.get_rng_state()]
        with torch.no_grad():
            for buffer, old in zip(self.model.buffers(), before):
                buffer.copy_(old)
        return found
