/* compiler-c MODEL.mlir OPTIONS [ARTIFACT]: prints one rank's program and its
 * report, and compiles it. */
#include <stdio.h>
#include <tp-c/TPMLIR.h>

static void tell(TpSeverity severity, const char *location, const char *message,
                 void *userData) {
  static const char *const words[] = {"note", "warning", "error", "remark"};
  if (severity == TP_SEVERITY_ERROR)
    ++*(unsigned *)userData;
  fprintf(stderr, "%s: %s: %s\n", location, words[severity], message);
}

static int compile(TpContext *context, char **argv) {
  TpModule *module = tpModuleParseFile(context, argv[1]);
  char *program = NULL, *report = NULL;
  int status = 1;
  if (module && tpModuleParallelize(module, argv[2])) {
    program = tpModulePrint(module);
    report = tpModuleReport(module);
    if (report && (!argv[3] || tpModuleCompile(module, "native", 3, argv[3])))
      status = 0;
  }
  if (status == 0)
    printf("%s%s", program, report);
  else
    fprintf(stderr, "nothing compiled:\n%s", tpContextGetErrors(context));
  tpStringFree(program);
  tpStringFree(report);
  tpModuleDestroy(module);
  return status;
}

int main(int argc, char **argv) {
  unsigned numErrors = 0;
  TpContext *context;
  int status;
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: compiler-c MODEL.mlir OPTIONS [ARTIFACT]\n");
    return 2;
  }
  context = tpContextCreate();
  tpContextSetDiagnosticHandler(context, tell, &numErrors);
  status = compile(context, argv);
  if (numErrors)
    fprintf(stderr, "%u error(s)\n", numErrors);
  tpContextDestroy(context);
  return status;
}
