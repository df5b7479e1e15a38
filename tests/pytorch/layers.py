"""Layers of transformers 4.35, written out: what their forward passes call, without the package."""

import math

import torch
from torch import nn
from torch.nn import functional


class Conv1D(nn.Module):
    """transformers/pytorch_utils.py: a linear layer with weight [in, out]."""

    def __init__(self, out, width):
        super().__init__()
        self.out = out
        self.weight = nn.Parameter(torch.randn(width, out) * 0.02)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], self.out)


def gelu_new(x):
    """transformers/activations.py, NewGELUActivation."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class GPT2Layer(nn.Module):
    """transformers/models/gpt2/modeling_gpt2.py, GPT2Block with eager attention."""

    def __init__(self, hidden, heads, ffn, positions, dropout=0.1):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.ln_1, self.ln_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = Conv1D(3 * hidden, hidden), Conv1D(hidden, hidden)
        self.up, self.down = Conv1D(ffn, hidden), Conv1D(hidden, ffn)
        self.drops = nn.ModuleList(nn.Dropout(dropout) for _ in range(3))
        mask = torch.tril(torch.ones(positions, positions, dtype=torch.bool))
        self.register_buffer("mask", mask.view(1, 1, positions, positions))

    def split(self, x):
        return x.view(*x.shape[:-1], self.heads, self.size).permute(0, 2, 1, 3)

    def attention(self, x):
        q, k, v = (self.split(part) for part in self.qkv(x).split(self.heads * self.size, dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2))
        scores = scores / torch.full([], v.size(-1)**0.5, dtype=scores.dtype)
        length = q.size(-2)
        least = torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype)
        scores = torch.where(self.mask[:, :, :length, :length], scores, least)
        weights = self.drops[0](functional.softmax(scores, dim=-1).type(v.dtype))
        context = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous()
        return self.drops[1](self.out(context.view(*context.shape[:-2], self.heads * self.size)))

    def forward(self, x):
        x = self.attention(self.ln_1(x)) + x
        return x + self.drops[2](self.down(gelu_new(self.up(self.ln_2(x)))))


class BertLayer(nn.Module):
    """transformers/models/bert/modeling_bert.py, BertLayer with absolute positions."""

    def __init__(self, hidden, heads, ffn, dropout=0.1):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.q, self.k, self.v, self.out = (nn.Linear(hidden, hidden) for _ in range(4))
        self.up, self.down = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.drops = nn.ModuleList(nn.Dropout(dropout) for _ in range(3))

    def split(self, x):
        return x.view(*x.shape[:-1], self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        query = self.q(x)
        k, v, q = self.split(self.k(x)), self.split(self.v(x)), self.split(query)
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size) + mask
        weights = self.drops[0](functional.softmax(scores, dim=-1))
        context = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous()
        context = context.view(*context.shape[:-2], self.heads * self.size)
        x = self.norms[0](self.drops[1](self.out(context)) + x)
        return self.norms[1](self.drops[2](self.down(functional.gelu(self.up(x)))) + x)


class RMSNorm(nn.Module):
    """transformers/models/llama/modeling_llama.py, LlamaRMSNorm."""

    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-6)
        return self.weight * x.to(dtype)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def repeat_kv(x, times):
    if times == 1:
        return x
    batch, heads, length, size = x.shape
    return x[:, :, None, :, :].expand(batch, heads, times, length, size).reshape(batch, heads * times, length, size)


class LlamaLayer(nn.Module):
    """transformers/models/llama/modeling_llama.py, LlamaDecoderLayer with eager attention."""

    def __init__(self, hidden, heads, kv_heads, ffn, positions):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, hidden // heads
        self.norms = nn.ModuleList(RMSNorm(hidden) for _ in range(2))
        self.q, self.out = (nn.Linear(hidden, hidden, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(hidden, kv_heads * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(hidden, ffn, bias=False) for _ in range(2))
        self.down = nn.Linear(ffn, hidden, bias=False)
        self.register_buffer("cos", torch.randn(positions, self.size))
        self.register_buffer("sin", torch.randn(positions, self.size))

    def attention(self, x, mask, ids):
        batch, length, _ = x.shape
        q = self.q(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        v = self.v(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        cos, sin = self.cos[ids].unsqueeze(1), self.sin[ids].unsqueeze(1)
        q = (q * cos) + (rotate_half(q) * sin)
        k = (k * cos) + (rotate_half(k) * sin)
        k, v = (repeat_kv(part, self.heads // self.kv_heads) for part in (k, v))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.size) + mask
        weights = functional.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        weights = functional.dropout(weights, p=0.0, training=self.training)
        context = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.out(context.reshape(batch, length, self.heads * self.size))

    def forward(self, x, mask, ids):
        x = x + self.attention(self.norms[0](x), mask, ids)
        y = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Adapted(nn.Module):
    """peft/tuners/lora/layer.py, Linear with one adapter and no dropout."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.a, self.b = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)
        self.scaling = 2.0

    def forward(self, x):
        result = self.base(x)
        return result + self.b(self.a(x)) * self.scaling


class Stretched(Adapted):
    """peft/tuners/lora/dora.py, DoraLinearLayer. What its norm reads is detached: nothing is kept for it."""

    def __init__(self, base, rank):
        super().__init__(base, rank)
        self.magnitude = nn.Parameter(torch.ones(base.out_features))

    def forward(self, x):
        result = self.base(x)
        with torch.no_grad():
            change = self.b(self.a(torch.eye(self.base.in_features))).T
            lengths = torch.linalg.norm(self.base.weight + self.scaling * change, dim=1)
        factor = (self.magnitude / lengths).view(1, -1)
        return result + ((factor - 1) * result + factor * self.b(self.a(x)) * self.scaling)


def with_adapters(layer, names, rank, kind=Adapted):
    """`layer`, frozen, with a trained adapter beside each of its linear layers `names`."""
    layer.requires_grad_(False)
    for name in names:
        setattr(layer, name, kind(getattr(layer, name), rank))
    return layer


class ViTLayer(nn.Module):
    """torchvision/models/vision_transformer.py, EncoderBlock, with nn.MultiheadAttention of PyTorch 2.1, batch first:
    torch/nn/functional.py, multi_head_attention_forward, _in_projection_packed; _scaled_dot_product_attention_math."""

    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)

    def attention(self, x):
        batch, length, hidden = x.shape
        packed = self.qkv(x.transpose(1, 0)).unflatten(-1, (3, hidden)).unsqueeze(0)
        packed = packed.transpose(0, -2).squeeze(-2).contiguous()
        q, k, v = (packed[part].view(length, batch * self.heads, self.size).transpose(0, 1)
                   .view(batch, self.heads, length, self.size) for part in range(3))
        factor = self.size**-0.25
        weights = torch.softmax(torch.matmul(q * factor, k.transpose(-2, -1) * factor), -1)
        context = torch.matmul(weights, v).permute(2, 0, 1, 3).contiguous().view(batch * length, hidden)
        return self.out(context).view(length, batch, hidden).transpose(1, 0)

    def forward(self, x):
        x = self.attention(self.norms[0](x)) + x
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class CaiTLayer(nn.Module):
    """facebookresearch/deit, cait_models.py, LayerScale_Block with talking heads."""

    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.talks = nn.ModuleList(nn.Linear(heads, heads) for _ in range(2))
        self.gammas = nn.ParameterList(nn.Parameter(torch.ones(hidden)) for _ in range(2))
        self.up, self.down = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)

    def attention(self, x):
        batch, length, hidden = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0] * self.size**-0.5, qkv[1], qkv[2]
        scores = self.talks[0]((q @ k.transpose(-2, -1)).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        weights = self.talks[1](scores.softmax(dim=-1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x):
        x = x + self.gammas[0] * self.attention(self.norms[0](x))
        return x + self.gammas[1] * self.down(functional.gelu(self.up(self.norms[1](x))))
