//===- GenerationReport.h - Reports of generated text -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_GENERATIONREPORT_H
#define TPRT_GENERATIONREPORT_H

#include "tprt/Generator.h"

namespace tprt {

/// A line for people: the time of the prompts, the median time of the tokens
/// after the first one, and their number per second, over all sequences.
TPRT_API std::string describe(const Generation &generation,
                              const std::vector<std::vector<int64_t>> &prompts);

/// The report as JSON, schema 1 (docs/Runtime.md): tokens, seconds, and the
/// size of the cache. `texts` are those of the sequences' new tokens, or none.
TPRT_API std::string
makeGenerationReport(const std::string &artifactPath, const Session &session,
                     const Generator &generator, const Generation &generation,
                     const std::vector<std::vector<int64_t>> &prompts,
                     const std::vector<std::string> &texts = {});

} // namespace tprt

#endif // TPRT_GENERATIONREPORT_H
