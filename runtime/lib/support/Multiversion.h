//===- Multiversion.h - One function, several instruction sets --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime is built for the baseline of its architecture. A function marked
// TPRT_MULTIVERSION is compiled once more for x86-64-v3 (AVX2, F16C, FMA) and
// v4 (AVX-512); the dynamic linker picks one at load time. Functions that it
// calls must be TPRT_INLINE to be vectorized with it.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_SUPPORT_MULTIVERSION_H
#define TPRT_LIB_SUPPORT_MULTIVERSION_H

#define TPRT_INLINE __attribute__((always_inline)) inline

// Sanitizers instrument the resolvers, which run before their runtime is set
// up.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define TPRT_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TPRT_SANITIZED
#endif

#if defined(__x86_64__) && defined(__linux__) && !defined(TPRT_SANITIZED) &&   \
    defined(__OPTIMIZE__) &&                                                   \
    (defined(__clang__) ? __clang_major__ >= 17 : __GNUC__ >= 13)
#define TPRT_MULTIVERSION                                                      \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TPRT_MULTIVERSION
#endif

#endif // TPRT_LIB_SUPPORT_MULTIVERSION_H
