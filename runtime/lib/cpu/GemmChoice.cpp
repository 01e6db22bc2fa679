//===- GemmChoice.cpp - Choice of GEMM implementations --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/GemmChoice.h"

#include "cpu/Gemm.h"
#include "cpu/GemmChoiceFile.h"
#include "cpu/InstructionSet.h"
#include "cpu/OneDnn.h"
#include "tprt/Tensor.h"

#include <algorithm>
#include <cblas.h>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <set>
#include <sys/utsname.h>
#include <tuple>

using namespace tprt;
using nlohmann::json;

static constexpr GemmLibrary allLibraries[] = {
    GemmLibrary::Tiles, GemmLibrary::OpenBlas, GemmLibrary::OneDnn};

std::string_view tprt::toString(GemmLibrary library) {
  switch (library) {
  case GemmLibrary::Tiles:
    return "tiles";
  case GemmLibrary::OpenBlas:
    return "openblas";
  default:
    return "onednn";
  }
}

std::optional<GemmLibrary> tprt::parseGemmLibrary(std::string_view name) {
  for (GemmLibrary library : allLibraries)
    if (toString(library) == name)
      return library;
  return std::nullopt;
}

std::optional<std::string> tprt::getVersion(GemmLibrary library) {
  switch (library) {
  case GemmLibrary::Tiles:
    return TPRT_VERSION " " + std::string(getInstructionSetName());
  case GemmLibrary::OpenBlas:
    return std::string(openblas_get_config()) + " " + openblas_get_corename();
  default:
    if (const OneDnn *onednn = OneDnn::get())
      return onednn->getVersion();
    return std::nullopt;
  }
}

GemmLibrary GemmChoices::get(const Product &product) const {
  if (library)
    return *library;
  for (const GemmChoice &choice : products)
    if (choice.product == product)
      return choice.library;
  return GemmLibrary::Tiles;
}

bool GemmChoices::uses(GemmLibrary which) const {
  return library == which || std::any_of(products.begin(), products.end(),
                                         [&](const GemmChoice &each) {
                                           return each.library == which;
                                         });
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

/// A library must gain at least this over tiles. A smaller gain may be noise,
/// and isn't worth giving up packed weights or changing bits of the result.
static constexpr double leastGain = 0.1;

/// The largest measured sizes. A larger product would only repeat the same
/// work.
static constexpr int64_t maxDepth = 16384;
static constexpr int64_t maxElementsOfB = int64_t(1) << 22;
static constexpr double maxWork = 1.5e8;
static constexpr int64_t leastColumns = 256, leastRows = 64;

namespace {

/// A product with its own operands.
class Trial {
public:
  Trial(const Product &product, int64_t numThreads, int64_t numRanks) {
    state.setThreads(numThreads, numRanks);
    int64_t k = std::min(product.k, maxDepth);
    int64_t n = std::min(product.n, std::max(leastColumns, maxElementsOfB / k));
    double rows = std::min<double>(maxWork / (2.0 * n * k), product.m);
    int64_t m = std::min(product.m, std::max<int64_t>(leastRows, rows));
    args.dtype = TPRT_F32;
    args.batch0 = args.batch1 = 1;
    args.m = m;
    args.n = n;
    args.k = k;
    args.a_row = product.isAByColumns ? 1 : k;
    args.a_col = product.isAByColumns ? m : 1;
    args.b_row = product.isBByColumns ? 1 : n;
    args.b_col = product.isBByColumns ? k : 1;
    args.c_row = n;
    a = makeOperand(m * k);
    b = makeOperand(k * n);
    c = makeOperand(m * n);
    if (product.isWeight)
      state.setConstants(std::make_shared<ConstantOperands>(
          std::vector<ConstantBlock>{{{b.get(), k * n * sizeof(float)}}},
          INT64_MAX));
  }

  double time(GemmLibrary library) {
    auto choices = std::make_shared<GemmChoices>();
    choices->library = library;
    state.setChoices(choices);
    double start = getTime();
    gemm(args, {.a = a.get(), .b = b.get(), .c = c.get()}, state);
    return getTime() - start;
  }

private:
  /// The time in seconds. If there is only one thread, its CPU time, so that
  /// other processes don't count.
  double getTime() const {
    timespec time = {};
    ::clock_gettime(state.getThreads() == 1 ? CLOCK_THREAD_CPUTIME_ID
                                            : CLOCK_MONOTONIC,
                    &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
  }

  /// Avoids zeros and denormal numbers, which may change the time.
  static std::shared_ptr<std::byte> makeOperand(int64_t count) {
    std::shared_ptr<std::byte> data = allocateAligned(count * sizeof(float));
    std::fill_n(reinterpret_cast<float *>(data.get()), count, 0.5f);
    return data;
  }

  tprt_gemm_args args = {};
  std::shared_ptr<std::byte> a, b, c;
  GemmState state;
};

} // namespace

namespace {

/// The times of one library, ascending.
struct Times {
  std::vector<double> seconds;

  void add(double time) {
    seconds.insert(std::upper_bound(seconds.begin(), seconds.end(), time),
                   time);
  }
  double getBest() const { return seconds.front(); }
  /// Whether the best time has been reached twice, so it isn't an accident.
  bool areSettled() const {
    constexpr double spread = 1.05;
    return seconds.size() > 1 && seconds[1] <= spread * seconds[0];
  }
};

using Clock = std::chrono::steady_clock;

} // namespace

/// Measures the libraries in turns, so that disturbances affect all of them,
/// until their best times have been confirmed or the deadline is reached.
static GemmChoice choose(const Product &product, int64_t numThreads,
                         int64_t numRanks, Clock::time_point deadline) {
  constexpr int leastTurns = 2, mostTurns = 12;
  constexpr double chance = 1.5; // a library that takes longer is out
  Trial trial(product, numThreads, numRanks);
  std::map<GemmLibrary, Times> times;
  for (GemmLibrary library : allLibraries)
    if (getVersion(library)) {
      trial.time(library); // warms up, and packs B if it is a weight
      times[library].add(trial.time(library));
    }
  double best = INFINITY;
  auto isContender = [&](const Times &x) {
    return x.getBest() <= chance * best;
  };
  for (int turn = 1; turn < mostTurns && Clock::now() < deadline; ++turn) {
    bool isOver = turn >= leastTurns;
    for (auto &[library, own] : times)
      best = std::min(best, own.getBest());
    for (auto &[library, own] : times) {
      if (turn >= leastTurns && (!isContender(own) || own.areSettled()))
        continue;
      own.add(trial.time(library));
      isOver &= own.areSettled();
    }
    if (isOver)
      break;
  }

  GemmChoice choice{product, GemmLibrary::Tiles, {}};
  for (const auto &[library, own] : times)
    choice.seconds[library] = own.getBest();
  const Times &tiles = times[GemmLibrary::Tiles];
  double chosen = tiles.getBest() * (1 - leastGain);
  // If tiles were out, they weren't timed until they settled.
  bool areTilesKnown = tiles.areSettled() || !isContender(tiles);
  for (const auto &[library, own] : times)
    if (own.getBest() < chosen && own.areSettled() && areTilesKnown) {
      chosen = own.getBest();
      choice.library = library;
    }
  return choice;
}

static double getWork(const Product &product) {
  return 2.0 * product.m * product.n * product.k;
}

static bool hasMoreWork(const Product &x, const Product &y) {
  return std::tuple(getWork(x), x) > std::tuple(getWork(y), y);
}

/// The distinct products that are worth a choice, most work first.
static std::vector<Product> findProducts(const Manifest &manifest) {
  std::set<Product> found;
  for (const OpInfo &op : manifest.ops) {
    if (!op.product || op.dtype != Dtype::F32)
      continue;
    Product product = getProduct(*op.product, op.isWeight);
    if (product.m > 1 && product.n > 1 && getWork(product) >= minMeasuredWork)
      found.insert(product);
  }
  std::vector<Product> products(found.begin(), found.end());
  std::sort(products.begin(), products.end(), hasMoreWork);
  return products;
}

//===----------------------------------------------------------------------===//
// Choices as JSON
//===----------------------------------------------------------------------===//

static std::string getProcessor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.find(':') + 2, line.size()));
  utsname system = {};
  ::uname(&system);
  return system.machine;
}

/// The conditions that choices depend on besides the product.
static json getConditions(int numThreads) {
  json libraries = json::object();
  for (GemmLibrary library : allLibraries)
    if (std::optional<std::string> version = getVersion(library))
      libraries[std::string(toString(library))] = *version;
  return {{"processor", getProcessor()},
          {"threads", numThreads},
          {"libraries", libraries}};
}

static json toJson(const GemmChoice &choice) {
  const Product &product = choice.product;
  json seconds = json::object();
  for (auto [library, time] : choice.seconds)
    seconds[std::string(toString(library))] = time;
  return {{"m", product.m},
          {"n", product.n},
          {"k", product.k},
          {"a", product.isAByColumns ? "columns" : "rows"},
          {"b", product.isBByColumns ? "columns" : "rows"},
          {"weight", product.isWeight},
          {"library", toString(choice.library)},
          {"seconds", seconds}};
}

/// Throws json::exception or an input error if `object` isn't a choice.
static GemmChoice parseChoice(const json &object) {
  auto isByColumns = [&](const char *name) {
    std::string order = object.at(name);
    if (order != "rows" && order != "columns")
      throw inputError("'" + order + "' is neither 'rows' nor 'columns'");
    return order == "columns";
  };
  GemmChoice choice{{getInteger(object.at("m")), getInteger(object.at("n")),
                     getInteger(object.at("k")), isByColumns("a"),
                     isByColumns("b"), object.at("weight")},
                    GemmLibrary::Tiles,
                    {}};
  auto parseLibrary = [](const std::string &name) {
    if (std::optional<GemmLibrary> library = parseGemmLibrary(name))
      return *library;
    throw inputError("'" + name + "' isn't a known library");
  };
  choice.library = parseLibrary(object.at("library"));
  if (!getVersion(choice.library))
    throw inputError(std::string(toString(choice.library)) +
                     " isn't installed");
  for (const auto &[name, time] : object.at("seconds").items())
    choice.seconds[parseLibrary(name)] = time;
  return choice;
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

GemmChoices tprt::chooseGemms(const Manifest &manifest,
                              const GemmOptions &options, int numThreads,
                              bool mayMeasure) {
  GemmChoices choices;
  choices.library = options.library;
  choices.instructionSet = getInstructionSetName();
  if (options.library) {
    if (!getVersion(*options.library))
      throw inputError("products can't be computed by " +
                       std::string(toString(*options.library)) +
                       ": it isn't installed");
    return choices;
  }
  std::vector<Product> products = findProducts(manifest);
  if (products.empty() || options.file.empty())
    return choices;

  std::map<Product, GemmChoice> known;
  GemmChoiceFile file(options.file, getConditions(numThreads),
                      [&](const json &object) {
                        GemmChoice choice = parseChoice(object);
                        known[choice.product] = choice;
                      });
  choices.note = file.getNote();
  if (!file.isUsable())
    known.clear();
  std::erase_if(products, [&](const Product &product) {
    auto found = known.find(product);
    if (found == known.end())
      return false;
    choices.products.push_back(found->second);
    return true;
  });
  choices.file = options.file;
  if (products.empty())
    return choices;

  auto giveUp = [&](const std::string &why) {
    if (!choices.note.empty())
      choices.note += "; ";
    choices.note += why + ": tiles compute what it has no choice for";
    return choices;
  };
  if (std::string obstacle = file.findObstacle(mayMeasure); !obstacle.empty())
    return giveUp(obstacle);
  Clock::time_point deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(options.maxSeconds));
  std::vector<GemmChoice> measured;
  for (const Product &product : products) {
    measured.push_back(
        Clock::now() < deadline
            ? choose(product, numThreads, manifest.worldSize, deadline)
            : GemmChoice{product, GemmLibrary::Tiles, {}});
    known[product] = measured.back();
  }
  try {
    json products = json::array();
    for (const auto &[product, choice] : known)
      products.push_back(toJson(choice));
    file.write(std::move(products));
  } catch (const Error &error) {
    return giveUp(error.what());
  }
  choices.products.insert(choices.products.end(), measured.begin(),
                          measured.end());
  std::sort(choices.products.begin(), choices.products.end(),
            [](const GemmChoice &x, const GemmChoice &y) {
              return hasMoreWork(x.product, y.product);
            });
  return choices;
}
