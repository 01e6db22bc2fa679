// A plugin of tp-opt: a style that plans use by its name.
#include "tp/Plan/Style.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"

using namespace mlir;
using namespace mlir::tp::plan;

// [style]
/// Splits each matrix of a module, however deep inside, along one dimension.
class ShardedWeights final : public Style {
public:
  StringRef getName() const override { return "ShardedWeights"; }
  ArrayRef<ArgumentSpec> getArguments() const override {
    static const ArgumentSpec specs[] = {{"dim", ArgumentSpec::Type::Int, "0"}};
    return specs;
  }
  unsigned getAspects() const override { return Parameters; }
  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    const Argument &dim = arguments["dim"];
    requests.getModule().walk([&](tp::ParameterOpInterface parameter) {
      if (parameter.getType().getRank() > 1)
        requests.placeParameter(parameter, Placement::shard(dim.integer),
                                dim.loc);
    });
    if (requests.parameters.empty())
      requests.reportError(arguments.getEntryLoc(),
                           requests.describeModule() + " has no matrix");
  }
};

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "ShardedWeights", "1.0",
          [](DialectRegistry *registry) {
            registerStyle<ShardedWeights>(*registry);
          }};
}
// [/style]
