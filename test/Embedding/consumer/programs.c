/* programs-c ARTIFACT OPTIONS MODEL.mlir…: compiles one rank's programs of the
 * models, called by their numbers from 0 on, to one artifact. */
#include <stdio.h>
#include <tp-c/TPMLIR.h>

enum { most = 10 };

int main(int argc, char **argv) {
  static const char *const names[most] = {"0", "1", "2", "3", "4",
                                          "5", "6", "7", "8", "9"};
  TpModule *modules[most];
  TpContext *context;
  int count = argc - 3, numParsed = 0, isDone = 1;
  if (count < 1 || count > most) {
    fprintf(stderr, "usage: programs-c ARTIFACT OPTIONS MODEL.mlir...\n");
    return 2;
  }
  context = tpContextCreate();
  while (isDone && numParsed < count) {
    TpModule *module = tpModuleParseFile(context, argv[3 + numParsed]);
    isDone = module && tpModuleParallelize(module, argv[2]);
    modules[numParsed++] = module;
  }
  isDone = isDone && tpModulesCompile(modules, names, (size_t)count, "native",
                                      3, argv[1]);
  if (!isDone)
    fprintf(stderr, "nothing compiled:\n%s", tpContextGetErrors(context));
  while (numParsed > 0)
    tpModuleDestroy(modules[--numParsed]);
  tpContextDestroy(context);
  return isDone ? 0 : 1;
}
