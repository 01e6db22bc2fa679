"""Small models, by family of ops. Each returns many results, so that one import
covers many ops; each is imported scripted and traced unless it says otherwise, and
some as programs of torch.export as well, also in core ATen."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing import Dict, List, Optional, Tuple

FAMILIES = {}
ALL = ("script", "trace", "export", "core")


def case(family, *inputs, modes=("script", "trace")):
    """Registers a module class with example inputs (each made by a function)."""

    def register(cls):
        FAMILIES.setdefault(family, []).append((cls, inputs, modes))
        return cls

    return register


def f32(*shape):
    return lambda: torch.randn(*shape)


def positive(*shape):
    return lambda: torch.rand(*shape) + 0.5


def i64(high, *shape):
    return lambda: torch.randint(0, high, shape)


def boolean(*shape):
    return lambda: torch.rand(*shape) > 0.5


# --- elementwise -----------------------------------------------------------


@case("elementwise", f32(2, 4), modes=ALL)
class Unary(nn.Module):
    def forward(self, x):
        p = x.abs() + 0.5
        return (x.neg(), p.exp(), p.log(), p.sqrt(), p.rsqrt(), p.reciprocal(), x.sin(), x.cos(),
                x.tanh(), x.erf(), x.sigmoid(), F.silu(x), x.relu(), x.floor(), x.ceil(), x.trunc(),
                F.gelu(x), F.gelu(x, approximate="tanh"), x.square(), F.leaky_relu(x, 0.1),
                F.softplus(x), F.glu(x), F.logsigmoid(x), F.relu6(x), torch.isnan(x), torch.isinf(x))


@case("elementwise", f32(2, 3, 4), f32(4), positive(3, 1))
class Binary(nn.Module):
    def forward(self, x, y, p):
        return (x + y, x - y, torch.add(x, y, alpha=2), torch.sub(x, y, alpha=0.5), 1.5 - x, x * p,
                x / p, x / 2, 2 / p, torch.div(x, p, rounding_mode="floor"),
                torch.div(x, p, rounding_mode="trunc"), x // 2, x % p, torch.maximum(x, y),
                torch.minimum(x, y), torch.addcmul(x, y, p, value=0.5), torch.addcdiv(x, y, p),
                torch.lerp(x, y, 0.25))


@case("elementwise", positive(2, 4), f32(2, 4))
class Pow(nn.Module):
    def forward(self, x, y):
        return (x ** 2, x ** 3, x ** 0.5, x ** -0.5, x ** -1, x ** -2, x ** 1.7, 2 ** y,
                torch.pow(x, y))


@case("elementwise", f32(2, 4), f32(4), i64(3, 2, 4))
class Logic(nn.Module):
    def forward(self, x, y, n):
        a, b = x > y, x <= 0.5
        return (x == y, x != 0, x < y, x >= y, n == 1, n > 0.5, a & b, a | b, a ^ b, ~a,
                torch.logical_and(n, a), torch.logical_not(n), torch.where(a, x, y),
                torch.where(a, x, 0.0), x.masked_fill(a, float("-inf")),
                x.masked_fill(a, -1e9), x.clamp(-0.5, 0.5), x.clamp(min=0.0), x.clamp_max(1.0),
                n.clamp(max=1), torch.nan_to_num(x / 0, nan=1.0), a.all(), a.any(1),
                n.all(0, keepdim=True))


@case("elementwise", f32(2, 4), i64(9, 2, 4), boolean(2, 4), modes=ALL)
class Promotion(nn.Module):
    def forward(self, x, n, m):
        one = torch.tensor(1, dtype=torch.float64)
        return (x + n, n + 1, n + 1.5, n * m, n / 2, n // 2, n % 2, -n, m + m, m * m, x * m,
                x * one, n + one, 1 - m.to(x.dtype), n.float(), x.double(), x.to(torch.int64),
                x.half(), x.to(torch.bfloat16), n.to(torch.int32), m.type_as(x), n.to(torch.bool),
                (x.double() + 1).to(x.dtype), n.sqrt(), n ** 2)


@case("elementwise", f32(2, 4), f32(2, 4), modes=ALL)
class InPlace(nn.Module):
    def forward(self, x, y):
        x = x * 1
        x += y
        x.mul_(2).clamp_(min=0.0)
        mask = torch.full((2, 4), float("-inf"))
        mask = torch.triu(mask, diagonal=1)
        mask += x
        z = torch.zeros(2, 4)
        z.copy_(y)
        return x, mask, z, x.relu_()


# --- shapes ----------------------------------------------------------------


@case("shapes", f32(2, 6, 4), modes=ALL)
class Views(nn.Module):
    def forward(self, x):
        b, t, d = x.size()
        return (x.view(b, t, -1, 2), x.reshape(-1, d), x.flatten(1), x.flatten(), x.unsqueeze(-1),
                x[:, :1].squeeze(1), x[:, :1].squeeze(), x.transpose(1, 2), x.permute(2, 0, 1),
                x[0].t(), x.mT, x.movedim(0, -1), x.unflatten(1, (2, 3)), x[0].T,
                x.view(b, t, 2, d // 2).transpose(1, 2).contiguous().view(b, 2, t * d // 2),
                x.swapaxes(0, 1), x.view_as(x), x.detach(), x.clone())


@case("shapes", f32(2, 6, 4))
class Pieces(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        c, d, e = torch.split(x, [1, 2, 3], dim=1)
        f, g = x.split(3, 1)
        h, i = x.unbind(0)
        return (a, b, c, d, e, f, g, h, i, x[:, 1:4], x[:, ::2], x[:, -2:], x[..., 1], x[1], x[:, -1],
                x.narrow(1, 2, 3), x.select(2, -1), x[:, None, 2], x[0, 1:, 2:3],
                torch.cat([a, b, a], -1), torch.stack([a, b], 1), torch.cat((-b, a), dim=-1),
                x.flip(1), x.roll(1, 1), torch.roll(x, -2), F.pad(x, (1, 2)), F.pad(x, (0, 0, -1, 1), value=3.0))


@case("shapes", f32(2, 6, 4))
class Overlaps(nn.Module):
    def forward(self, x):
        a, b, c = torch.tensor_split(x, [4, 2], 1)
        d, e, f = torch.tensor_split(x, [-3, 9], 2)
        return a, b, c, d, e, f


@case("shapes", f32(2), modes=("script",))
class Scalars(nn.Module):
    """PyTorch takes dimension 0 of a scalar for one of size 1."""

    def forward(self, x):
        y = x.sum()
        return y.flip([0]), y.flip([-1]), y.movedim(0, 0), y.transpose(0, -1)


@case("shapes", f32(5, 2, 12))
class Heads(nn.Module):
    def forward(self, x):
        q = x.reshape(5, 2 * 3, 4).transpose(0, 1)
        return q.view(2, 3, 5, 4), q.view(2, 3, 5, 2, 2), q.reshape(3, 2, 5, 4), q.reshape(6, 20), q.view(6, 1, 5, 4)


@case("shapes", f32(2, 1, 4), f32(4))
class Repeats(nn.Module):
    def forward(self, x, y):
        return (x.expand(2, 3, 4), x.expand(-1, 5, -1), y.expand_as(x), y.repeat(2, 3), x.repeat(1, 2, 1),
                x.repeat_interleave(3, dim=1), y.repeat_interleave(2), torch.tile(y, (2,)),
                x[:, :, None, :].expand(2, 1, 3, 4).reshape(2, 3, 4), torch.broadcast_to(y, (3, 4)))


@case("shapes", f32(2, 5, 4), i64(5, 2, 3, 4), i64(4, 3), i64(5, 2, 3), modes=ALL)
class Indexing(nn.Module):
    def forward(self, x, g, s, n):
        b = torch.arange(2)
        return (x.gather(1, g), x.index_select(2, s), x[:, :, s], x[b[:, None], n], x[:, n],
                x[b, n[:, 0]], x[b[:, None], torch.arange(5)[None, :]],
                x[b[:, None, None, None], torch.arange(1, 4)[None, None, None, :]],
                x[:, torch.tensor([3, 0, -1])], x[:, -1 - n])


@case("shapes", f32(2, 4, 4), i64(3, 2, 5), modes=ALL)
class Creation(nn.Module):
    def forward(self, x, n):
        t = x.size(1)
        position = torch.arange(t, device=x.device)
        causal = torch.tril(torch.ones(t, t)).view(1, t, t)
        steps = torch.arange(0, 2, 0.5)
        return (position + torch.zeros_like(n[:, :4]), x.masked_fill(causal == 0, float("-inf")), x + steps, x.tril(), x.triu(1),
                torch.full_like(x, 2.5), x.new_zeros(2, 3), torch.zeros(t), torch.ones(2, t) * 2,
                torch.full((t,), 7), torch.arange(1, 9, 2), torch.eye(3), x + torch.linspace(0, 1, 4),
                n.cumsum(1), x.cumsum(-1), (n != 1).int().cumsum(1), torch.outer(position.float(), steps).cos() + x)


# --- contractions ----------------------------------------------------------


@case("contractions", f32(2, 3, 4), f32(2, 4, 5), f32(4), f32(3, 4), f32(4, 5))
class Products(nn.Module):
    def forward(self, x, y, v, m, w):
        return (x @ y, x @ w, x @ v, v @ y, m @ w, torch.mm(m, w), torch.bmm(x, y), m @ v, torch.mv(m, v), v @ w, v @ v,
                torch.dot(v, v), torch.addmm(w[0], m, w), torch.addmm(w[0], m, w, beta=0.5, alpha=2.0),
                torch.baddbmm(x @ y, x, y),
                torch.outer(v, v), x.unsqueeze(1) @ y.unsqueeze(0))


@case("contractions", f32(2, 3, 4, 2))
class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Parameter(torch.randn(5, 8)), nn.Parameter(torch.randn(3, 4))
        self.b = nn.Parameter(torch.randn(5))

    def forward(self, x):
        y = F.linear(x.reshape(6, 8), self.w, self.b)
        return y.view(2, 3, 5), torch.relu(y), F.linear(x.reshape(12, 4), self.v), F.linear(x.reshape(6, 2, 4), self.v)


@case("contractions", f32(2, 3, 8))
class Linears(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 6)
        self.b = nn.Linear(6, 4, bias=False)
        self.w = nn.Parameter(torch.randn(5, 4))
        self.c = nn.Parameter(torch.randn(4, 3))

    def forward(self, x):
        y = self.b(self.a(x))
        return y, y @ self.w.t(), y @ self.c, F.linear(x[0, 0], self.a.weight), torch.addmm(self.w[:, 0], y[0], self.w.t())


@case("contractions", i64(10, 2, 3))
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4, padding_idx=0)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


@case("contractions", f32(2, 4, 5, 8), f32(2, 2, 5, 8), f32(2, 2, 5, 6), boolean(2, 1, 5, 5), modes=ALL)
class Attention(nn.Module):
    def forward(self, q, k, v, m):
        attend = F.scaled_dot_product_attention
        m = m | torch.eye(5, dtype=torch.bool)
        bias = torch.zeros(5, 5).masked_fill(m, 1.0)
        k4, v4 = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        return (attend(q, k4, v4), attend(q, k4, v4, attn_mask=m), attend(q, k4, v4, attn_mask=bias),
                attend(q, k4, v4, is_causal=True), attend(q, k4, v4, scale=0.3),
                attend(q, k, v, enable_gqa=True), attend(q[:, 0], k[:, 0], v[:, 0]),
                attend(q[:, 0], k[:, 0], v[:, 0], attn_mask=m[:, 0]),
                attend(q, k4, v4, attn_mask=torch.ones(5, 5, dtype=torch.bool).tril()))


@case("contractions", f32(2, 3, 4), f32(2, 5, 4), f32(4, 6))
class Einsums(nn.Module):
    def forward(self, x, y, w):
        return (torch.einsum("bid,bjd->bij", x, y), torch.einsum("bid,df->bif", x, w),
                torch.einsum("bid->bdi", x), torch.einsum("bid,bjd,df->bfij", x, y, w), torch.einsum("i,j->ij", w[0], w[1]))


# --- reductions and norms ----------------------------------------------------


@case("reductions", f32(2, 3, 4), i64(5, 2, 3))
class Reductions(nn.Module):
    def forward(self, x, n):
        m, i = x.max(dim=1)
        return (x.sum(), x.sum(-1), x.sum((0, 2), keepdim=True), n.sum(1), (n > 1).sum(1), x.mean(-1), x.mean((1, 2)), x.amax(1),
                x.amin((0, 1)), m, i, x.min(-1, keepdim=True)[0], x.min(-1)[1], x.max(), n.max(), x.argmax(-1), x.argmax(), x.argmin(1, keepdim=True), x.var(-1), x.var(1, unbiased=False),
                x.std((0, 1)), x[0].prod(0), torch.var_mean(x, -1)[1], torch.logsumexp(x, -1), x.norm(), x.norm(2, -1),
                torch.linalg.vector_norm(x, 1, -1), F.normalize(x, dim=-1), x.sum(-1, dtype=torch.float64))


@case("reductions", f32(2, 3, 4), modes=ALL)
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(4)
        self.plain = nn.LayerNorm((3, 4), elementwise_affine=False)
        self.nobias = nn.LayerNorm(4, bias=False)
        self.rms = nn.RMSNorm(4, eps=1e-5)
        self.rms2 = nn.RMSNorm(4, elementwise_affine=False)
        self.bn = nn.BatchNorm1d(3)
        self.gn = nn.GroupNorm(3, 3)
        for p in self.parameters():
            nn.init.uniform_(p)
        nn.init.uniform_(self.bn.running_mean)

    def forward(self, x):
        return (self.ln(x), self.plain(x), self.nobias(x), self.rms(x), self.rms2(x), self.bn(x), self.gn(x), x.softmax(-1), F.softmax(x, 1),
                F.log_softmax(x, dim=-1), F.softmax(x.half(), -1, dtype=torch.float32), F.dropout(x, 0.1, False))


@case("reductions", f32(6, 5), i64(5, 6), f32(2, 5, 3), i64(5, 2, 3), positive(5), modes=ALL)
class Losses(nn.Module):
    def forward(self, x, t, y, u, w):
        return (F.cross_entropy(x, t), F.cross_entropy(x, t, reduction="sum", label_smoothing=0.1),
                F.cross_entropy(x, t, weight=w, ignore_index=2), F.cross_entropy(y, u, reduction="none"),
                F.nll_loss(F.log_softmax(x, -1), t), F.mse_loss(x, x * 0.5))


# --- structure ---------------------------------------------------------------


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, scale: float, extra: Optional[Tensor] = None):
        y = self.drop(self.proj(x)) * scale
        if extra is not None:
            y = y + extra
        return self.act(y)

    def act(self, x):
        return torch.relu(x)


@case("structure", f32(2, 4), modes=("script", "export", "core"))
class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(3)])
        self.flag = True

    def forward(self, x) -> Dict[str, Tensor]:
        hidden: List[Tensor] = []
        for i, layer in enumerate(self.layers):
            x = layer(x, 0.5 + i, x if i % 2 == 1 else None)
            hidden.append(x)
        n = 0
        while n < x.size(0):
            x = x + n
            n += 1
        if not self.flag:
            x = torch.nonzero(x).float()
        assert x.size(1) == 4, f"expected 4, got {x.size(1)}"
        return {"last": x, "all": torch.stack(hidden)}


class Pair(nn.Module):
    def forward(self, pair: Tuple[Tensor, Tensor], names: Dict[str, Tensor]) -> Tuple[Tensor, List[Tensor]]:
        a, b = pair
        return a + b, [names["x"] * a, b]


@case("structure", f32(2, 4), modes=("script", "export", "core"))
class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair()
        self.register_buffer("table", torch.arange(8.0).view(2, 4))
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        total, parts = self.pair((x, x + self.table), {"x": x})
        return total, parts


@case("structure", f32(2, 3), modes=ALL)
class LargeConstant(nn.Module):
    def forward(self, x):
        # No form of its own and too many elements to be written out.
        table = (torch.arange(1100000.0) * 0.1).sin()
        return x.sum() + table


@case("structure", f32(2, 5, 8), modes=ALL)
class Torchs(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.mha = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.layer(x), self.mha(x, x, x, need_weights=False)[0]


# --- convolutions ----------------------------------------------------------


@case("convolutions", f32(2, 4, 9, 8))
class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.strided = nn.Conv2d(4, 6, 3, stride=(2, 1), padding=1, dilation=(1, 2))
        self.depthwise = nn.Conv2d(6, 12, (1, 3), groups=6, bias=False)
        self.same = nn.Conv2d(4, 6, (3, 4), padding="same", groups=2)
        self.valid = nn.Conv2d(4, 6, 2, padding="valid")
        self.line = nn.Conv1d(4, 3, 3, padding=2)
        self.volume = nn.Conv3d(2, 3, (1, 3, 2), stride=(1, 2, 1), padding=(0, 1, 0))

    def forward(self, x):
        y = self.strided(x)
        return (y, self.depthwise(y), self.strided(x[0]), F.conv2d(x, self.strided.weight), self.same(x), self.valid(x),
                self.line(x[:, :, 0]), self.line(x[0, :, 0]), self.volume(x[:, :2, None]))


@case("convolutions", f32(2, 4, 5, 6))
class TransposedConvolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 6, 2, stride=2)
        self.wide = nn.ConvTranspose2d(4, 6, (3, 4), stride=(2, 3), padding=(1, 0), output_padding=(1, 2), dilation=(2, 1))
        self.grouped = nn.ConvTranspose2d(4, 6, 3, padding=2, groups=2, bias=False)
        self.line = nn.ConvTranspose1d(4, 3, 3, stride=2, padding=1, output_padding=1)
        self.volume = nn.ConvTranspose3d(2, 3, 2)

    def forward(self, x):
        return self.up(x), self.wide(x), self.grouped(x), self.up(x[0]), self.line(x[:, :, 0]), self.volume(x[:, :2, None])


@case("convolutions", f32(2, 3, 8, 9))
class Windows(nn.Module):
    def forward(self, x):
        columns = F.unfold(x, (2, 3), dilation=(1, 2), padding=1, stride=(2, 1))
        return (columns, F.fold(columns, (8, 9), (2, 3), dilation=(1, 2), padding=1, stride=(2, 1)),
                F.unfold(x[0], 2, stride=2), x.unfold(2, 3, 2), x.unfold(-1, 2, 2), x.unfold(1, 3, 1))


@case("convolutions", f32(2, 3, 8, 9))
class Pooling(nn.Module):
    def forward(self, x):
        values, indices = F.max_pool2d_with_indices(x, 3, 2, 1)
        return (values, indices, F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2), F.max_pool2d(x, (2, 3), (1, 2), (1, 0), (2, 1)),
                F.max_pool2d(x, 3, 2, ceil_mode=True), F.max_pool1d(x[:, 0], 3, 2), F.max_pool3d(x, 2, 2),
                F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
                F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, (1, 0), True, False),
                F.avg_pool2d(x, (2, 3), 1, divisor_override=5), F.avg_pool1d(x[:, 0], 2, 1, 1), F.avg_pool3d(x, 2),
                F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (4, 3)), F.adaptive_avg_pool2d(x, (3, 5)),
                F.adaptive_avg_pool1d(x[:, 0], 4), F.adaptive_avg_pool3d(x, (2, 3, 3)), F.adaptive_max_pool2d(x, (3, 5)),
                F.adaptive_max_pool1d(x[:, 0], 4), F.adaptive_max_pool2d_with_indices(x, (5, 4))[1])


@case("convolutions", f32(2, 4, 5, 6))
class Resizing(nn.Module):
    def forward(self, x):
        return (F.interpolate(x, scale_factor=2.0), F.interpolate(x, size=[7, 4]), F.interpolate(x, scale_factor=[1.5, 0.7]),
                F.interpolate(x[:, :, 0], scale_factor=3.0), F.interpolate(x[:, :, None], size=[2, 5, 9]),
                F.interpolate(x, size=[7, 4], mode="nearest-exact"), F.interpolate(x, scale_factor=2.0, mode="bilinear"),
                F.interpolate(x, size=[7, 4], mode="bilinear", align_corners=True),
                F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
                F.interpolate(x, size=[9, 3], mode="bicubic"), F.interpolate(x, scale_factor=[1.5, 2.0], mode="bicubic", align_corners=True),
                F.interpolate(x[:, :, 0], size=[9], mode="linear"), F.interpolate(x[:, :, None], size=[2, 3, 9], mode="trilinear"),
                F.pixel_shuffle(x, 2), F.pixel_unshuffle(x[:, :, :4], 2), F.channel_shuffle(x, 2))


@case("convolutions", f32(2, 4, 5, 6))
class ChannelNorms(nn.Module):
    def __init__(self):
        super().__init__()
        self.batch, self.group = nn.BatchNorm2d(4), nn.GroupNorm(2, 4)
        self.instance, self.plain = nn.InstanceNorm2d(4, affine=True), nn.BatchNorm2d(4, affine=False, track_running_stats=False)
        self.batch.running_mean.normal_()
        self.batch.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.batch(x), self.group(x), self.instance(x), self.plain(x)


@case("elementwise", f32(4, 6))
class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.slopes, self.slope = nn.PReLU(6), nn.PReLU()

    def forward(self, x):
        x = 3 * x
        p = x.abs() + 0.5
        return (F.mish(x), F.mish(20 * x), F.elu(x, 0.7), F.elu(100 * x), F.selu(x), F.celu(x, 0.7), F.hardswish(x), F.hardsigmoid(x),
                self.slopes(x), self.slope(x), torch.expm1(x), torch.log1p(p), torch.log2(p), torch.log10(p), torch.exp2(x),
                torch.atan(x), torch.round(x), torch.sign(x), F.threshold(x, 0.1, 20.0), F.hardshrink(x), F.softshrink(x),
                F.softsign(x), F.tanhshrink(x))


# --- sorting, searching, writes at computed positions ------------------------


@case("indices", f32(2, 3, 5), i64(4, 2, 6), boolean(2, 3), modes=ALL)
class Sorting(nn.Module):
    def forward(self, x, n, b):
        first, at = torch.topk(x, 3)
        low, low_at = torch.topk(x, 2, dim=1, largest=False, sorted=True)
        values, order = torch.sort(n, stable=True, dim=-1, descending=True)
        sorted_, places = x.sort(dim=0)
        third, third_at = torch.kthvalue(x, 3, dim=2, keepdim=True)
        middle, middle_at = x.median(dim=-1)
        return (first, at, low, low_at, values, order, sorted_, places, n.argsort(stable=True), torch.argsort(x, 1, True), torch.msort(x),
                third, third_at, middle, middle_at, x.median(), torch.sort(b, stable=True, dim=1)[0], x.cumsum(1), n.cumsum(-1), b.cumsum(0))


@case("indices", f32(2, 5), f32(7), i64(4, 2, 3), modes=ALL)
class Searching(nn.Module):
    def forward(self, x, boundaries, n):
        sorted_, rows = boundaries.sort()[0], x.sort()[0]
        counts = torch.histc(n.float(), bins=4, min=0, max=3)
        return (torch.bucketize(x, sorted_), torch.bucketize(x, sorted_, right=True, out_int32=True), torch.searchsorted(sorted_, x),
                torch.searchsorted(sorted_, x, right=True), torch.searchsorted(rows, x.flip(0), side="right"),
                torch.searchsorted(rows, x[:, :2] * 0.5), counts, counts.cumsum(0, dtype=torch.int32), torch.histc(x, 6, -1.0, 1.0))


@case("indices", i64(4, 2, 3), modes=("script", "trace", "export"))
class OneHot(nn.Module):
    def forward(self, n):
        return (F.one_hot(n, 4),)


@case("indices", f32(5, 4), f32(3, 4), i64(5, 3), i64(3, 5, 2), boolean(5, 4), modes=ALL)
class Scattering(nn.Module):
    def forward(self, x, y, i, n, b):
        rows = i.unsqueeze(-1).expand(3, 4)
        apart = torch.argsort(x, stable=True, dim=0)[:3]
        return (x.scatter_add(0, rows, y), x.scatter(0, apart, y), x.scatter(0, apart, 1.5), x.scatter(1, n, 2.5), x.scatter(0, apart[:2, :3], y),
                x.scatter_reduce(0, rows, y, "sum"), x.scatter_reduce(0, rows, y, "amax"), x.scatter_reduce(0, rows, y, "amin", include_self=False),
                x.scatter_reduce(0, rows, y, "mean"), x.scatter_reduce(0, rows, y, "mean", include_self=False),
                x.scatter_reduce(0, rows, y, "sum", include_self=False), x.index_add(0, i, y), x.index_add(0, i, y, alpha=-0.5),
                x.index_copy(0, apart[:, 0], y), x.index_fill(1, n[0], -1.0), x.masked_scatter(b, x * 2), x.take_along_dim(n, 1),
                torch.take_along_dim(x, i))


@case("indices", f32(5, 4), f32(3, 4), i64(5, 3), modes=ALL)
class InPlace(nn.Module):
    def forward(self, x, y, i):
        a, b, c, d, e = x + 0, x + 0, x + 0, x + 0, x + 0
        a.index_add_(0, i, y)
        b.scatter_add_(0, i.unsqueeze(-1).expand(3, 4), y)
        c.index_fill_(0, i, 3.0)
        d.index_put_([i], y, accumulate=True)
        e.scatter_(1, i[:2].unsqueeze(0) % 4, 9.0)
        order = torch.argsort(x[:, 0], stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(5)
        cache = torch.zeros(6, 4)
        cache.index_copy_(0, i[:1] + 1, y[:1])
        return a, b, c, d, e, inverse, cache


@case("indices", f32(5, 4, 3), i64(5, 2), i64(4, 2), i64(3, 2, 1), f32(2, 3), modes=ALL)
class Tuples(nn.Module):
    def forward(self, x, i, j, k, y):
        first, both, summed, negative = x + 0, x + 0, x + 0, x + 0
        first[i[:1]] = y[0]
        both[i[:1], j[:1]] = y[:1]
        summed.index_put_([i, j], y, accumulate=True)
        negative[-1 - i, -1 - j] = y[0]
        return (x[i, j], x[:, j], x[i, :, k[:, 0]], x[i, j, k], x[:, j, k], x[i[:, None], :, k[0]], first, both, summed, negative)


# PyTorch exports it in bf16 only, and needs strides of 16 bytes.
@case("indices", f32(16, 8), f32(4, 8, 16), f32(16, 24), i64(5, 4), modes=("trace", "export", "core"))
class Grouped(nn.Module):
    def forward(self, x, w, y, counts):
        x, w, y = x.bfloat16(), w.bfloat16(), y.bfloat16()
        ends = (counts - counts + 4).cumsum(0, dtype=torch.int32)
        return F.grouped_mm(x, w, offs=ends), F.grouped_mm(x.T, y, offs=ends), torch._grouped_mm(x.reshape(4, 4, 8), w)


# --- composites --------------------------------------------------------------


@case("composites", f32(3, 2, 4), modes=ALL)
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.projected = nn.LSTM(4, 5), nn.LSTM(4, 5, num_layers=2, batch_first=True, bidirectional=True, proj_size=3)
        self.gru, self.rnn = nn.GRU(4, 5, num_layers=2, dropout=0.5), nn.RNN(4, 5, bias=False, bidirectional=True)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return y, h, c, self.projected(x)[0], self.gru(x)[0], self.rnn(x)[1]


@case("composites", f32(2, 6, 3, 8), f32(2, 4), f32(2, 4), modes=ALL)
class Rotary(nn.Module):
    """Rotary positions by complex numbers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("freqs_cis", torch.polar(torch.ones(16, 4), torch.randn(16, 4)), persistent=False)

    def forward(self, x, y, z):
        pairs = torch.view_as_complex(x.reshape(2, 6, 3, 4, 2))
        rotated = torch.view_as_real(pairs * self.freqs_cis[:6].view(1, 6, 1, 4)).flatten(3)
        w = torch.complex(y, z)
        return rotated, w.abs(), (w / (w + 1)).real, torch.view_as_real(w.transpose(-1, 0).conj().resolve_conj() - 2), (w * y).imag


@case("composites", f32(2, 3, 6), modes=("trace", "export", "core"))
class Normed(nn.Module):
    """Weights that are computed."""

    def __init__(self):
        super().__init__()
        self.weight = nn.utils.parametrizations.weight_norm(nn.Linear(6, 5))
        self.conv = nn.utils.weight_norm(nn.Conv1d(3, 4, 2))
        self.spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 5))

    def forward(self, x):
        return self.weight(x), self.conv(x), self.spectral(x)


@case("composites", f32(2, 3, 4), f32(2, 3, 4), modes=ALL)
class Parts(nn.Module):
    """Ops that have no handler, and forms that handlers leave."""

    def forward(self, x, y):
        return (torch.hstack([x, y]), torch.tensordot(x, y, dims=[[1, 2], [1, 2]]), F.cosine_similarity(x, y, dim=1),
                F.triplet_margin_loss(x, y, x * y), torch.einsum("...ij,kj", [x, y[0]]), F.cross_entropy(x, y.softmax(1)),
                torch.kron(x[0], y[0]), F.kl_div(x, y.sigmoid(), reduction="sum"), torch.rot90(x, 1, [0, 1]))
# --- writes ----------------------------------------------------------------


@case("writes", f32(4, 6), f32(4, 6), modes=ALL)
class Written(nn.Module):
    """Each view of a tensor is written in its own copy."""

    def forward(self, x, z):
        a = x.clone(); a[:, :2] = 0
        b = x.clone(); b[:, ::2] *= 2
        c = x.clone(); c[0].zero_()
        d = x.clone(); d[:, :2].zero_(); d[:, 3:] += 1
        e = x.clone(); e.view(-1)[3:].zero_()
        f = x.clone(); f.t().add_(z[:, :1].t())
        g = x.clone(); g[1].copy_(g[2])
        h = x.clone(); h.chunk(2, 1)[0].mul_(3); h.split([1, 3, 2], 1)[2].copy_(z[:, :2])
        i = x.clone(); i.diagonal().zero_(); i.diagonal(2).add_(1); i.diagonal(-1, 1, 0).add_(5)
        j = x.clone(); j.unsqueeze(0)[..., 1].add_(1)
        k = x.clone(); k.unbind(1)[2].copy_(z[:, 0]); k.narrow(0, 1, 2).select(1, -1).neg_()
        l = x.clone(); l.view(2, 2, 6).permute(2, 0, 1)[1:5, 1].exp_()
        m = x.clone(); m.view(4, 3, 2)[:, 1:, 0] = z[:, :2]
        n = x.clone(); n.fill_diagonal_(1.5); n = torch.cat([n.t(), n.t()]); n.fill_diagonal_(2.5, wrap=True)
        o = x.clone(); o.flatten().squeeze()[5:20:3] = 7
        p = x.t().clone(); p.unflatten(0, [2, 3])[1].t()[2:].sub_(1)
        q = x.clone(); q.as_strided([3, 2], [7, 2], 1).mul_(2); q.as_strided([4, 5], [6, 1], 1).add_(1)
        r = x.clone(); r[1:3, 2:4] = z[1:3, 2:4]; r[-1, -1] = 4
        return a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r


@case("writes", f32(4, 6), f32(4, 6), boolean(4, 6), boolean(4), modes=ALL)
class Masked(nn.Module):
    def forward(self, x, z, full, rows):
        a = x.clone(); a[full] = 0
        b = x.clone(); b[rows] = z[0]
        c = x.clone(); c[:, x[0] > 0] = 3
        d = x.clone(); d[x > 0] = z.sum()
        e = x.clone(); e[:2].masked_fill_(full[:2], 2)
        f = x.clone(); f.view(2, 2, 6)[:, rows[:2]] = z.view(2, 2, 6)[:, :1]
        g = x.masked_scatter(full, torch.full([4, 6], 2.5)), x.masked_scatter(rows[:, None], z[0, 0].expand(4, 6))
        h = x.clone(); h.index_put_([rows], z[1], accumulate=True)
        return a, b, c, d, e, f, g[0], g[1], h


@case("writes", f32(4, 6), modes=ALL)
class Shared(nn.Module):
    """Views that were made before a write have its values."""

    def forward(self, x):
        y = x + 1
        row, columns, flat = y[1], y[:, 2:4], y.view(24)
        before = row * 1
        y[:, 1:3] = 0
        between = row * columns.sum()
        columns.add_(row[0])
        flat[::5] = -1
        row.mul_(2)
        z = torch.zeros(2, 6)
        part = z[1]
        z[0] = x[0]
        part += row
        w = z.t()
        z.sub_(1)
        s = torch.zeros(3, 2).expand(3, 2).clone()
        s[1:] = x[:2, :2]
        u = y.detach()
        return before, between, y, row, columns, flat, z, part, w, s, u


class Inner(nn.Module):
    def forward(self, part, whole):
        part.add_(1)
        whole[0].zero_()
        fresh = whole * 2
        fresh[:, 0] = 5
        return fresh[:, :2], fresh[:, 1:], part


class Fill(nn.Module):
    def forward(self, target, x):
        target[:] = x[:2]
        return x * 1


@case("writes", f32(4, 6), modes=ALL)
class Across(nn.Module):
    """What a module writes, its callers read."""

    def __init__(self):
        super().__init__()
        self.inner, self.fill = Inner(), Fill()

    def forward(self, x):
        zeros = torch.zeros(2, 6)
        part = zeros[0]
        self.fill(zeros, x)
        y = x * (zeros.sum() + part[0])
        other = y[:, 1]
        a, b, c = self.inner(y[:, 1:3], y)
        a.mul_(3)
        d = b * 1
        c.sub_(2)
        e, f, g = self.inner(c, a)
        return a, b, c, d, e, f, g, y, other


@case("writes", f32(4, 6), modes=("script",))
class Looped(nn.Module):
    def forward(self, x):
        y = torch.zeros(4, 6)
        parts = [y[:, 0]]
        for i in range(1, 6):
            y[:, i] = y[:, i - 1] + x[:, i]
            if i % 2 == 0:
                y[i // 2] *= 2
            parts.append(y[:, i])
        y[0] = 1
        return y, parts


@case("writes", i64(9, 2, 5), modes=ALL)
class Shifted(nn.Module):
    """T5's decoder inputs."""

    def forward(self, labels):
        ids = labels.new_zeros(labels.shape)
        ids[..., 1:] = labels[..., :-1].clone()
        ids[..., 0] = 3
        return ids.masked_fill_(ids == 4, 0)


@case("writes", f32(2, 6), modes=ALL)
class Nothing(nn.Module):
    def forward(self, x):
        y = x.clone(); y[:, 6:] = 1; y[2:].zero_(); y[:, :0].add_(1)
        z = torch.zeros(0, 3); z[:, 1:] = x[:0, :2]
        return y, z


@case("writes", f32(4, 6), f32(4, 2), modes=ALL)
class Scattered(nn.Module):
    def forward(self, x, z):
        return (x.slice_scatter(z, 1, 2, 4), x.slice_scatter(z, 1, -5, 9, 3), x.slice_scatter(z[:, :0], 1, 4, 2),
                x.select_scatter(z[:, 1], -1, -2), x.diagonal_scatter(z[:, 0]), x.diagonal_scatter(z[:2, 1], -2),
                x.view(2, 2, 6).diagonal_scatter(x[0, :, None], 1, 0, 1), x.diagonal_scatter(z[:, 0], 1),
                x.as_strided_scatter(z[:3], [3, 2], [7, 2], 1))
