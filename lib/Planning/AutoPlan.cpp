//===- AutoPlan.cpp - A plan by predicted time and memory -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice has several parts. What each mesh dimension is used for is
// enumerated, as far as bounds of the time don't rule it out. The placements of
// parameters for one such use are the optimum of a sum over the program
// (PlacementSearch). Norms may be split along the sequence. Each plan that
// results is compiled and predicted as any other plan, so the comparison doesn't
// depend on the model of the search. Of plans that need too much memory, blocks
// may be computed again for the backward pass.
//
//===----------------------------------------------------------------------===//

#include "PlacementSearch.h"
#include "PlanCost.h"
#include "PlanEntries.h"
#include "Recomputation.h"
#include "TimeBound.h"
#include "mlir/IR/Diagnostics.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Planning/Passes.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/OutputFile.h"
#include "tp/Training/TrainingFile.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace mlir::tp {
#define GEN_PASS_DEF_AUTOPLAN
#include "tp/Planning/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::planning;

/// The time of a prediction grows with the ranks.
static constexpr int64_t kMaxRanks = 4096;

/// The most ranks that split parameters for which placements are searched for.
/// More ranks get the entries that were tried for at most as many, if any were.
static constexpr int64_t kMaxSearchedRanks = 8;

/// An entry is left out, or added, if that saves this share of the time.
static constexpr double kWorthwhile = 0.001;

/// The prices of holding a byte of a parameter, in bytes that a rank receives.
/// Each is meant to give a plan that needs less memory than the one before. It
/// may be faster, too: a plan says how parameters are split, and what is
/// computed with whole ones is left to the propagation, which prefers not to
/// communicate.
static constexpr double kHoldingPrices[] = {0, 1e-3, 1, 1e3};

namespace {

struct Candidate {
  MeshUse use;
  std::vector<plan::PlanEntry> entries;
  Recomputation recomputation;
  std::string text;
  PlanCost cost;

  std::string describe() const;
};

class AutoPlanPass final : public tp::impl::AutoPlanBase<AutoPlanPass> {
public:
  using AutoPlanBase::AutoPlanBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run();
  FailureOr<std::vector<MeshUse>> getUses();
  void tryUse(const MeshUse &use);
  /// Makes the plan with `entries` a candidate, if it can be compiled, and
  /// unless it was one before. Returns the index of a new one.
  std::optional<size_t> tryPlan(const MeshUse &use,
                                std::vector<plan::PlanEntry> entries,
                                const Recomputation &recomputation = {});
  void tryUses(std::vector<MeshUse> uses);
  bool tryEntriesOf(const MeshUse &source, const MeshUse &use);
  bool tryEntriesOfFewerRanks(const MeshUse &use);
  void improve(const MeshUse &use);
  void trySequence(const MeshUse &use);
  void tryRecomputations();
  LogicalResult readTraining();
  bool isBetter(const Candidate &a, const Candidate &b) const;
  bool fits(const Candidate &candidate) const {
    return candidate.cost.memoryBytes <= limit;
  }
  /// The best candidate among those whose use is `use`, or among all.
  std::optional<size_t> findBest(const MeshUse *use = nullptr) const;
  bool saves(const Candidate &a, const Candidate &b) const;
  LogicalResult reportNone();
  LogicalResult write(ArrayRef<const Candidate *> ranked);
  std::string describe(const PlanCost &cost) const;

  std::optional<Machine> description;
  int64_t limit = 0;
  TrainingText training;
  /// Those that may be chosen; the first one keeps everything.
  std::vector<Recomputation> recomputations;
  /// No plan for these meshes takes fewer seconds.
  double lowerBound = 0;
  /// In the order in which they were tried.
  std::vector<Candidate> candidates;
  llvm::StringSet<> tried;
  /// The first error about a plan that can't be compiled.
  std::string firstError;
  LocationAttr firstErrorLoc;
};

} // namespace

FailureOr<std::vector<MeshUse>> AutoPlanPass::getUses() {
  ModuleOp model = getOperation();
  auto reportTooLarge = [&]() {
    return model.emitError("plans are searched for at most ")
           << kMaxRanks << " ranks";
  };
  if (mesh.empty() == (ranks == 0))
    return model.emitError("tp-auto-plan needs either the option 'ranks', or "
                           "'mesh', as in mesh=dp=2,tp=4");
  if (!mesh.empty()) {
    std::string axes, styles;
    int64_t numRanks = 1;
    for (StringRef axis : llvm::split(mesh, ',')) {
      auto [name, size] = axis.split('=');
      int64_t number;
      if (name.empty() || size.getAsInteger(10, number) || number < 1)
        return model.emitError("the option 'mesh' needs NAME=SIZE for each "
                               "dimension, as in mesh=dp=2,tp=4; found '")
               << axis << "'";
      if (number > kMaxRanks / numRanks)
        return reportTooLarge();
      numRanks *= number;
      StringRef comma = axes.empty() ? "" : ", ";
      axes += (comma + name + ": " + size).str();
      styles += (comma + name + ": ddp").str();
    }
    plan::PlanFile file;
    if (failed(plan::parsePlan("mesh: {" + axes + "}\ndata_parallel: {" +
                                   styles + "}\n",
                               "mesh", model.getContext(), file)))
      return failure();
    return getMeshUses(file.mesh);
  }
  if (ranks < 1)
    return model.emitError("the option 'ranks' must be at least 1, not ")
           << int64_t(ranks);
  if (ranks > kMaxRanks)
    return reportTooLarge();
  std::vector<MeshUse> uses;
  for (int64_t data = 1; data <= ranks; ++data) {
    if (ranks % data)
      continue;
    std::vector<plan::MeshAxis> axes;
    if (data > 1 || ranks == 1)
      axes.push_back({"dp", data});
    if (data < ranks)
      axes.push_back({"tp", ranks / data});
    for (MeshUse &use : getMeshUses(axes))
      if (llvm::all_of(llvm::zip_equal(axes, use.roles), [](auto axis) {
            auto &[described, role] = axis;
            return (described.name == "tp") == (role == AxisRole::Tensor);
          }))
        uses.push_back(std::move(use));
  }
  return uses;
}

std::string Candidate::describe() const {
  std::string text = use.describe();
  if (llvm::any_of(entries, [](const plan::PlanEntry &entry) {
        return entry.style == "SequenceParallel";
      }))
    text += ", sequence parallel";
  if (!recomputation.isNone())
    text += recomputation.keep.empty() ? ", full recomputation"
                                       : ", selective recomputation";
  return text;
}

LogicalResult AutoPlanPass::readTraining() {
  recomputations = {{}};
  if (train.empty()) {
    if (trainFile.empty())
      return success();
    return getOperation().emitError(
        "the option 'train-file' needs the option 'train'");
  }
  auto buffer = readInput(train);
  if (!buffer)
    return emitInputError(&getContext(), train, "training file",
                          buffer.takeError());
  training = {train, (*buffer)->getBuffer().str()};
  FailureOr<TrainingConfig> config =
      parseTrainingFile(training.text, train, &getContext());
  if (failed(config))
    return failure();
  // What the file says is chosen already.
  if (config->checkpoint.empty() && config->keep.empty())
    recomputations = getRecomputations(getOperation());
  return success();
}

std::optional<size_t>
AutoPlanPass::tryPlan(const MeshUse &use, std::vector<plan::PlanEntry> entries,
                      const Recomputation &recomputation) {
  std::string text = printPlan(use, entries);
  if (!tried.insert(text + recomputation.print()).second)
    return std::nullopt;
  TrainingText changed = {training.path, addKeys(training.text, recomputation)};
  FailureOr<PlanCost> cost =
      predictPlan(getOperation(), text, changed, machine);
  if (failed(cost))
    return std::nullopt;
  candidates.push_back(
      {use, std::move(entries), recomputation, std::move(text), *cost});
  return candidates.size() - 1;
}

/// Plans that fit come first; of those that don't, the smaller ones. Then come
/// faster ones. Of equally fast ones, those about which lint has nothing to say.
bool AutoPlanPass::isBetter(const Candidate &a, const Candidate &b) const {
  auto key = [&](const Candidate &candidate) {
    const PlanCost &cost = candidate.cost;
    return std::tuple(std::max<int64_t>(0, cost.memoryBytes - limit),
                      cost.seconds, cost.findings, cost.memoryBytes);
  };
  return key(a) < key(b);
}

std::optional<size_t> AutoPlanPass::findBest(const MeshUse *use) const {
  std::optional<size_t> best;
  for (auto [index, candidate] : llvm::enumerate(candidates))
    if ((!use || candidate.use.describe() == use->describe()) &&
        (!best || isBetter(candidate, candidates[*best])))
      best = index;
  return best;
}

/// Tries the entries of two candidates for `source`: of the fastest one, and of
/// the one that needs the least memory. Returns whether there are any.
bool AutoPlanPass::tryEntriesOf(const MeshUse &source, const MeshUse &use) {
  std::optional<size_t> fastest, smallest;
  for (auto [index, candidate] : llvm::enumerate(candidates)) {
    if (candidate.use.describe() != source.describe())
      continue;
    const PlanCost &cost = candidate.cost;
    if (!fastest || cost.seconds < candidates[*fastest].cost.seconds)
      fastest = index;
    if (!smallest || cost.memoryBytes < candidates[*smallest].cost.memoryBytes)
      smallest = index;
  }
  if (!fastest)
    return false;
  // Candidates move when one is added.
  std::vector<plan::PlanEntry> small = candidates[*smallest].entries;
  tryPlan(use, candidates[*fastest].entries);
  tryPlan(use, std::move(small));
  return true;
}

/// The number of ranks that split parameters.
static int64_t getTensorSize(const MeshUse &use) {
  int64_t size = 1;
  for (unsigned axis : use.getTensorAxes())
    size *= use.mesh[axis].size;
  return size;
}

/// Tries the entries of all candidates with the most ranks among those with few
/// enough to be searched. Returns whether there are any.
bool AutoPlanPass::tryEntriesOfFewerRanks(const MeshUse &use) {
  int64_t most = 1;
  std::vector<std::vector<plan::PlanEntry>> found;
  for (const Candidate &candidate : candidates) {
    int64_t size = getTensorSize(candidate.use);
    if (size > kMaxSearchedRanks || size < most || size == 1 ||
        candidate.use.getTensorAxes().size() != use.getTensorAxes().size())
      continue;
    if (size > most)
      found.clear();
    most = size;
    found.push_back(candidate.entries);
  }
  for (std::vector<plan::PlanEntry> &entries : found)
    tryPlan(use, std::move(entries));
  return !found.empty();
}

void AutoPlanPass::tryUse(const MeshUse &use) {
  if (use.getTensorAxes().empty()) {
    tryPlan(use, {});
    return;
  }
  // While they are used, parameters are whole over the dimensions that split the
  // batch, whether they are replicated there or gathered. So what is good with
  // DDP is good with FSDP.
  MeshUse replicated = use;
  llvm::replace(replicated.roles, AxisRole::FSDP, AxisRole::DDP);
  if (replicated.roles != use.roles && tryEntriesOf(replicated, use))
    return;
  if (getTensorSize(use) > kMaxSearchedRanks && tryEntriesOfFewerRanks(use))
    return;
  ParameterPlacements before;
  for (double holding : kHoldingPrices) {
    auto placements = searchPlacements(getOperation(), use, *description,
                                       holding, searchBudget);
    if (failed(placements))
      break;
    if (llvm::equal(*placements, before))
      continue;
    for (StyledModules styled :
         {StyledModules::All, StyledModules::Numbered, StyledModules::None})
      if (auto entries = makeEntries(getOperation(), use, *placements, styled);
          !entries.empty())
        tryPlan(use, std::move(entries));
    before = std::move(*placements);
  }
  trySequence(use);
  improve(use);
}

/// Splits norms along the sequence in the best plan for `use`.
void AutoPlanPass::trySequence(const MeshUse &use) {
  std::optional<size_t> best = findBest(&use);
  if (!best)
    return;
  for (bool declares : {true, false})
    if (auto entries = splitSequence(getOperation(), use,
                                     candidates[*best].entries, declares);
        !entries.empty())
      tryPlan(use, std::move(entries));
}

/// Tries the uses with few ranks that split parameters first. A use whose bound
/// of the time exceeds the time of a plan that fits isn't tried.
void AutoPlanPass::tryUses(std::vector<MeshUse> uses) {
  TimeBound bound(getOperation(), training, machine, *description);
  llvm::stable_sort(uses, [](const MeshUse &a, const MeshUse &b) {
    return getTensorSize(a) < getTensorSize(b);
  });
  lowerBound = std::numeric_limits<double>::infinity();
  std::optional<size_t> best;
  for (const MeshUse &use : uses) {
    double least = bound.get(use);
    lowerBound = std::min(lowerBound, least);
    if (best && fits(candidates[*best]) &&
        candidates[*best].cost.seconds <= least)
      continue;
    tryUse(use);
    best = findBest();
  }
}

/// For each use of the mesh, computes blocks again in the fastest and in the
/// smallest plan, if these don't fit. Computing more takes no less time, so
/// plans that are slower than one that fits aren't tried.
void AutoPlanPass::tryRecomputations() {
  if (recomputations.size() == 1)
    return;
  SmallVector<size_t> order;
  llvm::StringMap<std::pair<size_t, size_t>> byUse; // fastest and smallest
  for (auto [index, candidate] : llvm::enumerate(candidates)) {
    auto [it, isNew] =
        byUse.try_emplace(candidate.use.describe(), index, index);
    auto &[fastest, smallest] = it->second;
    if (candidate.cost.seconds < candidates[fastest].cost.seconds)
      fastest = index;
    if (candidate.cost.memoryBytes < candidates[smallest].cost.memoryBytes)
      smallest = index;
  }
  for (auto [index, candidate] : llvm::enumerate(candidates)) {
    auto [fastest, smallest] = byUse.lookup(candidate.use.describe());
    if (!fits(candidate) && (index == fastest || index == smallest))
      order.push_back(index);
  }
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return candidates[a].cost.seconds < candidates[b].cost.seconds;
  });
  for (size_t index : order) {
    size_t best = *findBest();
    if (fits(candidates[best]) &&
        candidates[best].cost.seconds <= candidates[index].cost.seconds)
      return;
    for (const Recomputation &recomputation :
         ArrayRef(recomputations).drop_front()) {
      MeshUse use = candidates[index].use;
      std::optional<size_t> smaller =
          tryPlan(use, candidates[index].entries, recomputation);
      if (smaller && fits(candidates[*smaller]))
        break;
    }
  }
}

/// Whether `a` fits, and is worthwhile instead of `b`.
bool AutoPlanPass::saves(const Candidate &a, const Candidate &b) const {
  return a.cost.memoryBytes <= limit &&
         a.cost.seconds < (1 - kWorthwhile) * b.cost.seconds;
}

/// Leaves out the entries of the best plan for `use` that cost more than they
/// save. The search can't see all of them, since its costs differ from those of
/// a compiled plan.
void AutoPlanPass::improve(const MeshUse &use) {
  std::optional<size_t> best = findBest(&use);
  if (!best)
    return;
  for (size_t i = 0; i < candidates[*best].entries.size();) {
    std::vector<plan::PlanEntry> fewer = candidates[*best].entries;
    fewer.erase(fewer.begin() + i);
    std::optional<size_t> other;
    if (!fewer.empty())
      other = tryPlan(use, std::move(fewer));
    if (other && saves(candidates[*other], candidates[*best]))
      best = other;
    else
      ++i;
  }
}

std::string AutoPlanPass::describe(const PlanCost &cost) const {
  return llvm::formatv("{0:F3} ms, {1} bytes per rank, {2} collective{3}, "
                       "{4} bytes received by all ranks",
                       cost.seconds * 1e3, cost.memoryBytes, cost.collectives,
                       cost.collectives == 1 ? "" : "s", cost.receivedBytes);
}

LogicalResult AutoPlanPass::reportNone() {
  const Candidate *least = nullptr;
  for (const Candidate &candidate : candidates)
    if (!least || candidate.cost.memoryBytes < least->cost.memoryBytes)
      least = &candidate;
  if (!least) {
    if (firstError.empty())
      return getOperation().emitError(
          "no plan splits anything: the model has no parameter with two "
          "dimensions that the ranks could split, and no batch");
    InFlightDiagnostic error =
        getOperation().emitError("no plan can be compiled: ");
    error << firstError;
    error.attachNote(Location(firstErrorLoc)) << "the first error is here";
    return error;
  }
  return getOperation().emitError("no plan fits: the memory limit is ")
         << limit << " bytes per rank, and the plan that needs the least ("
         << least->describe() << ") needs " << least->cost.memoryBytes
         << "; the largest value there is " << least->cost.largest;
}

/// The first `count` of `ranked` that aren't worse than an earlier one with the
/// same description.
static SmallVector<const Candidate *>
selectDistinct(ArrayRef<const Candidate *> ranked, size_t count) {
  SmallVector<const Candidate *> selected;
  llvm::StringMap<int64_t> leastMemory;
  auto isListed = [&](const Candidate &candidate) {
    return llvm::any_of(selected, [&](const Candidate *other) {
      return candidate.cost.seconds == other->cost.seconds &&
             candidate.cost.memoryBytes == other->cost.memoryBytes;
    });
  };
  for (const Candidate *candidate : ranked) {
    int64_t memory = candidate->cost.memoryBytes;
    auto [it, isNew] = leastMemory.try_emplace(candidate->describe(), memory);
    if (selected.size() == count || (!isNew && memory >= it->second) ||
        isListed(*candidate))
      continue;
    it->second = memory;
    selected.push_back(candidate);
  }
  return selected;
}

LogicalResult AutoPlanPass::run() {
  ModuleOp model = getOperation();
  if (failed(checkHasNoPlan(model)))
    return failure();
  if (machine.empty())
    return model.emitError("tp-auto-plan needs the option 'machine'");
  FailureOr<Machine> read = readMachine(machine, &getContext());
  FailureOr<std::vector<MeshUse>> uses = getUses();
  if (failed(read) || failed(uses) || failed(checkSizes(model)) ||
      failed(readTraining()))
    return failure();
  description = std::move(*read);
  limit = memoryLimit ? std::min<uint64_t>(memoryLimit,
                                           std::numeric_limits<int64_t>::max())
                      : description->memoryCapacity;
  {
    // That one use of the mesh isn't possible is no error.
    ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
          firstError.empty()) {
        firstError = diagnostic.str();
        firstErrorLoc = diagnostic.getLocation();
      }
      return success();
    });
    tryUses(std::move(*uses));
    tryRecomputations();
  }
  SmallVector<const Candidate *> ranked;
  for (const Candidate &candidate : candidates)
    if (candidate.cost.memoryBytes <= limit)
      ranked.push_back(&candidate);
  if (ranked.empty())
    return reportNone();
  // Of equally good plans, the first one has styles.
  llvm::stable_sort(ranked, [&](const Candidate *a, const Candidate *b) {
    return isBetter(*a, *b);
  });
  return write(selectDistinct(ranked, size_t(1) + alternatives));
}

static llvm::json::Object toJSON(const plan::PlanEntry &entry) {
  llvm::json::Object object{{"pattern", entry.pattern}};
  if (!entry.direct.empty()) {
    llvm::json::Array placements;
    for (const plan::Placement &placement : entry.direct)
      placements.push_back(placement.str());
    object["placements"] = std::move(placements);
    return object;
  }
  llvm::json::Object arguments;
  for (const plan::PlanArgument &argument : entry.arguments)
    arguments[argument.name] = argument.value.text;
  object["style"] = entry.style;
  object["arguments"] = std::move(arguments);
  return object;
}

static llvm::json::Object toJSON(const Candidate &candidate) {
  llvm::json::Array axes, entries;
  for (auto [axis, role] :
       llvm::zip_equal(candidate.use.mesh, candidate.use.roles))
    axes.push_back(llvm::json::Object{
        {"name", axis.name}, {"size", axis.size}, {"role", getName(role)}});
  for (const plan::PlanEntry &entry : candidate.entries)
    entries.push_back(toJSON(entry));
  llvm::json::Object object = toJSON(candidate.cost);
  object["plan"] = candidate.text;
  object["axes"] = std::move(axes);
  object["entries"] = std::move(entries);
  object["checkpoint"] = candidate.recomputation.checkpoint;
  object["keep"] = candidate.recomputation.keep;
  return object;
}

LogicalResult AutoPlanPass::write(ArrayRef<const Candidate *> ranked) {
  const Candidate &best = *ranked.front();
  std::string name = description->name;
  llvm::replace(name, '\n', ' ');
  std::string text = "# tp-auto-plan, predicted for " + name + ": " +
                     describe(best.cost) + "\n";
  double least = std::min(lowerBound, best.cost.seconds);
  text += llvm::formatv("# lower bound of all plans: {0:F3} ms\n", least * 1e3);
  if (!best.recomputation.isNone()) {
    text += "# the training file also needs:\n";
    SmallVector<StringRef> lines;
    std::string keys = addKeys("", best.recomputation);
    StringRef(keys).trim().split(lines, '\n');
    for (StringRef line : lines)
      text += ("# " + line + "\n").str();
  }
  text += best.text;
  llvm::json::Array others;
  if (ranked.size() > 1)
    text += "# alternatives:\n";
  for (const Candidate *other : ranked.drop_front()) {
    text += "# " + other->describe() + ": " + describe(other->cost) + "\n";
    others.push_back(toJSON(*other));
  }
  auto writeTo = [&](StringRef path, StringRef content) -> LogicalResult {
    if (llvm::Error error = writeFile(path, content))
      return getOperation().emitError() << llvm::toString(std::move(error));
    return success();
  };
  if (file.empty())
    llvm::outs() << text;
  else if (failed(writeTo(file, text)))
    return failure();
  if (!trainFile.empty() &&
      failed(writeTo(trainFile, addKeys(training.text, best.recomputation))))
    return failure();
  if (report.empty())
    return success();
  llvm::json::Object object = toJSON(best);
  object["schema"] = 1;
  object["machine"] = description->name;
  object["memory_limit"] = limit;
  object["lower_bound"] = least;
  object["alternatives"] = std::move(others);
  return writeTo(
      report,
      llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object))).str());
}
