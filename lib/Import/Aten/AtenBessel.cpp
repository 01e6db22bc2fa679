//===- AtenBessel.cpp - Modified Bessel functions of the first kind -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scaled functions exp(-|x|) Iᵥ(x) are Chebyshev series up to |x| = 8, and
// series in 1 / |x| above. The coefficients are those of the functions'
// interpolation in 64 Chebyshev nodes, computed with 40 digits.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include "AtenFunctions.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;

namespace {
/// A series with enough terms for f64, the first `shortSize` of which are
/// enough for f32.
struct Series {
  ArrayRef<double> coefficients;
  size_t shortSize;

  Value sum(ImportBuilder &b, Value t) const {
    return chebyshevSum(b,
                        elementOf(t).isF64()
                            ? coefficients
                            : coefficients.take_front(shortSize),
                        t);
  }
};

constexpr double kEdge = 8;
} // namespace

/// exp(-z) I₀(z) by t = z / 4 - 1.
static constexpr double kNear0[] = {
    3.38397637204738042e-1,  -3.04682672343198399e-1,
    1.71620901522208775e-1,  -9.49010970480476444e-2,
    4.93052842396707085e-2,  -2.37374148058994688e-2,
    1.05464603945949983e-2,  -4.32430999505057594e-3,
    1.63947561694133580e-3,  -5.76375574538582366e-4,
    1.88502885095841656e-4,  -5.75419501008210370e-5,
    1.64484480707288971e-5,  -4.41673835845875056e-6,
    1.11738753912010372e-6,  -2.67079385394061173e-7,
    6.04699502254191895e-8,  -1.30002500998624804e-8,
    2.65982372468238665e-9,  -5.18979560163526291e-10,
    9.67580903537323691e-11, -1.72682629144155571e-11,
    2.95505266312963983e-12, -4.85644678311192946e-13,
    7.67618549860493562e-14, -1.16853328779934517e-14,
    1.71539128555513303e-15, -2.43127984654795469e-16,
    3.33079451882223810e-17,
};
/// sqrt(z) exp(-z) I₀(z) by t = 16 / z - 1.
static constexpr double kFar0[] = {
    4.02245205507054416e-1,   3.36911647825569409e-3,
    6.88975834691682398e-5,   2.89137052083475648e-6,
    2.04891858946906374e-7,   2.26666899049817806e-8,
    3.39623202570838635e-9,   4.94060238822496959e-10,
    1.18891471078464383e-11,  -3.14991652796324136e-11,
    -1.32158118404477131e-11, -1.79417853150680612e-12,
    7.18012445138366623e-13,  3.85277838274214270e-13,
    1.54008621752140983e-14,  -4.15056934728722209e-14,
    -9.55484669882830765e-15, 3.81168066935262242e-15,
    1.77256013305652638e-15,  -3.42548561967721913e-16,
    -2.82762398051658348e-16, 3.46122286769746109e-17,
    4.46562142029676000e-17,
};
/// exp(-z) I₁(z) / z by t = z / 4 - 1.
static constexpr double kNear1[] = {
    1.26293593221816827e-1,  -1.76416518357834055e-1,
    1.02643658689847095e-1,  -5.29459812080949914e-2,
    2.47264490306265168e-2,  -1.05640848946261982e-2,
    4.15642294431288816e-3,  -1.51357245063125315e-3,
    5.12285956168575773e-4,  -1.61760815825896746e-4,
    4.78156510755005423e-5,  -1.32731636560394358e-5,
    3.47025130813767848e-6,  -8.56872026469545474e-7,
    2.00329475355213526e-7,  -4.44505912879632808e-8,
    9.38153738649577178e-9,  -1.88724975172282929e-9,
    3.62559028155211704e-10, -6.66348972350202774e-11,
    1.17361862988909016e-11, -1.98397439776494372e-12,
    3.22379336594557471e-13, -5.04218550472791169e-14,
    7.60068429473540693e-15, -1.10559694773538631e-15,
    1.55363195773620047e-16, -2.11142121435816608e-17,
};
/// sqrt(z) exp(-z) I₁(z) by t = 16 / z - 1.
static constexpr double kFar1[] = {
    3.89288117509140060e-1,   -9.76109749136146841e-3,
    -1.10588938762623716e-4,  -3.88256480887769039e-6,
    -2.51223623787020893e-7,  -2.63146884688951951e-8,
    -3.83538038596423702e-9,  -5.58974346219658381e-10,
    -1.89749581235054123e-11, 3.25260358301548824e-11,
    1.41258074366137813e-11,  2.03562854414708951e-12,
    -7.19855177624590851e-13, -4.08355111109219732e-13,
    -2.10154184277266431e-14, 4.27244001671195135e-14,
    1.04202769841288028e-14,  -3.81440307243700780e-15,
    -1.88035477551078245e-15, 3.30820231092092828e-16,
    2.96262899764595014e-16,  -3.20952592199342396e-17,
    -4.65030536848935833e-17,
};

/// Iᵥ(x) for v = `order`, times exp(-|x|) if `isScaled`. I₁ is odd.
template <int order, bool isScaled>
static Value bessel(ImportBuilder &b, Value x) {
  static constexpr Series kNear = {order == 0 ? ArrayRef(kNear0) : kNear1,
                                   order == 0 ? 19u : 17u};
  static constexpr Series kFar = {order == 0 ? ArrayRef(kFar0) : kFar1, 7};
  // A product with the sign has a derivative at 0, which |x| lacks.
  Value one = constantLike(b, x, 1);
  Value sign =
      select(b, compare(b, ComparePredicate::LT, x, 0.0), neg(b, one), one);
  Value z = mul(b, x, sign);
  Value isNear = compare(b, ComparePredicate::LE, z, kEdge);
  Value edge = constantLike(b, x, kEdge);
  Value small = select(b, isNear, z, edge), large = select(b, isNear, edge, z);
  Value near = kNear.sum(b, add(b, mul(b, small, 0.25), -1));
  if (order == 1)
    near = mul(b, near, small);
  Value inverse = unary<nn::ReciprocalOp>(b, large);
  Value far = mul(b, kFar.sum(b, add(b, mul(b, inverse, 16), -1)),
                  unary<nn::RsqrtOp>(b, large));
  Value result = select(b, isNear, near, far);
  if (order == 1)
    result = mul(b, result, sign);
  return isScaled ? result : mul(b, result, exp(b, z));
}

void mlir::tp::addBesselOps(AtenTable &table) {
  table["i0"] = {widely<bessel<0, false>>, "self"};
  table["special_i0e"] = {widely<bessel<0, true>>, "self"};
  table["special_i1"] = {widely<bessel<1, false>>, "self"};
  table["special_i1e"] = {widely<bessel<1, true>>, "self"};
}
