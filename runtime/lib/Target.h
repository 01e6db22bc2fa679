//===- Target.h - Can this machine run the code? -----------------*- C++
//-*-===//

#ifndef TPRT_LIB_TARGET_H
#define TPRT_LIB_TARGET_H

#include "tprt/Manifest.h"

namespace tprt {

/// Throws an input error when the manifest's target is another architecture, or
/// wants CPU features that this machine doesn't have. Checked are the features
/// that code generators use unasked (vector, bit manipulation); those that only
/// privileged or special instructions need are not.
void checkTarget(const Manifest &manifest);

} // namespace tprt

#endif // TPRT_LIB_TARGET_H
