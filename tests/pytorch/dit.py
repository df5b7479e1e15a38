"""A diffusion transformer as facebookresearch/DiT writes it (models.py, recalled), with timm's attention."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.scale = heads, (hidden // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)

    def forward(self, x):
        b, n, hidden = x.shape
        packed = self.qkv(x).reshape(b, n, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = packed.unbind(0)
        weights = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, hidden))


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


def conditioned(hidden, vectors):
    return nn.Sequential(nn.SiLU(), nn.Linear(hidden, vectors * hidden))


class Layer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(hidden, elementwise_affine=False) for _ in range(2))
        self.attention, self.vectors = Attention(hidden, heads), conditioned(hidden, 6)
        self.mlp = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(approximate="tanh"), nn.Linear(4 * hidden, hidden))

    def forward(self, x, c):
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = self.vectors(c).chunk(6, dim=1)
        x = x + gate.unsqueeze(1) * self.attention(modulate(self.norm1(x), shift, scale))
        return x + gate_mlp.unsqueeze(1) * self.mlp(modulate(self.norm2(x), shift_mlp, scale_mlp))


class DiT(nn.Module):
    """Of latents [b, 4, side, side], whose waves and classes are there already."""

    def __init__(self, images, side, hidden, heads, layers):
        super().__init__()
        self.patches = nn.Conv2d(4, hidden, 2, stride=2)
        self.time = nn.Sequential(nn.Linear(256, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.classes = nn.Embedding(1001, hidden)
        self.layers = nn.ModuleList(Layer(hidden, heads) for _ in range(layers))
        self.norm, self.vectors = nn.LayerNorm(hidden, elementwise_affine=False), conditioned(hidden, 2)
        self.head = nn.Linear(hidden, 2 * 2 * 8)
        self.register_buffer("places", torch.zeros(1, (side // 2) ** 2, hidden))
        self.register_buffer("waves", torch.zeros(images, 256))
        self.register_buffer("labels", torch.zeros(images, dtype=torch.long))

    def forward(self, x):
        b, side = x.shape[0], x.shape[2]
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        c = self.time(self.waves) + self.classes(self.labels)
        for layer in self.layers:
            x = layer(x, c)
        shift, scale = self.vectors(c).chunk(2, dim=1)
        x = self.head(modulate(self.norm(x), shift, scale))
        x = x.reshape(b, side // 2, side // 2, 2, 2, 8)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(b, 8, side, side)
