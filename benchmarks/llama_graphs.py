# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Llama-style decoder without training, in the IR of tp-opt: what the scripts beside this one give to the passes.

The same model in PyTorch is in dtensor_llama.py, in jax in shardy_llama.py. Each layer is RMSNorm, grouped attention with rotary
positions, a residual, RMSNorm, SwiGLU, a residual. Weights are placed as Megatron does it. The residual stream is split
over the data-parallel dimension, where there is one, along the batch, and, with sequence parallelism, over the
tensor-parallel dimension along the sequence."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """Sizes; `mesh` is a list of names and sizes, the last of which is tensor-parallel."""
    layers: int
    mesh: tuple = (("dp", 2), ("tp", 4))
    sequence: bool = False  # sequence parallelism
    dim: int = 512
    hidden: int = 1536
    heads: int = 8
    batch: int = 8
    length: int = 128

    @property
    def head_dim(self):
        return self.dim // self.heads

    @property
    def tp(self):
        return self.mesh[-1][1]

    @property
    def dp(self):
        return self.mesh[0][1] if len(self.mesh) > 1 else 1


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def sharding(*dims):
    return f"#tp.sharding<@mesh, [{', '.join('{' + dim + '}' for dim in dims)}]>"


# One layer. Names of values carry its number; rotary tables are arguments.
LAYER = """
  %n1_~ = nn.parameter "layers.~.attention_norm.weight" : {vec}
  %wq_~ = nn.parameter "layers.~.attention.wq.weight" {{tp.sharding = {col}}} : {dd}
  %wk_~ = nn.parameter "layers.~.attention.wk.weight" {{tp.sharding = {col}}} : {dd}
  %wv_~ = nn.parameter "layers.~.attention.wv.weight" {{tp.sharding = {col}}} : {dd}
  %wo_~ = nn.parameter "layers.~.attention.wo.weight" {{tp.sharding = {row}}} : {dd}
  %n2_~ = nn.parameter "layers.~.ffn_norm.weight" : {vec}
  %w1_~ = nn.parameter "layers.~.feed_forward.w1.weight" {{tp.sharding = {col}}} : {fd}
  %w3_~ = nn.parameter "layers.~.feed_forward.w3.weight" {{tp.sharding = {col}}} : {fd}
  %w2_~ = nn.parameter "layers.~.feed_forward.w2.weight" {{tp.sharding = {row}}} : {df}
  %h_~ = nn.rms_norm %x_~ weight %n1_~ over 1 eps 1.0e-5 : ({bsd}, {vec}) -> {bsd}
  %q0_~ = nn.linear %h_~, %wq_~ : ({bsd}, {dd}) -> {bsd}
  %k0_~ = nn.linear %h_~, %wk_~ : ({bsd}, {dd}) -> {bsd}
  %v0_~ = nn.linear %h_~, %wv_~ : ({bsd}, {dd}) -> {bsd}
{rope_q}{rope_k}  %v1_~ = nn.reshape %v0_~ : {bsd} -> {bshk}
  %v5_~ = nn.transpose %v1_~ [0, 2, 1, 3] : {bshk} -> {bhsk}
  %o_~ = nn.attention causal %q5_~, %k5_~, %v5_~ scale 0.125 : ({bhsk}, {bhsk}, {bhsk}) -> {bhsk}
  %o1_~ = nn.transpose %o_~ [0, 2, 1, 3] : {bhsk} -> {bshk}
  %o2_~ = nn.reshape %o1_~ : {bshk} -> {bsd}
  %o3_~ = nn.linear %o2_~, %wo_~ : ({bsd}, {dd}) -> {bsd}
  %y_~ = nn.add %x_~, %o3_~ {between}: ({bsd}, {bsd}) -> {bsd}
  %g_~ = nn.rms_norm %y_~ weight %n2_~ over 1 eps 1.0e-5 : ({bsd}, {vec}) -> {bsd}
  %u_~ = nn.linear %g_~, %w1_~ : ({bsd}, {fd}) -> {bsf}
  %s_~ = nn.silu %u_~ : {bsf}
  %t_~ = nn.linear %g_~, %w3_~ : ({bsd}, {fd}) -> {bsf}
  %m_~ = nn.mul %s_~, %t_~ : ({bsf}, {bsf}) -> {bsf}
  %d_~ = nn.linear %m_~, %w2_~ : ({bsf}, {df}) -> {bsd}
  %x_$ = nn.add %y_~, %d_~ {between}: ({bsd}, {bsd}) -> {bsd}
"""
# Positions of what VALUE stands for: [a b] -> [a cos - b sin, a sin + b cos].
ROPE = """  %V1_~ = nn.reshape %V0_~ : {bsd} -> {bshk}
  %Va_~ = nn.slice %V1_~ dim 3 start 0 step 1 : {bshk} -> {bshj}
  %Vb_~ = nn.slice %V1_~ dim 3 start {half} step 1 : {bshk} -> {bshj}
  %Vac_~ = nn.mul %Va_~, %cos : ({bshj}, {table}) -> {bshj}
  %Vbs_~ = nn.mul %Vb_~, %sin : ({bshj}, {table}) -> {bshj}
  %Vas_~ = nn.mul %Va_~, %sin : ({bshj}, {table}) -> {bshj}
  %Vbc_~ = nn.mul %Vb_~, %cos : ({bshj}, {table}) -> {bshj}
  %V2_~ = nn.sub %Vac_~, %Vbs_~ : ({bshj}, {bshj}) -> {bshj}
  %V3_~ = nn.add %Vas_~, %Vbc_~ : ({bshj}, {bshj}) -> {bshj}
  %V4_~ = nn.concat %V2_~, %V3_~ dim 3 : ({bshj}, {bshj}) -> {bshk}
  %V5_~ = nn.transpose %V4_~ [0, 2, 1, 3] : {bshk} -> {bhsk}
"""
OPS_PER_LAYER = 49


def get_module(config):
    """The program before propagation, as text."""
    b, s, d, f, h, k = config.batch, config.length, config.dim, config.hidden, config.heads, config.head_dim
    tp = config.mesh[-1][0]
    words = {"vec": tensor(d), "dd": tensor(d, d), "fd": tensor(f, d), "df": tensor(d, f), "bsd": tensor(b, s, d),
             "bsf": tensor(b, s, f), "bshk": tensor(b, s, h, k), "bshj": tensor(b, s, h, k // 2),
             "bhsk": tensor(b, h, s, k), "table": tensor(s, 1, k // 2), "half": k // 2,
             "col": sharding(tp, ""), "row": sharding("", tp)}
    dp = config.mesh[0][0] if len(config.mesh) > 1 else ""
    stream = sharding(dp, tp if config.sequence else "", "")
    # Without it, the blocks in between might as well be whole: that moves no more.
    between = f"{{tp.sharding = {stream}}} " if config.sequence else ""
    rope = ROPE.format(**words)
    layer = LAYER.format(**words, between=between, rope_q=rope.replace("V", "q"), rope_k=rope.replace("V", "k"))
    mesh = ", ".join(f"{name} = {size}" for name, size in config.mesh)
    body = "".join(layer.replace("~", str(i)).replace("$", str(i + 1)) for i in range(config.layers))
    return f"""tp.mesh @mesh({mesh})
func.func @main(%x_0: {words['bsd']} {{tp.sharding = {stream}}}, %cos: {words['table']}, %sin: {words['table']})
    -> ({words['bsd']} {{tp.sharding = {stream}}}) {{{body}  return %x_{config.layers} : {words['bsd']}
}}
"""
