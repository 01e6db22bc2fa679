"""Functions of PyTorch from end to end: exported, imported, compiled and run, against PyTorch: values and gradients.

  functions.py [--filter REGEX] [--each] [--keep DIRECTORY]

Many calls make one program, each with inputs of its own. Exit code 1 when anything differs.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import torch.nn.functional as F

from sampling import take

# The inputs, by the names that calls have for them: x, y, z are normal, p positive, u within (-1, 1), o above 1, q within (0, 1),
# i integers, j positive integers, n indices below 3, b booleans, s numbers with infinities and NaN.
SHAPE = (2, 3, 4)
# How many of the calls run on 2 ranks.
RANKED = 100


def make_inputs():
    inf, nan = float("inf"), float("nan")
    return {
        "x": torch.randn(SHAPE), "y": torch.randn(SHAPE), "z": torch.randn(SHAPE), "p": torch.rand(SHAPE) + 0.5,
        "u": torch.rand(SHAPE) * 1.8 - 0.9, "o": torch.rand(SHAPE) * 3 + 1.1, "q": torch.rand(SHAPE) * 0.8 + 0.1,
        "i": torch.randint(-9, 10, SHAPE), "j": torch.randint(1, 7, SHAPE), "n": torch.randint(0, 3, (2, 3)),
        "b": torch.rand(SHAPE) > 0.4, "s": torch.tensor([1.5, -inf, inf, nan, -0.0, 0.0, -2.5, 3.0]),
        "m": torch.randn(4, 4) + 3 * torch.eye(4), "w": torch.randn(5, 4), "v": torch.randn(4), "t": torch.randn(6),
    }


# One call a line. Behind '#' stands 'values' if gradients aren't compared: with a kink at an input, or none in PyTorch.
FUNCTIONS = """
F.embedding(n.flatten()[:5], w).sum(0) + F.embedding(n.flatten()[:5], torch.exp(w)) * w
m[n.flatten()[:4]].sum() + torch.exp(m)[n.flatten()[:4]] * m
torch.tan(u)
torch.sinh(x)
torch.cosh(x)
torch.asin(u)
torch.acos(u)
torch.arcsin(u)
torch.arccos(u)
torch.asinh(x)
torch.acosh(o)
torch.atanh(u)
torch.arctanh(u)
torch.atan2(x, y)
torch.arctan2(x, y)
torch.sinc(p)
torch.deg2rad(x)
torch.rad2deg(x)
torch.exp2(x)
torch.log2(p)
torch.log10(p)
torch.square(x)
torch.trunc(x)
torch.fix(x)
torch.frac(x)
torch.sign(x)
torch.sgn(x)
torch.signbit(x)
torch.positive(x)
torch.negative(x)
torch.absolute(x)
torch.round(x, decimals=1)
torch.round(x * 100, decimals=-1)
torch.fmod(x, p)
torch.fmod(x, 0.7)
torch.fmod(i, 4)
torch.fmod(i, j)
torch.remainder(x, p)
torch.remainder(x, -0.7)
torch.remainder(i, 4)
torch.remainder(3.0, p) # values
torch.hypot(x, y)
torch.heaviside(x, y) # values
torch.copysign(x, y)
torch.copysign(x, -1.0)
torch.xlogy(x, p)
torch.xlogy(x, 2.0)
torch.xlogy(2.0, p)
torch.special.xlogy(x * 0, p)
torch.special.xlog1py(x, p)
torch.logaddexp(x, y)
torch.logaddexp2(x, y)
torch.ldexp(x, i) # values
torch.float_power(p, 2.5)
torch.float_power(p, y)
torch.pow(2.0, x)
torch.pow(p, y)
torch.fmax(x, y)
torch.fmin(x, y)
torch.isfinite(s)
torch.isinf(s)
torch.isnan(s)
torch.isneginf(s)
torch.isposinf(s)
torch.isreal(s)
torch.isclose(x, x + 1e-9)
torch.nan_to_num(s) # values
torch.logit(q)
torch.logit(q, eps=0.2) # values
torch.special.expit(x)
torch.special.exp2(x)
torch.special.expm1(x)
torch.special.log1p(p)
torch.special.log_softmax(x, 1)
torch.special.softmax(x, 1)
torch.special.logit(q)
torch.special.round(x)
torch.special.sinc(p)
torch.special.erf(x)
torch.special.entr(p)
torch.special.ndtr(x)
torch.special.log_ndtr(x)
torch.special.psi(p)
torch.special.gammaln(p)
torch.special.logsumexp(x, 1)
torch.erfc(x)
torch.erfc(x * 2)
torch.erfinv(u)
torch.special.erfcx(x)
torch.lgamma(p)
torch.lgamma(x * 3)
torch.digamma(p)
torch.digamma(x * 3)
torch.mvlgamma(o, 2)
torch.lerp(x, y, 0.3)
torch.lerp(x, y, q)
torch.addcmul(x, y, p, value=0.5)
torch.addcdiv(x, y, p, value=0.5)
torch.clamp(x, y - 0.5, y + 0.5)
torch.clip(x, -0.5, 0.5)
torch.maximum(x, y)
torch.bitwise_not(i)
torch.bitwise_and(i, 6)
torch.bitwise_or(i, 5)
torch.bitwise_xor(i, 5)
torch.bitwise_and(i, -7)
i & 3
i | 8
i ^ 12
~i
i << 2
i >> 1
torch.bitwise_left_shift(i, j)
torch.bitwise_right_shift(i, j)
torch.bitwise_and(b, ~b)
torch.logical_xor(b, i > 0)
torch.floor_divide(i, 4)
torch.true_divide(i, 4)
torch.rsub(x, y)
torch.subtract(x, y)
F.softsign(x)
F.tanhshrink(x)
F.hardshrink(x, 0.3)
F.softshrink(x, 0.3)
F.threshold(x, 0.1, 20)
F.logsigmoid(x)
F.rrelu(x, 0.1, 0.3)
F.glu(x, -1)
F.hardtanh(x, -0.5, 0.5)
F.relu6(x * 4)
F.elu(x, 0.7)
F.celu(x, 0.7)
F.selu(x)
F.mish(x)
F.silu(x)
F.hardswish(x * 2)
F.hardsigmoid(x * 2)
F.leaky_relu(x, 0.2)
F.prelu(x, v[:3])
F.softplus(x, 2, 1)
F.gelu(x, approximate='tanh')
F.softmin(x, 1)
F.log_softmax(x, 2)
F.l1_loss(x, y)
F.l1_loss(x, y, reduction='sum')
F.l1_loss(x, y, reduction='none')
F.mse_loss(x, y)
F.mse_loss(x, y, reduction='sum')
F.mse_loss(x, y, reduction='none')
F.smooth_l1_loss(x, y)
F.smooth_l1_loss(x, y, reduction='sum', beta=0.5)
F.smooth_l1_loss(x, y, reduction='none', beta=0)
F.huber_loss(x, y)
F.huber_loss(x, y, reduction='sum', delta=0.5)
F.huber_loss(x, y, reduction='none')
F.binary_cross_entropy(q, torch.sigmoid(y))
F.binary_cross_entropy(q, torch.sigmoid(y), weight=p.detach(), reduction='sum')
F.binary_cross_entropy(q, b.float(), reduction='none')
F.binary_cross_entropy_with_logits(x, torch.sigmoid(y))
F.binary_cross_entropy_with_logits(x, torch.sigmoid(y), weight=p.detach(), pos_weight=q.detach(), reduction='sum')
F.binary_cross_entropy_with_logits(x, b.float(), pos_weight=q.detach(), reduction='none')
F.kl_div(x, q)
F.kl_div(x, q, reduction='batchmean')
F.kl_div(x, y, reduction='sum', log_target=True)
F.kl_div(x, y, reduction='none', log_target=True)
F.nll_loss(x[:, :, 0].log_softmax(1), n[:, 0])
F.nll_loss(x.log_softmax(1), torch.cat([n, n[:, :1]], 1), weight=p[0, :, 0].detach(), reduction='sum', ignore_index=1)
F.nll_loss(x[..., None].log_softmax(1), torch.cat([n, n[:, :1]], 1)[..., None], reduction='none')
F.cross_entropy(x[:, :, 0], n[:, 0])
F.cross_entropy(x, torch.cat([n, n[:, :1]], 1), weight=torch.tensor([1.0, 0.5, 2.0]), label_smoothing=0.1)
F.cross_entropy(x[..., None], torch.cat([n, n[:, :1]], 1)[..., None], reduction='sum', ignore_index=2)
F.cross_entropy(x, y.softmax(1))
F.cross_entropy(x, y.softmax(1), weight=torch.tensor([1.0, 0.5, 2.0]), label_smoothing=0.1, reduction='sum')
F.cross_entropy(x[:, :, 0], y[:, :, 0].softmax(1), reduction='none')
F.cross_entropy(x[0, :, 0], y[0, :, 0].softmax(0))
F.cosine_similarity(x, y, dim=1)
F.cosine_embedding_loss(x[0], y[0], n[0].sign() * 2 - 1, margin=0.2)
F.margin_ranking_loss(x, y, b.float() * 2 - 1, margin=0.3)
F.hinge_embedding_loss(x, b.float() * 2 - 1)
F.soft_margin_loss(x, b.float() * 2 - 1)
F.soft_margin_loss(x, b.float() * 2 - 1, reduction='none')
F.multilabel_soft_margin_loss(x[0], b[0].float())
F.triplet_margin_loss(x[0], y[0], z[0])
F.triplet_margin_loss(x[0], y[0], z[0], swap=True, p=1.0, reduction='sum')
F.triplet_margin_with_distance_loss(x[0], y[0], z[0])
F.poisson_nll_loss(x, p)
F.poisson_nll_loss(p, p, log_input=False, full=True)
F.multi_margin_loss(x[0], n[0])
F.multi_margin_loss(x[0], n[0], p=2, margin=0.5, weight=torch.tensor([1.0, 0.5, 2.0, 1.0]), reduction='none')
F.pairwise_distance(x, y)
F.pairwise_distance(x, y, p=1.0, keepdim=True)
F.normalize(x, dim=1)
F.normalize(x, p=3.0, dim=2)
torch.hstack([x, y])
torch.vstack([x, y])
torch.dstack([x, y])
torch.column_stack([v, w.t()])
torch.hsplit(x, 3)[1]
torch.vsplit(x, 2)[1]
torch.dsplit(x, [1, 3])[1]
torch.tensor_split(t, 4)[1]
torch.take_along_dim(x, n[:, :, None] * 0 + n[:, :, None], 2)
torch.take(x, n)
F.one_hot(n, 3)
torch.meshgrid(v, t, indexing='ij')[0]
torch.meshgrid(v, t, indexing='xy')[1]
torch.tensordot(x, y, dims=([1, 2], [1, 2]))
torch.tensordot(x, w, dims=([2], [1]))
torch.einsum('bij,bkj->bik', x, y)
torch.einsum('bij,bij->b', x, y)
torch.einsum('...i,...i', x, y)
torch.einsum('...ij,kj->...ik', x, w)
torch.einsum('bij->bji', x)
torch.einsum('bij->', x)
torch.einsum('ij,ij->ij', m, m)
torch.einsum('i,j', v, t)
torch.einsum('ij,jk', m, m)
torch.einsum('bij,jk,bkl->bil', x, m, y.transpose(1, 2))
torch.einsum('ii->i', m)
torch.einsum('ii', m)
torch.einsum('ij,i->ij', m, v)
torch.einsum('bij,bj->bi', x, x[:1, 0])
torch.diagonal(m)
torch.diagonal(x, 1, 1, 2)
torch.diag(m)
torch.diag(v)
torch.diag(v, 1)
torch.diag_embed(x)
torch.diag_embed(x, 1, 0, 2)
torch.diagflat(v)
torch.linalg.diagonal(x)
torch.trace(m)
torch.tril(x, 1)
torch.triu(x, -1)
x[0, *torch.tril_indices(3, 4)]
x[0, *torch.triu_indices(3, 4)]
torch.diff(x)
torch.diff(x, n=2, dim=1)
torch.count_nonzero(i)
torch.count_nonzero(i, dim=1)
torch.aminmax(x, dim=1)[1]
torch.aminmax(x)[0]
torch.amax(x, (0, 2))
torch.std(x, 1, correction=0)
torch.var_mean(x, (0, 1), correction=1)[0]
torch.linalg.norm(x)
torch.linalg.norm(m)
torch.linalg.norm(m, 1)
torch.linalg.norm(m, float('inf'))
torch.linalg.norm(x, dim=1)
torch.linalg.vector_norm(x, 3)
torch.linalg.vector_norm(x, 3, dim=1)
torch.linalg.vector_norm(x, 0.5, dim=(0, 2), keepdim=True)
torch.linalg.vector_norm(x, 0)
torch.linalg.vector_norm(x, -2, dim=1)
torch.linalg.matrix_norm(x)
torch.linalg.matrix_norm(x, 1)
torch.linalg.matrix_norm(x, -float('inf'))
torch.norm(x, 3, 1)
torch.norm(x)
torch.norm(x, 'fro', (0, 1))
torch.renorm(x, 2, 0, 1.5)
torch.nansum(s) # values
torch.nanmean(s) # values
torch.nansum(x, 1)
torch.logsumexp(x, (0, 1))
torch.prod(x, 1)
torch.prod(x)
torch.all(b, 1)
torch.any(b)
torch.rot90(x, 1, (1, 2))
torch.rot90(x, 2, (0, 2))
torch.flip(x, (0, 2))
torch.fliplr(x)
torch.flipud(x)
torch.roll(x, (1, 2), (0, 2))
torch.kron(m, w)
torch.kron(v, t)
torch.outer(v, t)
torch.inner(x, y)
torch.dot(v, v)
torch.vdot(v, v)
torch.mv(w, v)
torch.addmv(t[:5], w, v, beta=0.5, alpha=2)
torch.addr(w.t()[:, :4] * 1, v, t[:4], beta=0.5, alpha=2)
torch.addbmm(x[0, :, :3], x, y.transpose(1, 2), beta=0.5, alpha=2)
torch.baddbmm(x[:, :, :3], x, y.transpose(1, 2), beta=0.5, alpha=2)
torch.addmm(w, w, m, beta=0.5)
torch.chain_matmul(w, m, m)
torch.linalg.multi_dot([w, m, m, v])
torch.linalg.matmul(w, m)
torch.linalg.vecdot(x, y)
torch.linalg.matrix_power(m / 4, 3)
torch.linalg.cross(x[:, :, :3], y[:, :, :3])
torch.cross(x[:, :, 0], y[:, :, 0], dim=1)
F.bilinear(x[0], y[0], torch.stack([m, m * 2, m.t()]), t[:3])
torch.cdist(x, y)
torch.cdist(x, y, p=1.0)
torch.cdist(x, y, p=3.0)
torch.cdist(x, y, p=float('inf'))
torch.cdist(x.expand(2, 3, 4).repeat(1, 10, 1), y.repeat(1, 10, 1))
F.pixel_shuffle(x.reshape(1, 4, 2, 3), 2)
F.pixel_unshuffle(x.reshape(1, 1, 4, 6), 2)
F.channel_shuffle(x.reshape(1, 4, 2, 3), 2)
torch.unflatten(x, 2, (2, 2))
torch.movedim(x, (0, 1), (2, 0))
torch.swapaxes(x, 0, 2)
torch.swapdims(x, 0, 2)
torch.block_diag(m, w, v)
torch.cartesian_prod(v, t)
torch.repeat_interleave(x, 2, 1)
torch.tile(x, (2, 1))
torch.broadcast_tensors(x, v)[1]
torch.broadcast_to(v, (3, 4))
torch.atleast_1d(x)
torch.atleast_2d(v)
torch.atleast_3d(v)
x.unfold(2, 2, 1)
F.unfold(x.reshape(1, 2, 3, 4), 2, padding=1)
F.fold(x.reshape(1, 8, 3), (2, 4), (2, 2))
F.embedding_bag(n, w)
F.embedding_bag(n, w, mode='sum')
F.embedding_bag(n, w, mode='sum', per_sample_weights=x[:, :, 0])
F.embedding_bag(n.reshape(6), w, torch.tensor([0, 2, 5]))
F.embedding_bag(n.reshape(6), w, torch.tensor([0, 2, 2]), mode='sum')
F.embedding_bag(n, w, mode='max')
F.affine_grid(x[:, :2, :3], (2, 3, 4, 5), align_corners=False)
F.affine_grid(x[:, :2, :3], (2, 3, 4, 5), align_corners=True)
F.grid_sample(x[:, :, None].repeat(1, 1, 3, 1), u[:, :, :, None].repeat(1, 1, 1, 2) * 1.2, align_corners=False)
F.grid_sample(x[:, :, None].repeat(1, 1, 3, 1), u[:, :, :, None].repeat(1, 1, 1, 2) * 1.2, padding_mode='border', align_corners=True)
F.grid_sample(x[:, :, None].repeat(1, 1, 3, 1), u[:, :, :, None].repeat(1, 1, 1, 2) * 1.2, mode='nearest', padding_mode='zeros', align_corners=False) # values
F.local_response_norm(x, 2)
F.local_response_norm(x.reshape(1, 3, 2, 4), 3, alpha=0.1, beta=0.5, k=2.0)
F.lp_pool1d(p, 2, 2)
F.lp_pool2d(p.reshape(1, 2, 3, 4), 3, 2)
F.max_pool2d(x, 2)
F.avg_pool2d(x, 2, ceil_mode=True)
F.adaptive_avg_pool2d(x, (2, 3))
F.adaptive_avg_pool3d(x[None], (2, 2, 3))
F.alpha_dropout(x, 0.5)
F.feature_alpha_dropout(x, 0.5)
F.dropout1d(x, 0.5, False)
F.dropout2d(x[None], 0.5, False)
F.dropout3d(x[None, None], 0.5, False)
F.scaled_dot_product_attention(x[:, None], y[:, None], z[:, None])
F.scaled_dot_product_attention(x[:, None], y[:, None], z[:, None], scale=0.3, is_causal=True)
F.scaled_dot_product_attention(x[:, None], y[:, None], z[:, None], attn_mask=b[:, None, :, :3])
F.scaled_dot_product_attention(x[:, None], y[:, None], z[:, None], attn_mask=p[:, None, :, :3])
F.scaled_dot_product_attention(x[None], y[None, :1], z[None, :1], enable_gqa=True)
F.multi_head_attention_forward(x, y, y, 4, 2, m.repeat(3, 1), v.repeat(3), None, None, False, 0.0, m, v, training=False)[0]
F.group_norm(x, 3, p[0, :, 0], y[0, :, 0])
F.instance_norm(x)
F.layer_norm(x, (4,))
F.rms_norm(x, (4,))
F.batch_norm(x, None, None, training=True)
F.interpolate(x, scale_factor=2)
F.interpolate(x[None], size=(5, 6), mode='bilinear')
F.upsample(x[None], scale_factor=2, mode='nearest')
F.pad(x, (1, 2), value=3.0)
F.pad(x, (1, 2), mode='reflect')
F.conv1d(x, y[:, :, :2])
F.conv_transpose1d(x, y.transpose(0, 1)[:, :, :2])
F.linear(x, w, t[:5])
torch.scalar_tensor(2.5) * x
torch.full_like(x, 3) + x
x.new_full((2, 1, 4), 2.0) + x
x.new_zeros(4) + x
x.new_empty(4).fill_(2) + x
torch.empty_like(x).copy_(y) + x
torch.zeros_like(x).add_(y)
torch.ones_like(x).mul_(y)
torch.ops.aten.alias(x) + 1
torch.ops.aten.clone(x, memory_format=torch.contiguous_format)
torch.ops.aten._to_copy(x, dtype=torch.float64)
torch.ops.aten.split_with_sizes_copy(x, [1, 3], 2)[1]
torch.ops.aten._softmax(x, 1, False)
torch.ops.aten._log_softmax(x, 1, False)
torch.ops.aten.convolution(x, y[:, :, :2], None, [1], [0], [1], False, [0], 1)
torch.ops.aten._adaptive_avg_pool2d(x, [2, 2])
torch.ops.aten._adaptive_avg_pool3d(x[None], [2, 2, 2])
torch.ops.aten.native_group_norm(x, p[0, 0, :3] * 1, y[0, 0, :3] * 1, 2, 3, 4, 3, 1e-5)[0]
torch.ops.aten._native_batch_norm_legit.no_stats(x, p[0, :, 0], y[0, :, 0], True, 0.1, 1e-5)[0]
torch.ops.aten._native_batch_norm_legit_no_training(x, p[0, :, 0], y[0, :, 0], y[1, :, 0].detach(), p[1, :, 0].detach(), 0.1, 1e-5)[0]
torch.ops.aten._weight_norm(w, p.reshape(24, 1)[:5], 0)
torch.ops.aten._weight_norm_interface(w, p.reshape(24, 1)[:5], 0)[0]
torch.view_as_real(torch.view_as_complex(x.reshape(2, 3, 2, 2)) * torch.polar(p[..., :2], y[..., :2]))
torch.view_as_real(torch.complex(x, y) * torch.complex(z, p))
torch.view_as_real(torch.complex(x, y) + torch.complex(z, p) - 2 * torch.complex(p, x))
torch.view_as_real(torch.complex(x, y) / torch.complex(z, p))
torch.view_as_real(torch.complex(x, y).conj().resolve_conj())
torch.complex(x, y).abs()
torch.complex(x, y).real * torch.complex(x, y).imag
torch.view_as_real(torch.complex(x, y).transpose(-1, -2)[..., :2].flatten(1)[:, None].expand(2, 5, 8))
torch.view_as_real(torch.exp(torch.complex(x, y)))
torch.view_as_real(torch.cat([torch.complex(x, y), torch.complex(y, x)], -1))
torch.ops.aten.native_batch_norm(x, p[0, :, 0], y[0, :, 0], None, None, True, 0.1, 1e-5)[0]
torch.ops.aten.expand_copy(v, [3, 4])
torch.ops.aten.permute_copy(x, [2, 0, 1])
torch.ops.aten.select_copy(x, 1, 1)
torch.ops.aten.slice_copy(x, 2, 1, 3)
torch.ops.aten.squeeze_copy(x[:1])
torch.ops.aten.unbind_copy(x, 1)[0]
torch.ops.aten.view_copy(x, [6, 4])
torch.isin(n, torch.tensor([0, 2]))
torch.isin(i, n, invert=True)
torch.bucketize(i, torch.tensor([-3, 0, 5]))
torch.bucketize(i, torch.tensor([-3, 0, 5]), right=True)
torch.bucketize(s, torch.tensor([-2.5, 0.0, 1.5]))
torch.searchsorted(torch.tensor([-3, 0, 5]), i, out_int32=True)
torch.searchsorted(torch.tensor([-3, 0, 5]), i, side='right')
torch.conj_physical(x)
torch.dist(x, y, 3)
torch.cumulative_trapezoid(x, dim=1)
torch.special.multigammaln(o, 2)
torch.row_stack([x, y])
torch.native_channel_shuffle(x.reshape(1, 4, 2, 3), 2) # values
F.lp_pool3d(p[None], 2, 2)
torch.linspace(0, 1, 4) + x
torch.eye(4) @ m
torch.unravel_index(n, (2, 3))[0]
F.triplet_margin_with_distance_loss(x[0], y[0], z[0], distance_function=torch.nn.PairwiseDistance())
torch.cumsum(x, 1)
torch.clone(x)
torch.ravel(x)
torch.squeeze(x[:1], 0)
torch.narrow(x, 2, 1, 2)
torch.select(x, 1, 1)
torch.index_select(x, 1, n[0])
torch.gather(x, 1, n[:, None, :].expand(2, 2, 3))
torch.masked_fill(x, b, 2.0)
torch.where(b, x, y)
torch.argmax(x, 1)
torch.argmin(x)
torch.std_mean(x, 1)[1]
torch.trapezoid(x, dim=1)
torch.trapezoid(x, y, dim=1)
torch.gradient(x, dim=2)[0]
torch.std(x)
torch.mean(x, (0, 1), keepdim=True)
x.T
x.mT
x.mH
x.H if x.dim() == 2 else x.adjoint()
x.sum_to_size(1, 3, 1)
x.view_as(y)
x.type_as(i) # values
x.index_select(2, n[0])
x.true_divide(p)
x.softmax(-1)
torch.view_as_real(torch.fft.fft(x))
torch.view_as_real(torch.fft.ifft(torch.complex(x, y), dim=1))
torch.view_as_real(torch.fft.fft2(x, norm="ortho"))
torch.view_as_real(torch.fft.fftn(x, dim=(1, 2)))
torch.fft.fftn(x, dim=(1, 2), norm="forward").real
torch.view_as_real(torch.fft.rfft(x))
torch.view_as_real(torch.fft.rfft(x, n=7, dim=1))
torch.view_as_real(torch.fft.rfft2(x, norm="ortho"))
torch.view_as_real(torch.fft.ihfft(x).resolve_conj())
torch.fft.irfft(torch.complex(x, y))
torch.fft.irfft(torch.complex(x, y), n=5, dim=1)
torch.fft.irfft(torch.fft.rfft(x, dim=1), n=3, dim=1)
torch.fft.irfft2(torch.complex(x, y), norm="ortho")
torch.fft.hfft(torch.complex(x, y))
F.conv_tbc(x, y.transpose(1, 2), t[:3])
torch.searchsorted(x.sort()[0], y) # values
torch.cumprod(x, 1)
torch.cumprod(j, 2)
torch.cumprod(x * (x > -0.5), 2)
torch.cummax(x, 1)[0]
torch.cummax(x, 1)[1]
torch.cummax(i, 2)[1]
torch.cummax(s, 0)[0] # values
torch.cummax(s, 0)[1]
torch.cummin(x, 2)[0]
torch.cummin(s, 0)[1]
torch.logcumsumexp(x * 9, 1)
torch.logcumsumexp(s[1:3], 0) # values
torch.vander(v) # values
torch.cumprod(v[0], 0)
torch.i0(x * 9)
torch.special.i0e(x * 9)
torch.special.i1(x * 9)
torch.special.i1e(x * 9)
torch.polygamma(0, p)
torch.polygamma(1, x * 3)
torch.polygamma(2, p)
torch.polygamma(3, x * 3)
torch.special.polygamma(6, p * 9)
torch.gcd(i, j)
torch.gcd(i * 1000000007, j * 1000000007)
torch.lcm(i, j)
torch.bitwise_and(i, j)
torch.bitwise_and(i, -j)
torch.bitwise_or(i, j)
torch.bitwise_xor(i * 1000000007, j)
torch.linalg.inv(m)
torch.inverse(torch.stack([m, m.t()]))
torch.linalg.solve(m, v)
torch.linalg.solve(torch.stack([m.t(), m])[:, None], y.transpose(1, 2)[:, None])
torch.linalg.solve(m, w, left=False)
torch.linalg.solve(m[[2, 0, 3, 1]], v)
torch.linalg.solve_triangular(m, w.t(), upper=True)
torch.linalg.solve_triangular(m / 5, w, upper=False, left=False, unitriangular=True)
torch.linalg.det(m)
torch.det(m[[2, 0, 3, 1]])
torch.linalg.det(m * 0) # values
torch.linalg.slogdet(x[:, :, :3])[1]
torch.linalg.slogdet(x[:, :, :3])[0]
torch.logdet(m @ m.t())
torch.linalg.cholesky(x @ x.mT + torch.eye(3))
torch.linalg.cholesky(m @ m.t(), upper=True)
F.avg_pool2d(x, 4096, ceil_mode=True)
F.avg_pool2d(x, (4096, 5), (4096, 2), (2, 1), ceil_mode=True)
F.avg_pool2d(x, 4096, 5000, 2, ceil_mode=True, count_include_pad=False)
F.max_pool2d(x, (4096, 3), (4096, 4), (0, 1), ceil_mode=True)
F.max_pool2d(x, 4096, ceil_mode=True, return_indices=True)[1].to(x.dtype)
"""


# Refused calls, and what the error says.
REFUSED = """
torch.nextafter(x, y) # 'aten::nextafter(
torch.special.ndtri(q) # 'aten::special_ndtri(
torch.polygamma(21, p) # of order 21, expected at most 20
torch.linalg.inv(torch.eye(65) * v[0]) # of a matrix of size 65, expected 1 to 64
torch.linalg.eigh(m @ m.t())[0] # as a part of 'aten::linalg_eigh'
torch.bincount(n.reshape(6)) # the shape of the result of 'aten::bincount(
torch.unique(n) # depends on the data
F.multilabel_margin_loss(x[0], torch.cat([n[:1], n[:1] * 0 - 1], 1)[:, :4].expand(3, 4)) # as a part of 'aten::multilabel_margin_loss'
torch.complex(x, y).angle() # 'aten::angle(
torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127) # as a part of 'aten::fake_quantize_per_tensor_affine'
torch.complex(x, y) # output 'output' has element type ComplexFloat
F.pdist(x[0]) # as a part of 'aten::pdist'
torch.rand_like(x) + x # its result is random
F.max_unpool1d(x, x.long() * 0, 2) # 'aten::max_unpool2d(
F.rrelu(x, training=True) # in training mode
F.grid_sample(x[None], x[None, :, :, :2], mode='bicubic', align_corners=False) # with mode 'bicubic'
"""


def zeroed(value):
    """Zeros with the gradient of the value."""
    return value - value.detach()


class Case:
    def __init__(self, line, inputs):
        self.call, _, mark = line.partition(" # ")
        self.names = [name for name in inputs if re.search(rf"\b{name}\b", self.call)]
        self.inputs = [inputs[name].clone() for name in self.names]
        self.function = eval(f"lambda {', '.join(self.names)}: {self.call}", {"torch": torch, "F": F, "zeroed": zeroed, "inf": float("inf")})
        with torch.no_grad():
            self.expected = self.function(*(value.clone() for value in self.inputs))
        self.has_gradient = mark != "values" and self.expected.is_floating_point() and any(v.is_floating_point() for v in self.inputs)

    def weigh(self):
        """Random weights of the results: integers, so that they get no gradient."""
        self.weights = torch.randint(-3, 4, self.expected.shape)

    def get_gradients(self):
        values = [value.clone().requires_grad_(value.is_floating_point()) for value in self.inputs]
        leaves = [value for value in values if value.requires_grad]
        result = self.function(*values)
        if not result.requires_grad:
            return [torch.zeros_like(value) for value in leaves]
        return torch.autograd.grad((result.double() * self.weights).sum(), leaves, allow_unused=True, materialize_grads=True)


def read_cases(text, make_inputs):
    torch.manual_seed(0)
    return [Case(line, make_inputs()) for line in text.strip().splitlines()]


def make_module(cases, body, results):
    """A module whose forward has the inputs of all cases, c<i>_<name>, and their weights, w<i>."""
    names = [f"c{i}_{name}" for i, case in enumerate(cases) for name in case.names]
    names += [f"w{i}" for i in range(len(cases)) if results == "total"]
    lines = [f"def forward(self, {', '.join(names)}):", *(f"    {line}" for line in body), f"    return {results}"]
    scope = {"torch": torch, "functions": [case.function for case in cases]}
    exec("\n".join(lines), scope)
    return type("Functions", (torch.nn.Module,), {"forward": scope["forward"]})()


def make_call(i, case):
    return f"functions[{i}]({', '.join(f'c{i}_{name}' for name in case.names)})"


def run(*command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {process.stderr[:6000]}")


class Program:
    """An exported and imported module, and the files of its inputs."""

    def __init__(self, folder, cases, module):
        self.folder, self.cases, self.outputs = folder, cases, {}
        folder.mkdir(parents=True)
        self.inputs = {f"c{i}_{name}": value for i, case in enumerate(cases) for name, value in zip(case.names, case.inputs)}
        if "total" in module.forward.__code__.co_varnames:
            self.inputs |= {f"w{i}": case.weights for i, case in enumerate(cases)}
        torch.export.save(torch.export.export(module, tuple(self.inputs.values())), folder / "model.pt2")
        run("tp-import", folder / "model.pt2", "-o", folder / "model.mlir", "--weights", folder / "model.safetensors")
        for name, value in self.inputs.items():
            np.save(folder / f"{name}.npy", value.numpy())

    def compute(self, outputs, *passes):
        """The outputs of the program after the passes."""
        folder = self.folder
        run("tp-opt", folder / "model.mlir", *passes, "-o", folder / "final.mlir")
        run("tp-compile", folder / "final.mlir", "-o", folder / "model.tpx")
        flags = [flag for name in self.inputs for flag in ("--input", f"{name}={folder / name}.npy")]
        flags += [flag for name in outputs for flag in ("--output", f"{name}={folder / name}.npy")]
        run("tp-run", folder / "model.tpx", "--weights", folder / "model.safetensors", *flags)
        return {name: torch.from_numpy(np.load(folder / f"{name}.npy")) for name in outputs}

    def split(self):
        """The pass that splits each input over 2 ranks, along its first dimension."""
        layouts = ", ".join("Shard(0)" if value.dim() else "Replicate" for value in self.inputs.values())
        plan = f"mesh: {{tp: 2}}\nplan: {{style: PrepareModuleInput, input_layouts: [{layouts}], desired_input_layouts: [{layouts}]}}\n"
        (self.folder / "plan.yaml").write_text(plan)
        return f"--tp-parallelize=plan={self.folder / 'plan.yaml'}"


def compare(name, actual, expected, tolerance, scale=1.0):
    try:
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance / 10 * scale, equal_nan=True)
        return True
    except AssertionError as error:
        print(f"FAIL {name}: {' '.join(str(error).split())}")
        return False


def check_values(folder, cases):
    """On 1 rank, and on 2 the first cases."""
    results = "{" + ", ".join(f"'r{i}': {make_call(i, case)}" for i, case in enumerate(cases)) + "}"
    wrong = set()
    for ranks, some in (1, cases), (2, cases[:RANKED]):
        results = "{" + ", ".join(f"'r{i}': {make_call(i, case)}" for i, case in enumerate(some)) + "}"
        program = Program(folder / f"values{ranks}", some, make_module(some, [], results))
        outputs = program.compute([f"r{i}" for i in range(len(some))], *([program.split()] if ranks > 1 else []))
        for i, case in enumerate(some):
            if not compare(f"{case.call} on {ranks} ranks", outputs[f"r{i}"], case.expected, 1e-4):
                wrong.add(case.call)
    return wrong


def check_gradients(folder, cases):
    for case in cases:
        case.weigh()
    body = ["total = 0"] + [f"total = total + ({make_call(i, case)}.double() * w{i}).sum()" for i, case in enumerate(cases)]
    program = Program(folder / "gradients", cases, make_module(cases, body, "total"))
    places = [(i, name) for i, case in enumerate(cases) for name, v in zip(case.names, case.inputs) if v.is_floating_point()]
    outputs = program.compute([f"grad.c{i}_{name}" for i, name in places], "--tp-grad=inputs=true")
    wrong = set()
    for i, case in enumerate(cases):
        floats = [name for name, value in zip(case.names, case.inputs) if value.is_floating_point()]
        for name, expected in zip(floats, case.get_gradients()):
            scale = max(1.0, expected.nan_to_num(0, 0, 0).abs().max().item()) if expected.numel() else 1.0
            if not compare(f"gradient of {case.call} by {name}", outputs[f"grad.c{i}_{name}"], expected, 2e-4, scale):
                wrong.add(case.call)
    return wrong


def fails_with(text, call, run):
    """Whether `run` of a call fails with `text` in its message. Prints what it does instead."""
    try:
        run()
    except RuntimeError as error:
        if text in str(error):
            return True
        print(f"FAIL {call}: must say '{text}': {error}")
    else:
        print(f"FAIL {call}: must fail and say '{text}'")
    return False


def check_refused(folder, refused, make_inputs):
    """The number of calls that aren't refused as they should be."""
    wrong = 0
    for i, line in enumerate(refused):
        line, _, text = line.partition(" # ")
        case = Case(line, make_inputs())
        module = make_module([case], [], make_call(0, case))
        wrong += not fails_with(text, line, lambda: Program(folder / f"refused{i}", [case], module))
    return wrong


def check(functions, refused, make_inputs, description):
    """Checks the calls as the options on the command line say; the exit code."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--filter", default="", help="only calls that match this regular expression")
    parser.add_argument("--each", action="store_true", help="one program for each call, which shows all errors")
    parser.add_argument("--keep", type=pathlib.Path, help="keep programs, inputs and outputs here")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = take(case for case in read_cases(functions, make_inputs) if re.search(options.filter, case.call))
    size = 1 if options.each else len(cases)
    wrong = set()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch)
        for start in range(0, len(cases), size):
            batch = cases[start : start + size]
            smooth = [case for case in batch if case.has_gradient]
            try:
                wrong |= check_values(folder / str(start), batch)
                if smooth:
                    wrong |= check_gradients(folder / str(start), smooth)
            except (RuntimeError, torch._dynamo.exc.UserError) as error:
                wrong |= {case.call for case in batch}
                print(f"FAIL {batch[0].call}{' …' if len(batch) > 1 else ''}: {error}")
        refused = refused.strip().splitlines()
        unrefused = 0 if options.filter else check_refused(folder, refused, make_inputs)
    gradients = sum(case.has_gradient for case in cases)
    print(f"{len(cases) - len(wrong)} of {len(cases)} functions equal PyTorch, {gradients} with gradients")
    if not options.filter:
        print(f"{len(refused) - unrefused} of {len(refused)} functions are refused")
    return 1 if wrong or unrefused else 0


if __name__ == "__main__":
    sys.exit(check(FUNCTIONS, REFUSED, make_inputs, __doc__.split("\n")[0]))
