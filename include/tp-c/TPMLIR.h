/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===- tp-c/TPMLIR.h - the compiler for programs in C -----------------*- C -*-===*\
|*                                                                            *|
|* A model goes in as MLIR text or bytecode, one rank's program comes out; the *|
|* same passes, options and reports as tp-opt's. Link TPMLIR::TPMLIRC.         *|
|*                                                                            *|
|* Objects are opaque and belong to the caller, who destroys them. A context   *|
|* and the modules in it are used by one thread at a time; contexts don't      *|
|* share anything. Strings that come in are UTF-8, end with a zero and are     *|
|* copied; strings that a function returns as `char *` are freed with          *|
|* tpStringFree, those that it returns as `const char *` are not.              *|
|*                                                                            *|
|* A function that can fail says so by its result. What went wrong is told to  *|
|* the context's diagnostic handler, and tpContextGetErrors has it as text. No *|
|* function ends the process.                                                  *|
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

/** A program: a model, or what passes made of it. Belongs to a context, which
 *  has to outlive it. */
typedef struct TpModule TpModule;

/** What a diagnostic is. Notes follow the error that they belong to. */
typedef enum TpSeverity {
  TP_SEVERITY_NOTE = 0,
  TP_SEVERITY_WARNING = 1,
  TP_SEVERITY_ERROR = 2,
  TP_SEVERITY_REMARK = 3
} TpSeverity;

/** Is told each diagnostic: `location` is 'file:line:column' where it is known
 *  and else as MLIR prints it, `message` one or more lines without a final one.
 *  Both strings live as long as the call. `userData` is what
 *  tpContextSetDiagnosticHandler was given. */
typedef void (*TpDiagnosticHandler)(TpSeverity severity, const char *location,
                                    const char *message, void *userData);

/** The version of the library, as in "0.1.0". */
TP_EXPORTED const char *tpVersion(void);

/** Frees a string that one of these functions returned; NULL is nothing. */
TP_EXPORTED void tpStringFree(char *string);

/*===- Contexts ------------------------------------------------------------===*/

/** A context with the project's dialects, MLIR's own, and, in the process, all
 *  passes and pipelines. Never NULL. */
TP_EXPORTED TpContext *tpContextCreate(void);

/** Destroys a context without modules; NULL is nothing. */
TP_EXPORTED void tpContextDestroy(TpContext *context);

/** From now on tells `handler` all diagnostics of the context; NULL tells
 *  nobody, which is how a context begins. */
TP_EXPORTED void tpContextSetDiagnosticHandler(TpContext *context,
                                               TpDiagnosticHandler handler,
                                               void *userData);

/** The errors of the last call on this context or a module of it, and the notes
 *  that belong to them, one a line as 'location: error: message'; empty when
 *  there were none. Valid until the next such call. */
TP_EXPORTED const char *tpContextGetErrors(const TpContext *context);

/*===- Modules -------------------------------------------------------------===*/

/** Parses and verifies `size` bytes of MLIR text or bytecode. `name` is what
 *  diagnostics call the source. NULL when that fails. */
TP_EXPORTED TpModule *tpModuleParse(TpContext *context, const char *source,
                                    size_t size, const char *name);

/** Likewise the file at `path`. */
TP_EXPORTED TpModule *tpModuleParseFile(TpContext *context, const char *path);

/** Destroys a module; NULL is nothing. */
TP_EXPORTED void tpModuleDestroy(TpModule *module);

/** The module as MLIR text, to be freed with tpStringFree. */
TP_EXPORTED char *tpModulePrint(const TpModule *module);

/*===- Compilation ---------------------------------------------------------===*/

/** Turns a model into one rank's program, in place: tp-opt's --tp-parallelize.
 *  `options` are that pipeline's, as in "plan=plan.yaml strict=true"; the
 *  section "Options" of docs/Embedding.md lists them. NULL and "" are none.
 *  Without a plan, the mesh and the shardings in the module are used. False when
 *  the options, the plan or the module have an error; the module is then in an
 *  unspecified state and can only be destroyed. */
TP_EXPORTED bool tpModuleParallelize(TpModule *module, const char *options);

/** Runs any passes, as in "builtin.module(tp-propagate,tp-partition)". Fails as
 *  tpModuleParallelize does. */
TP_EXPORTED bool tpModuleRunPipeline(TpModule *module, const char *pipeline);

/** The report of a per-rank program as JSON (docs/Report.md), to be freed with
 *  tpStringFree; NULL for what isn't one. */
TP_EXPORTED char *tpModuleReport(TpModule *module);

/** Compiles a per-rank program for `cpu`, a CPU that LLVM knows by name or
 *  "native", at the optimisation level 0 to 3, and writes the artifact for the
 *  runtime (docs/Artifact.md) to the file `path`, all of it or nothing. The
 *  module stays as it is. */
TP_EXPORTED bool tpModuleCompile(TpModule *module, const char *cpu,
                                 unsigned optLevel, const char *path);

#ifdef __cplusplus
}
#endif

#endif /* TP_C_TPMLIR_H */
