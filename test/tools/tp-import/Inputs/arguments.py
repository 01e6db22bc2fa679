"""Every argument of every op that can be imported has a decision, and those that are read are honored:
arguments.py <tp-import> <dir>

PyTorch's schemas are enumerated beside `tp-import --list-ops`. CALLS give each argument that is read and has a default
another value; their import is evaluated and compared with PyTorch. REFUSED are errors that name what is wrong."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F

import nneval

a = torch.ops.aten
inf = float("inf")

# x, y and z are 2x3x4, p is positive, b boolean, n indices below 3 of shape 2x3, s infinities and NaN.
CALLS = """
a.add(x, y, alpha=2); a.sub(x, y, alpha=3); a.subtract(x, y, alpha=0.5); a.rsub(x, y, alpha=4); a.add(n, 2, alpha=3)
a.addcmul(x, y, p, value=0.5); a.addcdiv(x, y, p, value=-2)
a.addmm(x[0] @ x[0].T, x[0], y[0].T, beta=0.5, alpha=3); a.addmm(x[0, 0, :3] / 0, x[0], y[0].T, beta=0)
a.baddbmm(x[:, :, :3], x, y.transpose(1, 2), beta=2, alpha=0.25)
a.all(b, dim=[0, 2], keepdim=True); a.all(b, dim=1, keepdim=True); a.any(b, dim=[0, 2], keepdim=True); a.any(b, dim=1, keepdim=True)
a.all(n, dim=[1]); a.any(n, dim=None, keepdim=True); a.all(n, dim=None)
a.amax(x, dim=[0, 2], keepdim=True); a.amin(x, dim=[-1], keepdim=True); a.amax(x, dim=[])
a.argmax(x, dim=1, keepdim=True); a.argmin(x, dim=-1, keepdim=True); a.argmax(x, None, keepdim=True)
a.cat([x, y], dim=2); a.concat([x, y], dim=1); a.concatenate([x, y], dim=-1); a.stack([x, y], dim=1)
a.chunk(x, 2, dim=2)[1]; a.split(x, 3, dim=2)[1]; a.split(x, [1, 2], dim=1)[1]; a.split_with_sizes(x, [1, 3], dim=2)[1]
a.tensor_split(x, 3, dim=2)[0]; a.tensor_split(x, [1, 3], dim=2)[1]; a.unbind(x, dim=1)[2]
a.clamp(x, min=-0.5, max=0.5); a.clamp(x, min=0.25, max=-0.25); a.clamp(x, max=0.1); a.clip(x, min=-0.1); a.clip(x, max=p)
a.clamp_min(x, 0.2); a.clamp_max(x, y); a.clamp(x, min=y, max=p)
a.clone(x, memory_format=torch.contiguous_format); a.contiguous(x[None], memory_format=torch.channels_last)
a.constant_pad_nd(x, [1, 2, 0, 1], value=2.5); a.pad(x, [1, -1], mode="constant", value=-3.0)
a.pad(x, [2, 1], mode="reflect"); a.pad(x[None], [3, 2, 0, 1], mode="replicate"); a.pad(x, [4, 3], mode="circular"); a.pad(x[None], [1, -1, -1, 2], mode="replicate"); a.pad(x, [-1, 2], mode="reflect")
a.cross_entropy_loss(x[0], n[0], weight=p[0, 0], reduction=2, ignore_index=1, label_smoothing=0.1)
a.cross_entropy_loss(x[0], n[0], weight=None, reduction=0, ignore_index=2, label_smoothing=0.3)
a.nll_loss(x[0], n[0], weight=p[0, 0], reduction=2, ignore_index=1); a.nll_loss_nd(x[0], n[0], weight=p[0, 0], reduction=0, ignore_index=0)
a.nll_loss2d(x[:, :, None], n[:, :1, None].expand(2, 1, 4), weight=p[0, 0, :3], reduction=2, ignore_index=1)
a.mse_loss(x, y, reduction=2); a.mse_loss(x, y, reduction=0)
a.conv1d(x, y[:, :, :2], p[0, 0, :2], stride=[2], padding=[1], dilation=[2]); a.conv1d(x, y[:, :1, :2].repeat(3, 1, 1)[:3], groups=3)
a.conv1d(x, y[:, :, :2], padding="same"); a.conv2d(x[None], y[:, :2, :3, None], padding="same", dilation=[2, 1])
a.conv2d(x[None], y[:, :2, :3, None], p[0, 0, :2], stride=[1, 2], padding=[1, 2], dilation=[2, 1]); a.conv2d(x[None], y[:, :1, :3, None], groups=2)
a.conv3d(x[None, None], y[:, None, None, :2, :3], p[0, 0, :2], stride=[2, 2, 2], padding=[0, 1, 1], dilation=[1, 2, 1]); a.conv3d(x[None, :, None], y[:, :1, None, None, :2], groups=2)
a.conv3d(x[None, :, None], y[:, :2, None, None, :2], padding="same")
a.conv_transpose1d(x, y[0, :, None, :2], p[0, 0, :1], stride=[2], padding=[1], output_padding=[1], dilation=[2]); a.conv_transpose1d(x, y[0, :, None, :2], groups=3)
a.conv_transpose2d(x[None], y[:, :, :2, None], p[0, 0, :3], stride=[1, 2], padding=[1, 0], output_padding=[0, 1], dilation=[2, 1]); a.conv_transpose2d(x[None], y[:, :, :2, None], groups=2)
a.conv_transpose3d(x[None, None], y[:1, :2, None, None, :2], p[0, 0, :2], stride=[2, 2, 2], padding=[0, 1, 0], output_padding=[1, 1, 1], dilation=[2, 2, 2]); a.conv_transpose3d(x[None, :, None], y[:, :, None, None, :2], groups=2)
a.convolution(x, y[:, :, :2], None, [1], [1], [2], False, [0], 1); a.convolution(x, y[0, :, None, :2], p[0, 0, :3], [2], [1], [1], True, [1], 3)
a._convolution(x[None], y[:, :2, :3, None], None, [2], [1], [1], False, [0], 1, False, True, False, True)
a.im2col(x, [2, 3], [1, 1], [1, 0], [2, 1]); a.im2col(x[None], [2, 2], [2, 1], [0, 1], [1, 2]); a.col2im(x.reshape(1, 4, 6), [2, 3], [2, 2], [1, 1], [1, 0], [1, 1])
a.max_pool1d(x, 2, stride=1, padding=1, dilation=2, ceil_mode=True); a.max_pool2d(x, [2, 3], stride=[1, 2], padding=[1, 0], dilation=[2, 1], ceil_mode=True)
a.max_pool3d(x[None], 2, stride=1, padding=1, dilation=[1, 2, 1], ceil_mode=True)
a.max_pool1d_with_indices(x, 2, stride=1, padding=1, dilation=2, ceil_mode=True)[1]; a.max_pool2d_with_indices(x, 2, stride=1, padding=1, dilation=2, ceil_mode=True)[1]
a.max_pool3d_with_indices(x[None], 2, stride=1, padding=1, dilation=[1, 2, 1], ceil_mode=True)[1]
a.avg_pool1d(x, 2, stride=1, padding=1, ceil_mode=True, count_include_pad=False); a.avg_pool2d(x, 2, stride=[1, 2], padding=1, ceil_mode=True, count_include_pad=False, divisor_override=3)
a.avg_pool3d(x[None], 2, stride=1, padding=1, ceil_mode=True, count_include_pad=False, divisor_override=3); a.avg_pool3d(x[None], 2, 2, 1, True, False)
a.upsample_nearest1d(x, [7], scales=1.9); a.upsample_nearest2d(x[None], [5, 9], scales_h=1.7, scales_w=2.3); a.upsample_nearest3d(x[None, None], [3, 5, 9], scales_d=1.6, scales_h=1.7, scales_w=2.3)
a._upsample_nearest_exact1d(x, [7], scales=1.9); a._upsample_nearest_exact2d(x[None], [5, 9], scales_h=1.7, scales_w=2.3); a._upsample_nearest_exact3d(x[None, None], [3, 5, 9], scales_d=1.6, scales_h=1.7, scales_w=2.3)
a.upsample_linear1d(x, [7], False, scales=1.9); a.upsample_linear1d(x, [7], True); a.upsample_bilinear2d(x[None], [5, 9], False, scales_h=1.7, scales_w=2.3); a.upsample_bilinear2d(x[None], [5, 2], True)
a.upsample_trilinear3d(x[None, None], [3, 5, 9], False, scales_d=1.6, scales_h=1.7, scales_w=2.3); a.upsample_bicubic2d(x[None], [5, 9], False, scales_h=1.7, scales_w=2.3); a.upsample_bicubic2d(x[None], [5, 2], True)
a.celu(x, alpha=0.7); a.elu(x, alpha=0.7, scale=1.5, input_scale=0.5); a.hardshrink(x, lambd=0.2); a.softshrink(x, lambd=0.2); a.threshold(x, 0.1, 20)
a.batch_norm(x, p[0, :, 0], y[0, :, 0], None, None, True, 0.7, 0.5, False); a.instance_norm(x, p[0, :, 0], y[0, :, 0], None, None, True, 0.7, 0.5, False)
a.instance_norm(x, p[0, :, 0], y[0, :, 0], y[1, :, 0], p[1, :, 0], False, 0.7, 0.5, False)
a.cumsum(x, 1, dtype=torch.float64); a.cumsum(n, 0, dtype=torch.float32); a.cumprod(x, 1, dtype=torch.float64); a.cumprod(n, 0)
a.ctc_loss(x.log_softmax(2), n.T[:, :1], [2, 2, 0], [1, 1, 1], blank=3, reduction=0, zero_infinity=True); a.ctc_loss(x.log_softmax(2), n[0] + 1, [2, 2, 1], [1, 1, 1], reduction=2)
a.linalg_cholesky_ex(x @ x.mT + torch.eye(3), upper=True, check_errors=True)[0]; a.linalg_inv_ex(x[:, :, :3], check_errors=True)[0]
a._linalg_solve_ex(x[:, :, :3], y.mT, left=False, check_errors=True)[0]
a.linalg_solve_triangular(x[:, :, :3], y, upper=False, unitriangular=True); a.linalg_solve_triangular(x[:, :, :3], y.mT, upper=True, left=False)
a.div(x, p, rounding_mode="floor"); a.div(x, p, rounding_mode="trunc"); a.divide(n, 2, rounding_mode="floor"); a.divide(-n, 2, rounding_mode="trunc")
a.einsum("ij,jk->ik", [x[0], y[0].T], path=[0, 1])
a.embedding(x[0], n, padding_idx=1, sparse=True)
a.expand(x[:, :1], [2, 3, 4]); a.flatten(x, 1, -1); a.flatten(x, 0, 1)
a.gather(x, 1, n[:, :, None], sparse_grad=True); a.gelu(x, approximate="tanh"); a.glu(x, dim=0); a.glu(x, dim=2)
a.group_norm(x, 3, p[0, :, 0], y[0, :, 0], eps=0.5, cudnn_enabled=False)
a.hardtanh(x, -0.5, 0.25); a.hardtanh(x, min_val=0.1); a.leaky_relu(x, 0.3); a.softplus(x, beta=2, threshold=1)
a.layer_norm(x, [3, 4], p[0], y[0], eps=0.5, cudnn_enable=False); a.rms_norm(x, [4], p[0, 0], eps=0.5); a.rms_norm(x.double(), [3, 4])
a.batch_norm(x, p[0, :, 0], y[0, :, 0], y[1, :, 0], p[1, :, 0], False, 0.7, 0.5, False)
a.linalg_vector_norm(x, ord=1, dim=[0, 2], keepdim=True, dtype=torch.float64); a.linalg_vector_norm(x, ord=inf, dim=[1]); a.linalg_vector_norm(x, ord=-inf)
a.norm(x, 1, [1], True); a.norm(x, None, [1, 2], True, dtype=torch.float64); a.norm(x, inf); a.norm(x, p=1)
a.linear(x, y[0], p[0, :, 0]); a.logsumexp(x, [0, 1], keepdim=True); a.logsumexp(s, [1]); a.logsumexp(s, [0, 1])
a.max(x, 1, keepdim=True)[1]; a.min(x, 2, keepdim=True)[0]
a.mean(x, [1], keepdim=True, dtype=torch.float64); a.mean(n, dtype=torch.float32); a.mean(x, [])
a.sum(x, [0, 2], keepdim=True, dtype=torch.float64); a.sum(b, dtype=torch.float32); a.sum(x, []); a.sum(x, None, keepdim=True)
a.prod(x, 1, keepdim=True, dtype=torch.float64); a.prod(x, dtype=torch.float64)
a.nan_to_num(s, nan=1.5, posinf=2.5, neginf=-3.5); a.nan_to_num(s)
a.repeat_interleave(x, 2, dim=1, output_size=6); a.repeat_interleave(x, 3); a.roll(x, [1, -2], dims=[0, 2]); a.roll(x, [5])
a.scaled_dot_product_attention(q, k, v, attn_mask=m, scale=0.3); a.scaled_dot_product_attention(q, k, v, is_causal=True)
a.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True, attn_mask=f); a.scaled_dot_product_attention(q, k, k, attn_mask=m, is_causal=True); a.scaled_dot_product_attention(q, k, k, attn_mask=f, is_causal=True)
a.slice(x, 2, 1, 4, 2); x[:, -2:, :3]; a.narrow(x, 2, -3, 2); a.select(x, -1, -2)
a.softmax(x, 1, dtype=torch.float64); a.log_softmax(x, 0, dtype=torch.float64); a._safe_softmax(s, 1, dtype=torch.float64); a.softmax(s, 1)
a.std(x, unbiased=False); a.var(x, False); a.std_mean(x, False)[0]; a.var_mean(x, False)[1]
a.std(x, [1], False, True); a.var(x, [0, 2], True, True); a.std_mean(x, [1], False, True)[0]; a.var_mean(x, [1], False, True)[0]
a.std(x, [1], correction=0, keepdim=True); a.var(x, [0, 2], correction=2, keepdim=True); a.std_mean(x, [1], correction=0.5, keepdim=True)[0]
a.var_mean(x, [1], correction=3, keepdim=True)[0]; a.std(x, None, correction=0)
a.to(x, torch.float64, non_blocking=True, copy=True, memory_format=torch.contiguous_format); a.to(x, dtype=torch.float16, layout=torch.strided, device=torch.device("cpu"))
a._to_copy(x, dtype=torch.float64, layout=torch.strided, device=torch.device("cpu"), non_blocking=True)
a.slice_scatter(x, y[:, :, :2], 2, 1, 4, 2); a.select_scatter(x, y[:, 0], 1, -1); a.as_strided(x + 0, [2, 3], [12, 1], storage_offset=5)
a.diagonal(x, offset=1, dim1=2, dim2=0); a.diagonal_scatter(x, y[0, :1, :2].expand(3, 2), offset=-2, dim1=2, dim2=0)
a.as_strided_scatter(x, y[0, :2, :3], [2, 3], [12, 1], storage_offset=5)
a.fill_diagonal_(x.reshape(6, 4)[:, :2] + 0, 2.5, wrap=True); a.index_put(x, [b], y[0, 0, 0], accumulate=True); a.masked_scatter(x, b, y[0, 0, 0].expand(2, 3, 4))
a.tril(x, diagonal=1); a.triu(x, diagonal=-1); a.tril(b[0], diagonal=-1)
F.dropout(x + 1, 0.5, False, inplace=True)
a.native_layer_norm(x, [3, 4], p[0], y[0], 0.5)[0]; a.native_group_norm(x, p[0, 0, :3], y[0, 0, :3], 2, 3, 4, 3, 0.5)[0]; a._fused_rms_norm(x, [4], p[0, 0], 0.5)[0]
a._native_batch_norm_legit_no_training(x, p[0, :, 0], y[0, :, 0], y[1, :, 0], p[1, :, 0], 0.7, 0.5)[0]
a.nll_loss_forward(x[0], n[0], p[0, 0], 2, 1)[0]; a.log1p(p); a.native_dropout(x, 0.5, False)[0]
a._scaled_dot_product_flash_attention_for_cpu(q, k, k, attn_mask=f, scale=0.3)[0]; a._scaled_dot_product_flash_attention_for_cpu(q, k, k, is_causal=True)[0]
a.topk(x, 2, dim=1, largest=False)[0]; a.topk(x, 3)[1]; a.sort(x, dim=1, descending=True)[1]; a.sort(x, stable=True, dim=0, descending=True)[0]
a.argsort(x, dim=0, descending=True); a.argsort(x, stable=True, dim=1, descending=True); a.msort(n); a.kthvalue(x, 2, dim=1, keepdim=True)[1]
a.median(x, 1, keepdim=True)[1]; a.median(s, 1)[0]; a.median(s, 1)[1]; a.median(s); a.histc(x, bins=5, min=-1, max=1); a.one_hot(n, num_classes=4)
a.bucketize(x, p[0, 0].sort()[0], out_int32=True, right=True); a.bucketize(0.25, p[0, 0].sort()[0]); a.bucketize(s, p[0, 0].sort()[0])
a.searchsorted(p.sort()[0], x, out_int32=True, right=True); a.searchsorted(p.sort()[0], x, side="right"); a.searchsorted(p[0, 0].sort()[0], 0.75)
a.scatter(x, 2, n[:, :, None], 1.5); a.scatter(x, 1, n[:, :, None], y, reduce="add"); a.scatter(x, 1, n[:, :, None], 2, reduce="add")
a.scatter_reduce(x, 1, n[:, :, None], y, "amax", include_self=False); a.scatter_reduce(n, 1, n, n + 1, "mean", include_self=False); a.scatter_add(x, 1, n[:, :, None], y)
a.index_reduce(x, 1, n[0], y, "mean", include_self=False); a.index_reduce(x, 1, n[0], y, "amin", include_self=False); a.index_add(x, 1, n[0], y, alpha=2)
a.index_copy(x, 2, n[:1, 0], y[:, :, :1]); a.index_fill(x, 1, n[0], 2.5); a.index_fill(x, 1, n[0], p[0, 0, 0])
a.index_put(x, [None, n[0]], y, accumulate=True); a._index_put_impl_(x + 0, [None, n[0]], y, accumulate=True, unsafe=True)
a._unsafe_index_put(x, [None, n[0]], y, accumulate=True); a.index_put(x, [n[0] % 2, None, n[0]], y[0, :, :3], accumulate=True); a.index_put(x, [None, None, n[:1, :1]], y[:, :, None, :1]); a._unsafe_index(x, [None, n[0]]); a.take_along_dim(x, n[:, :, None], dim=1); a.take_along_dim(x, n)
a._grouped_mm(x[0].repeat(4, 2).bfloat16(), y.repeat(1, 3, 2)[:, :8].bfloat16(), offs=(n[0, :2] * 0 + 6).cumsum(0).int(), out_dtype=torch.bfloat16)
a._embedding_bag(x[0], n[0], torch.tensor([0, 2]), scale_grad_by_freq=True, sparse=True, per_sample_weights=p[0, 0, :3])[0]
a._embedding_bag(x[0], n[0], torch.tensor([0, 2, 3]), mode=1, include_last_offset=True)[0]
a._embedding_bag_forward_only(x[0], n[0], torch.tensor([0, 2]), scale_grad_by_freq=True, sparse=True, per_sample_weights=p[0, 0, :3])[0]
a._embedding_bag_forward_only(x[0], n[0], torch.tensor([0, 2, 3]), mode=1, include_last_offset=True)[0]
a._weight_norm_interface(x, p[:, :1, :1].contiguous(), dim=0)[0]; a._weight_norm_interface(x, p[:1, :1], dim=2)[1]; a.renorm(x, 1.5, -1, 0.5)
a.addbmm(x[0, :, :3], x, y.transpose(1, 2), beta=0.5, alpha=3); a.addmv(x[0, :, 0], x[0], y[0, 0], beta=0.5, alpha=3)
a.aminmax(x, dim=1, keepdim=True)[0]; a.aminmax(x)[1]; a.count_nonzero(n, [1]); a.count_nonzero(n, dim=1); a.nansum(s, [1], keepdim=True, dtype=torch.float64)
a.bilinear(x, y, x.expand(2, 3, 4)[:, :, :, None].expand(2, 3, 4, 4)[:, 0], p[0, 0, :2]); a.linalg_cross(x, y, dim=1)
a.binary_cross_entropy(x.sigmoid(), y.sigmoid(), weight=p, reduction=2); a.binary_cross_entropy(x.sigmoid(), b.float(), reduction=0)
a.huber_loss(x, y, reduction=2, delta=0.5); a.smooth_l1_loss(x, y, reduction=0, beta=0.5); a.soft_margin_loss(x, y.sign(), reduction=2)
a.multi_margin_loss(x[0], n[0], p=2, margin=0.5, weight=p[0, 0], reduction=2); a.logit(x.sigmoid(), eps=0.3); a.rrelu(x, lower=0.2, upper=0.5)
a.diag_embed(x, offset=-1, dim1=0, dim2=2); a.diagonal(x, offset=1, dim1=2, dim2=0); a.diagonal_copy(x, offset=-1, dim1=1, dim2=2)
a.split_with_sizes_copy(x, [1, 3], dim=2)[1]; a.unsafe_split_with_sizes(x, [1, 2], dim=1)[1]; a.unsafe_split(x, 3, dim=2)[1]; a.unsafe_chunk(x, 2, dim=2)[1]
a.bucketize(n, torch.tensor([0, 2]), out_int32=True, right=True); a.isin(n, n[0], assume_unique=True, invert=True)
a.searchsorted(torch.tensor([0, 2]), n, out_int32=True, right=True); a.searchsorted(torch.tensor([0, 2]), n, side="right")
a.round(x, decimals=1); a.linalg_vector_norm(x, ord=3, dim=[1]); a.linalg_vector_norm(x, ord=0); a.atleast_1d([x, y])[0]
a.cross_entropy_loss(x[0], p[0].softmax(1), label_smoothing=0.1); a.einsum("...j,jk", [x, y[0].T]); a.linear(x, y[0, 0])
a.dropout_(x + 0, 0.5, False); a.feature_dropout_(x + 0, 0.5, False); a.alpha_dropout_(x + 0, 0.5, False)
"""

# Read, and tested elsewhere; or refused where it isn't the default.
ELSEWHERE = {("scaled_dot_product_attention", "dropout_p"): "dropout.test",
             ("_scaled_dot_product_flash_attention_for_cpu", "dropout_p"): "PyTorch refuses it",
             ("rrelu", "training"): "refused",
             ("requires_grad", "requires_grad"): "detach.test",
             ("embedding", "scale_grad_by_freq"): "masked_attention.test"}
# What a trace makes of ops that are another one's alias, so that there is no call of them.
ALIASES = {"clip": "clamp", "concat": "cat", "concatenate": "cat", "subtract": "sub", "rsub": "sub",
           "conv1d": "_convolution", "conv2d": "_convolution", "conv3d": "_convolution", "conv_transpose1d": "_convolution",
           "conv_transpose2d": "_convolution", "conv_transpose3d": "_convolution", "convolution": "_convolution"}

REFUSED = {
    "a.add(x, y, out=torch.empty(2, 3, 4))": "writes its argument 'out'",
    # PyTorch itself refuses it, but for some of its backends.
    "F.embedding(n, x[0], max_norm=1.0)": "max_norm",
    "a.batch_norm(x, None, None, p[0, :, 0], p[1, :, 0], True, 0.1, 1e-5, False)": "which writes its argument 'running_mean', which isn't a buffer of the model",
    "a.instance_norm(x, None, None, p[0, :, 0], p[1, :, 0], True, 0.1, 1e-5, False)": "in training mode with running statistics",
    "a.max_pool2d(n[None], 2)": "of integers",
    "a.histc(x)": "with the range of the data: state min < max",
    "a.one_hot(n)": "without num_classes: the number of classes depends on the data",
    "a.searchsorted(p, x, sorter=p.argsort())": "with argument 'sorter'",
    "a.scatter(x, 1, n[:, :, None], y, reduce='multiply')": "with reduce = 'multiply', expected 'add'",
    "a.scatter_reduce(x, 1, n[:, :, None], y, 'prod')": "with reduce = 'prod', expected 'sum', 'mean', 'amax' or 'amin'",
    "a.rrelu(x, training=True)": "in training mode",
    "a.polygamma(21, p)": "of order 21, expected at most 20",
    "a.linalg_inv_ex(p[0, 0, 0] * torch.eye(65))[0]": "of a matrix of size 65, expected 1 to 64",
    "a.ctc_loss(x.log_softmax(2), n[0, :0], [2, 2, 1], [0, 0, 0])": "without targets",
    "a._embedding_bag(x[0], n[0], n[0, :1] * 0)[0]": "with offsets that aren't constant",
    "a._embedding_bag(x[0], n[0], torch.tensor([0, 2]), mode=2)[0]": "of maxima of bags of different sizes",
    "F.grid_sample(x[None], x[None, :, :, :2], mode='bicubic', align_corners=False)": "with mode 'bicubic'",
    "F.grid_sample(x[None], x[None, :, :, :2], padding_mode='reflection', align_corners=False)": "with padding_mode 'reflection'",
    "torch.complex(x, y).long()": "of complex numbers to real ones",
}


def make_inputs():
    torch.manual_seed(0)
    s = torch.tensor([[1.0, -inf, 2.0], [-inf, -inf, -inf], [inf, 1.0, -1.0], [float("nan"), 0.0, 1.0]])
    m = torch.rand(2, 1, 5, 5) > 0.4
    m[:, :, 2] = False  # a row that sees nothing
    f = torch.randn(2, 4, 5, 5).masked_fill(~m, -inf)
    return {"x": torch.randn(2, 3, 4), "y": torch.randn(2, 3, 4), "p": torch.rand(2, 3, 4) + 0.5, "b": torch.rand(2, 3, 4) > 0.4,
            "n": torch.randint(0, 3, (2, 3)), "s": s, "m": m, "f": f, "q": torch.randn(2, 4, 5, 8), "k": torch.randn(2, 4, 5, 8),
            "v": torch.randn(2, 4, 5, 6)}


def get_base_name(schema):
    """As tables of handlers have it."""
    name = schema.name.removeprefix("aten::").removeprefix("prim::")
    arguments = schema.arguments
    in_place = arguments and arguments[0].alias_info is not None and arguments[0].alias_info.is_write
    if in_place and not name.endswith("__"):
        name = name.removesuffix("_")
    return {"__iand__": "__and__", "__ior__": "__or__", "__ixor__": "__xor__"}.get(name, name) if in_place else name


def read_decisions(tool):
    """By op, the kinds of its arguments."""
    decisions = {}
    for line in subprocess.run([tool, "--list-ops"], capture_output=True, text=True, check=True).stdout.splitlines():
        if not line.startswith(" "):
            current = decisions.setdefault(line.removeprefix("aten::"), {})
            continue
        kind, arguments = line.strip().split(": ", 1)
        for argument, reason in re.findall(r"(\w+)(?: \(([^)]*)\))?(?:, |$)", arguments):
            assert argument not in current, f"two decisions for {argument}: {line}"
            assert kind != "without effect" or reason, f"no reason: {line}"
            current[argument] = kind
    return decisions


def is_of_tensors(schema):
    """It computes a tensor of tensors: others are of TorchScript's own lists, strings and numbers."""
    return all(any("Tensor" in str(argument.type) for argument in arguments) for arguments in (schema.arguments, schema.returns))


def check_decisions(decisions):
    """Each argument has one, and each decision is about an argument."""
    problems, seen, overloads = [], set(), 0
    for schema in torch._C._jit_get_all_schemas():
        name = get_base_name(schema)
        if not schema.name.startswith(("aten::", "prim::")) or name not in decisions or not is_of_tensors(schema):
            continue
        overloads += 1
        for i, argument in enumerate(schema.arguments):
            seen.add((name, argument.name))
            written = i > 0 and argument.alias_info is not None and argument.alias_info.is_write
            if argument.name not in decisions[name] and not written:
                problems.append(f"no decision for '{argument.name}' of {schema}")
    for name, arguments in decisions.items():
        # Of ops that Python alone has, there is no schema.
        if any(op == name for op, _ in seen):
            problems += [f"'{name}' has no argument '{argument}'" for argument in arguments if (name, argument) not in seen]
    return problems, overloads


def trace(calls):
    inputs = make_inputs()

    def forward(*values):
        names = dict(zip(inputs, values), a=a, F=F, torch=torch, inf=inf)
        return tuple(eval(call, names) for call in calls)

    traced = torch.jit.trace(forward, tuple(value.clone() for value in inputs.values()), check_trace=False)
    return traced, inputs


def find_set(graph):
    """Which (op, argument) have another value than the default."""
    found = set()
    for node in graph.nodes():
        if not node.kind().startswith("aten::") or node.schema() == "(no schema)":
            continue
        schema = torch._C.parse_schema(node.schema())
        for argument, value in zip(schema.arguments, node.inputs()):
            is_constant = value.node().kind() == "prim::Constant"
            if argument.has_default_value() and not (is_constant and value.toIValue() == argument.default_value):
                found.add((get_base_name(schema), argument.name))
    return found


def import_model(tool, traced, inputs, stem, *flags):
    traced.save(f"{stem}.pt")
    names = {torch.float32: "f32", torch.int64: "i64", torch.bool: "i1"}
    specs = []
    # By position: a trace names some arguments after what it does with them.
    for i, tensor in enumerate(inputs.values()):
        specs += ["--input", f"in{i}={''.join(f'{size}x' for size in tensor.shape)}{names[tensor.dtype]}"]
    return subprocess.run([tool, f"{stem}.pt", *specs, "--weights", f"{stem}.safetensors", *flags], capture_output=True, text=True)


def check_calls(tool, stem, decisions):
    calls = [call.strip() for line in CALLS.strip().splitlines() for call in line.split(";")]
    traced, inputs = trace(calls)
    wanted = set()
    for schema in torch._C._jit_get_all_schemas():
        name = get_base_name(schema)
        for argument in schema.arguments:
            kind = decisions.get(name, {}).get(argument.name)
            if schema.name.startswith("aten::") and argument.has_default_value() and kind in ("read", "in the result's type"):
                wanted.add((name, argument.name))
    # The two ops that are whole modules refuse what isn't the default.
    wanted = {(op, argument) for op, argument in wanted if not op.startswith(("_native", "_transformer")) and op not in ALIASES}
    missing = sorted(wanted - find_set(traced.inlined_graph) - set(ELSEWHERE))
    problems = [f"no call gives '{argument}' of '{op}' another value than its default" for op, argument in missing]

    process = import_model(tool, traced, inputs, stem, "--mlir-print-op-generic")
    if process.returncode:
        return problems + [process.stderr], len(calls)
    # Tracing makes tensors of numbers, which changes some types: the archive is the model.
    expected = torch.jit.load(f"{stem}.pt")(*[value.clone() for value in inputs.values()])
    actual = nneval.evaluate(process.stdout, f"{stem}.safetensors", list(inputs.values()))
    for call, got, correct in zip(calls, actual, expected, strict=True):
        try:
            torch.testing.assert_close(got, correct, equal_nan=True)
        except AssertionError as error:
            problems.append(f"{call}: {error}")
    return problems, len(calls)


def check_refusals(tool, stem):
    problems = []
    for i, (call, text) in enumerate(REFUSED.items()):
        process = import_model(tool, *trace([call]), f"{stem}{i}")
        if process.returncode != 1 or text not in process.stderr:
            problems.append(f"{call}: exit code {process.returncode}, must say '{text}': {process.stderr}")
    return problems


def main():
    tool, directory = sys.argv[1], Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    decisions = read_decisions(tool)
    problems, overloads = check_decisions(decisions)
    with torch.no_grad():
        wrong, calls = check_calls(tool, directory / "calls", decisions)
        problems += wrong + check_refusals(tool, directory / "refused")
    print("\n".join(problems))
    print(f"{len(decisions)} ops, {overloads} overloads, {calls} calls, {len(REFUSED)} refusals: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
