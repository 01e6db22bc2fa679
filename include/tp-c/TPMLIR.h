/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===- tp-c/TPMLIR.h - the compiler for programs in C -----------------*- C -*-===*\
|*                                                                            *|
|* The input is a model as MLIR text or bytecode; the output is one rank's    *|
|* program. The passes, options and reports are tp-opt's. Link                *|
|* TPMLIR::TPMLIRC.                                                           *|
|*                                                                            *|
|* Objects are opaque and belong to the caller, who destroys them. Only one   *|
|* thread at a time may use a context and the modules in it; contexts share   *|
|* nothing. String arguments are UTF-8, end with a zero and are copied. The   *|
|* caller frees a string returned as `char *` with tpStringFree, but never    *|
|* one returned as `const char *`.                                            *|
|*                                                                            *|
|* A function that can fail reports failure by its result. The errors go to   *|
|* the context's diagnostic handler, and tpContextGetErrors returns them as   *|
|* text. No function ends the process.                                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef TP_C_TPMLIR_H
#define TP_C_TPMLIR_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TP_EXPORTED __attribute__((visibility("default")))
#else
#define TP_EXPORTED
#endif

/** Dialects, and everything that modules share. */
typedef struct TpContext TpContext;

/** A program: a model, or the output of passes that ran on it. Belongs to a
 *  context, which has to outlive it. */
typedef struct TpModule TpModule;

/** The kind of a diagnostic. Notes follow the error that they belong to. */
typedef enum TpSeverity {
  TP_SEVERITY_NOTE = 0,
  TP_SEVERITY_WARNING = 1,
  TP_SEVERITY_ERROR = 2,
  TP_SEVERITY_REMARK = 3
} TpSeverity;

/** Called for each diagnostic. `location` is 'file:line:column' if these are
 *  known, or else the location as MLIR prints it. `message` is one or more
 *  lines without a final newline. Both strings are valid during the call.
 *  `userData` is the pointer passed to tpContextSetDiagnosticHandler. */
typedef void (*TpDiagnosticHandler)(TpSeverity severity, const char *location,
                                    const char *message, void *userData);

/** The version of the library, as in "0.1.0". */
TP_EXPORTED const char *tpVersion(void);

/** Frees a string that one of these functions returned. NULL is ignored. */
TP_EXPORTED void tpStringFree(char *string);

/*===- Contexts ------------------------------------------------------------===*/

/** Creates a context with the project's dialects and MLIR's own. Also registers
 *  all passes and pipelines, once per process. Never NULL. */
TP_EXPORTED TpContext *tpContextCreate(void);

/** Destroys a context that has no modules left. NULL is ignored. */
TP_EXPORTED void tpContextDestroy(TpContext *context);

/** From now on, passes all diagnostics of the context to `handler`. With NULL,
 *  the default, no handler is called. */
TP_EXPORTED void tpContextSetDiagnosticHandler(TpContext *context,
                                               TpDiagnosticHandler handler,
                                               void *userData);

/** The errors of the last call on this context or a module of it, with their
 *  notes, one per line as 'location: error: message'. Empty if there were none.
 *  Valid until the next such call. */
TP_EXPORTED const char *tpContextGetErrors(const TpContext *context);

/*===- Modules -------------------------------------------------------------===*/

/** Parses and verifies `size` bytes of MLIR text or bytecode. `name` is the
 *  source's name in diagnostics. Returns NULL on failure. */
TP_EXPORTED TpModule *tpModuleParse(TpContext *context, const char *source,
                                    size_t size, const char *name);

/** The same for the file at `path`. */
TP_EXPORTED TpModule *tpModuleParseFile(TpContext *context, const char *path);

/** Destroys a module. NULL is ignored. */
TP_EXPORTED void tpModuleDestroy(TpModule *module);

/** The module as MLIR text, to be freed with tpStringFree. */
TP_EXPORTED char *tpModulePrint(const TpModule *module);

/*===- Compilation ---------------------------------------------------------===*/

/** Turns a model into one rank's program, in place, as tp-opt's
 *  --tp-parallelize does. `options` are that pipeline's, as in
 *  "plan=plan.yaml strict=true"; the section "Options" of docs/Embedding.md
 *  lists them. NULL and "" mean no options. Without a plan, the mesh and the
 *  shardings in the module are used. Returns false if the options, the plan or
 *  the module have an error; the module is then in an unspecified state and can
 *  only be destroyed. */
TP_EXPORTED bool tpModuleParallelize(TpModule *module, const char *options);

/** Runs any passes, as in "builtin.module(tp-propagate,tp-partition)". Fails as
 *  tpModuleParallelize does. */
TP_EXPORTED bool tpModuleRunPipeline(TpModule *module, const char *pipeline);

/** The report of a per-rank program as JSON (docs/Report.md), to be freed with
 *  tpStringFree. NULL if the module isn't a per-rank program. */
TP_EXPORTED char *tpModuleReport(TpModule *module);

/** Compiles a per-rank program and writes the artifact for the runtime
 *  (docs/Artifact.md) to the file `path`, either all of it or nothing. `cpu` is
 *  LLVM's name of a CPU, or "native"; `optLevel` is 0 to 3. The module isn't
 *  changed. */
TP_EXPORTED bool tpModuleCompile(TpModule *module, const char *cpu,
                                 unsigned optLevel, const char *path);

/** Compiles `count` per-rank programs, at least one, to one artifact, in which
 *  they share their parameters. `names` are the programs' names in it. The
 *  modules belong to one context. Otherwise like tpModuleCompile, whose program
 *  is called "main". */
TP_EXPORTED bool tpModulesCompile(TpModule *const *modules,
                                  const char *const *names, size_t count,
                                  const char *cpu, unsigned optLevel,
                                  const char *path);

#ifdef __cplusplus
}
#endif

#endif /* TP_C_TPMLIR_H */
