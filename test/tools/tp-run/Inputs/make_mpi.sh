# Programs over 2, 3 and 4 ranks: one in f32, one in bf16, and a training; and one over 2 x 2 ranks
# that starts collectives of every kind early.
#
# usage: make_mpi.sh INPUTS COLLECTIVES
set -e
inputs=$1
sed s/f32/bf16/g "$inputs/mpi.mlir" > half.mlir
printf 'loss: {name: mse}\noptimizer: {name: AdamW, lr: 0.01}\n' > train.yaml
for ranks in 2 3 4; do
  printf 'mesh: {tp: %s}\nplan:\n  up: ColwiseParallel\n  down: RowwiseParallel\n' $ranks > plan.yaml
  tp-opt "$inputs/mpi.mlir" --tp-parallelize=plan=plan.yaml -o program.mlir
  tp-opt half.mlir --tp-parallelize=plan=plan.yaml -o half.ranks.mlir
  tp-opt "$inputs/mpi.mlir" --tp-parallelize="plan=plan.yaml train=train.yaml" -o train.mlir
  tp-compile program.mlir -o program.$ranks.tpx
  tp-compile half.ranks.mlir -o half.$ranks.tpx
  tp-compile train.mlir -o train.$ranks.tpx
done
tp-opt "$2" --tp-parallelize="one-shot=false sequence-parallel bucket-bytes=4096 overlap chunks=2" -o collectives.mlir
grep -q tp.start collectives.mlir
tp-compile collectives.mlir -o collectives.tpx
