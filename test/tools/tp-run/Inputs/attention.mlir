// Attention of bf16 with keys shared by two heads each, its gradients, and attention of f32 with a mask.
tp.mesh @mesh(tp = 2)
func.func @main(%q: tensor<2x9x32xbf16> {tp.name = "q"}, %k: tensor<2x9x16xbf16> {tp.name = "k"},
                %g: tensor<2x9x32xbf16> {tp.name = "g"}, %x: tensor<2x5x8xf32> {tp.name = "x"},
                %m: tensor<5x5xi1> {tp.name = "m"})
    -> (tensor<2x9x32xbf16> {tp.name = "y"}, tensor<2x9x32xbf16> {tp.name = "dq"}, tensor<2x4x9x8xbf16> {tp.name = "dk"},
        tensor<2x4x9x8xbf16> {tp.name = "dv"}, tensor<2x5x8xf32> {tp.name = "z"}) {
  %q0 = nn.reshape %q : tensor<2x9x32xbf16> -> tensor<2x9x4x8xbf16>
  %k0 = nn.reshape %k : tensor<2x9x16xbf16> -> tensor<2x9x2x8xbf16>
  %g0 = nn.reshape %g : tensor<2x9x32xbf16> -> tensor<2x9x4x8xbf16>
  %q1 = nn.transpose %q0 [0, 2, 1, 3] : tensor<2x9x4x8xbf16> -> tensor<2x4x9x8xbf16>
  %k1 = nn.transpose %k0 [0, 2, 1, 3] : tensor<2x9x2x8xbf16> -> tensor<2x2x9x8xbf16>
  %g1 = nn.transpose %g0 [0, 2, 1, 3] : tensor<2x9x4x8xbf16> -> tensor<2x4x9x8xbf16>
  %0 = nn.attention causal %q1, %k1, %k1 scale 0.5
    : (tensor<2x4x9x8xbf16>, tensor<2x2x9x8xbf16>, tensor<2x2x9x8xbf16>) -> tensor<2x4x9x8xbf16>
  %1 = nn.transpose %0 [0, 2, 1, 3] : tensor<2x4x9x8xbf16> -> tensor<2x9x4x8xbf16>
  %y = nn.reshape %1 : tensor<2x9x4x8xbf16> -> tensor<2x9x32xbf16>
  %dq, %dk, %dv = nn.attention_gradient causal %q1, %k1, %k1 gradient %g1 scale 0.5
    : (tensor<2x4x9x8xbf16>, tensor<2x2x9x8xbf16>, tensor<2x2x9x8xbf16>, tensor<2x4x9x8xbf16>)
    -> (tensor<2x4x9x8xbf16>, tensor<2x4x9x8xbf16>, tensor<2x4x9x8xbf16>)
  %2 = nn.transpose %dq [0, 2, 1, 3] : tensor<2x4x9x8xbf16> -> tensor<2x9x4x8xbf16>
  %dq0 = nn.reshape %2 : tensor<2x9x4x8xbf16> -> tensor<2x9x32xbf16>
  %z = nn.attention %x, %x, %x mask %m scale 1.0
    : (tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<5x5xi1>) -> tensor<2x5x8xf32>
  return %y, %dq0, %dk, %dv, %z : tensor<2x9x32xbf16>, tensor<2x9x32xbf16>, tensor<2x4x9x8xbf16>, tensor<2x4x9x8xbf16>, tensor<2x5x8xf32>
}
