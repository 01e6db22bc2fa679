//===- RunPrediction.cpp - The time that a run takes on each rank ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ranks of a class have clocks that show the same, since they compute the
// same, and wait in each collective for ranks of the same classes. So there is
// one clock for each class.
//
// On a machine with `overlap`, a rank computes while a collective that it has
// started goes on. The collectives whose outermost link is the same follow one
// another; each link has a clock of its own in each class.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Sharding/Cost/CostModel.h"
#include <map>
#include <tuple>

using namespace mlir;
using namespace mlir::tp;

double Prediction::getSeconds() const {
  double seconds = 0;
  for (const RankPrediction &rank : byClass)
    seconds = std::max(seconds, rank.getTotal());
  return seconds;
}

namespace {

/// Advances the clocks of all classes of ranks from collective to collective.
class RunPredictor {
public:
  RunPredictor(ArrayRef<func::FuncOp> programs, MeshOp mesh,
               const Machine &machine)
      : mesh(mesh), machine(machine), model(machine, mesh),
        prediction{{}, RankClasses(mesh), {}, {}, {}, {}} {
    prediction.classes.splitByProgram(programs);
    for (func::FuncOp program : programs)
      addProgram(program);
    findClasses();
  }

  FailureOr<Prediction> run() {
    size_t numClasses = prediction.classes.size();
    bool progress = true;
    while (progress) {
      progress = false;
      for (size_t i = 0; i < numClasses; ++i)
        while (next[i] < issued[programOf[i]].size() && step(i))
          progress = true;
    }
    if (failed(checkEnd()))
      return failure();
    for (size_t i = 0; i < numClasses; ++i)
      compute(i);
    for (auto [index, program] : llvm::enumerate(prediction.programs))
      for (Issued &collective : issued[index])
        if (!collective.isSent)
          addToModule(program, index, collective);
    return std::move(prediction);
  }

private:
  struct Issued {
    CollectiveOpInterface op;
    /// Its index in `Prediction::collectives`, unless it is sent.
    size_t id;
    bool isSent;
    /// Of a transfer: its number among those between the two stages.
    size_t number = 0;
    /// The number of those that do the same, and of their peers.
    unsigned kind = 0, peers = 0;
    /// Whether the ranks go on before it is over.
    bool isStarted = false;
  };
  /// What a rank computes before it waits for a collective that it has started,
  /// given by its index among these, or before the next collective.
  struct Stretch {
    double seconds = 0;
    std::optional<size_t> awaited;
  };
  /// Of a collective on the ranks of a class.
  struct CollectiveCost {
    double seconds;
    int64_t bytes;
    size_t link; ///< the outermost
  };

  void addProgram(func::FuncOp program) {
    ProgramPrediction &result = prediction.programs.emplace_back();
    result.program = program;
    if (auto ranks = program->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr))
      llvm::append_range(result.ranks, ranks.asArrayRef());
    else
      llvm::append_range(result.ranks,
                         llvm::seq<int64_t>(0, mesh.getNumRanks()));
    auto &list = issued.emplace_back();
    auto &computed = before.emplace_back(1, SmallVector<Stretch, 1>(1));
    // By start: the number of the collective among the started ones.
    DenseMap<Operation *, size_t> started;
    size_t numStarted = 0;
    // Programs of one stage issue the same collectives.
    auto [first, isFirst] =
        firstIds.try_emplace(program->getAttr(kStageAttr), numCollectives);
    size_t id = first->second;
    std::map<std::pair<int64_t, int64_t>, size_t> numTransfers;
    CollectiveInterner kinds;
    unsigned offset = numKinds;
    walkExecuted(result.program, [&](Operation *op) {
      if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
        auto transfer = dyn_cast<TransferOp>(op);
        Issued entry{collective, id, transfer && transfer.isSent()};
        if (transfer)
          entry.number = numTransfers[{transfer.getFrom(), transfer.getTo()}]++;
        if (!entry.isSent)
          numCollectives = std::max(numCollectives, ++id);
        auto [kind, isNew] = kinds.insert(collective);
        entry.kind = offset + kind;
        entry.peers = addPeers(collective);
        if (isNew) {
          ++numKinds;
          if (!entry.isSent)
            model.splitByCost(prediction.classes, collective, result.ranks);
        }
        if (auto start = dyn_cast<StartOp>(op->getParentOp());
            start && machine.overlap > 0 && !transfer) {
          entry.isStarted = true;
          started[start] = numStarted++;
        }
        list.push_back(entry);
        computed.push_back(SmallVector<Stretch, 1>(1));
        return;
      }
      if (auto wait = dyn_cast<WaitOp>(op)) {
        auto found = started.find(wait.getPending().getDefiningOp());
        if (found != started.end()) {
          computed.back().back().awaited = found->second;
          computed.back().emplace_back();
        }
        return;
      }
      OpWork work = getWork(op, machine.fusion);
      if (work.isFree && work.elements == 0)
        return;
      Cost cost{1, work.flops, work.bytes, model.getSeconds(work)};
      result.byOp[op->getName().getStringRef()] += cost;
      result.byModule[getFqn(op)] += cost;
      result.compute += cost;
      computed.back().back().seconds += cost.seconds;
    });
  }

  /// The number of the ranks that a rank waits for in `op`.
  unsigned addPeers(CollectiveOpInterface op) {
    Peers entry{op.getAxes(), {}};
    if (auto transfer = dyn_cast<TransferOp>(op.getOperation()))
      entry.positions = {static_cast<int64_t>(transfer.getFrom()),
                         static_cast<int64_t>(transfer.getTo())};
    const auto *found = llvm::find_if(peers, [&](const Peers &other) {
      return other.axes == entry.axes && other.positions == entry.positions;
    });
    unsigned number = found - peers.begin();
    if (found == peers.end())
      peers.push_back(std::move(entry));
    return number;
  }

  void findClasses() {
    RankClasses &classes = prediction.classes;
    classes.splitByPeers(peers);
    prediction.byClass.resize(classes.size());
    prediction.timelines.resize(classes.size());
    prediction.overlapped.resize(classes.size());
    prediction.collectives.assign(numCollectives,
                                  SmallVector<double>(classes.size(), 0));
    clock.assign(classes.size(), 0);
    busy.assign(classes.size(), SmallVector<double>(machine.links.size(), 0));
    next.assign(classes.size(), 0);
    arrivals.resize(classes.size());
    costs.resize(numKinds);
    for (auto &list : costs)
      list.resize(classes.size());
    SmallVector<unsigned> programOfRank(mesh.getNumRanks());
    for (auto [index, program] : llvm::enumerate(prediction.programs))
      for (int64_t rank : program.ranks)
        programOfRank[rank] = index;
    for (size_t i = 0; i < classes.size(); ++i) {
      int64_t rank = classes.getFirst(i);
      programOf.push_back(programOfRank[rank]);
      auto &ofClass = met.emplace_back();
      for (const Peers &each : peers) {
        SmallVector<int64_t> group = mesh.getGroupOf(rank, each.axes.getAxes());
        auto &list = ofClass.emplace_back();
        for (int64_t position : each.positions)
          list.push_back(classes.getClass(group[position]));
        if (!each.positions.empty())
          continue;
        for (int64_t member : group)
          list.push_back(classes.getClass(member));
        llvm::sort(list);
        list.erase(llvm::unique(list), list.end());
      }
    }
  }

  CollectiveCost getCost(const Issued &collective, unsigned index) {
    auto &known = costs[collective.kind][index];
    if (!known) {
      int64_t rank = prediction.classes.getFirst(index);
      CollectiveOpInterface op = collective.op;
      known = {model.getSeconds(op, rank), op.getReceivedBytes(rank, mesh),
               model.getOutermostLink(op, rank)};
    }
    return *known;
  }

  /// Computes up to the next collective.
  void compute(unsigned index) {
    for (const Stretch &stretch : before[programOf[index]][next[index]]) {
      clock[index] += stretch.seconds;
      prediction.byClass[index].compute += stretch.seconds;
      if (!stretch.awaited)
        continue;
      const CollectiveTimes &times =
          prediction.overlapped[index][*stretch.awaited];
      if (times.end > clock[index])
        await(index, times);
    }
  }

  /// Lets a class wait for other ranks until `start`, then for a link until
  /// `end`.
  void block(unsigned index, size_t id, double start, double end) {
    RankPrediction &rank = prediction.byClass[index];
    rank.waiting += start - clock[index];
    rank.collectives += end - start;
    prediction.timelines[index].push_back({id, clock[index], start, end});
    clock[index] = end;
  }

  /// Lets a class wait for the end of a collective. Until its arrival, the link
  /// is used by those before it.
  void await(unsigned index, const CollectiveTimes &times) {
    if (clock[index] < times.arrival)
      block(index, times.id, clock[index], times.arrival);
    block(index, times.id, std::max(clock[index], times.start), times.end);
  }

  /// Takes part in the next collective of a class. Returns whether it is over.
  bool step(unsigned index) {
    Issued &collective = issued[programOf[index]][next[index]];
    SmallVector<double> &arrived = arrivals[index];
    if (arrived.size() == next[index]) {
      compute(index);
      // On the link, it follows those that were started before.
      double free = clock[index];
      if (machine.overlap > 0)
        free = std::max(free, busy[index][getCost(collective, index).link]);
      arrived.push_back(free);
    }
    ArrayRef<unsigned> waited = met[index][collective.peers];
    double start = arrived[next[index]];
    if (isa<TransferOp>(collective.op.getOperation())) {
      auto key = std::make_tuple(waited[0], waited[1], collective.number);
      // The sender goes on at once.
      if (collective.isSent) {
        sent[key] = {start, collective.op};
        ++next[index];
        return true;
      }
      auto found = sent.find(key);
      if (found == sent.end())
        return false;
      start = std::max(start, found->second.start);
      sent.erase(found);
    } else {
      for (unsigned other : waited) {
        if (arrivals[other].size() <= next[index])
          return false;
        start = std::max(start, arrivals[other][next[index]]);
      }
    }
    CollectiveCost cost = getCost(collective, index);
    prediction.collectives[collective.id][index] = cost.seconds;
    CollectiveTimes times{collective.id, arrived[next[index]], start,
                          start + cost.seconds};
    busy[index][cost.link] = times.end;
    if (collective.isStarted) {
      prediction.overlapped[index].push_back(times);
      double slowed = (1 - machine.overlap) * cost.seconds;
      if (slowed > 0)
        block(index, times.id, clock[index], clock[index] + slowed);
    } else {
      await(index, times);
    }
    ++next[index];
    return true;
  }

  /// Whether each class has come to its end, and everything sent has arrived.
  LogicalResult checkEnd() {
    std::optional<InFlightDiagnostic> error;
    for (size_t i = 0; i < next.size(); ++i) {
      SmallVector<Issued> &list = issued[programOf[i]];
      if (next[i] == list.size())
        continue;
      CollectiveOpInterface op = list[next[i]].op;
      std::string wait = "rank " +
                         std::to_string(prediction.classes.getFirst(i)) +
                         " waits here for rank " +
                         std::to_string(getMissing(i, list[next[i]]));
      if (error)
        error->attachNote(op.getLoc()) << wait;
      else
        error.emplace(op.emitError("the program has no predicted time, because "
                                   "its ranks would wait forever: ")
                      << wait);
    }
    if (error)
      return std::move(*error);
    if (sent.empty())
      return success();
    auto [from, to, number] = sent.begin()->first;
    return sent.begin()->second.op.emitError(
               "the program has no predicted time: rank ")
           << prediction.classes.getFirst(from)
           << " sends a value here, and rank "
           << prediction.classes.getFirst(to) << " doesn't receive it";
  }

  /// A rank that hasn't arrived at the collective which the ranks of class
  /// `index` wait in.
  int64_t getMissing(unsigned index, Issued &collective) {
    ArrayRef<unsigned> waited = met[index][collective.peers];
    if (isa<TransferOp>(collective.op.getOperation()))
      return prediction.classes.getFirst(waited[0]);
    const auto *missing = llvm::find_if(waited, [&](unsigned other) {
      return arrivals[other].size() <= next[index];
    });
    return prediction.classes.getFirst(*missing);
  }

  void addToModule(ProgramPrediction &program, size_t number,
                   Issued &collective) {
    double slowest = 0;
    int64_t most = 0;
    for (auto [index, other] : llvm::enumerate(programOf)) {
      if (other != number)
        continue;
      CollectiveCost cost = getCost(collective, index);
      slowest = std::max(slowest, cost.seconds);
      most = std::max(most, cost.bytes);
    }
    program.collectivesByModule[collective.op.getOriginFqn()] +=
        Cost{1, 0, most, slowest};
  }

  MeshOp mesh;
  const Machine &machine;
  CostModel model;
  Prediction prediction;
  size_t numCollectives = 0;
  unsigned numKinds = 0;
  /// By program: the collectives, and what is computed before each and after
  /// the last one.
  SmallVector<SmallVector<Issued>> issued;
  SmallVector<SmallVector<SmallVector<Stretch, 1>>> before;
  /// By stage of a pipeline: the index of its first collective.
  DenseMap<Attribute, size_t> firstIds;
  SmallVector<Peers> peers;
  /// By class.
  SmallVector<unsigned> programOf;
  SmallVector<double> clock;
  /// By class and link: when its last collective so far is over.
  SmallVector<SmallVector<double>> busy;
  /// By class: when it has arrived at each of its collectives so far, and the
  /// one that it takes part in next.
  SmallVector<SmallVector<double>> arrivals;
  SmallVector<size_t> next;
  /// By class, then as `peers`: the classes of the peers.
  SmallVector<SmallVector<SmallVector<unsigned>>> met;
  /// By kind of collective, then by class.
  SmallVector<SmallVector<std::optional<CollectiveCost>>> costs;
  /// The values that a class has sent to another, and that haven't been received;
  /// the third is their number.
  struct Sent {
    double start;
    CollectiveOpInterface op;
  };
  std::map<std::tuple<unsigned, unsigned, size_t>, Sent> sent;
};

} // namespace

FailureOr<Prediction> tp::predict(ArrayRef<func::FuncOp> programs, MeshOp mesh,
                                  const Machine &machine) {
  return RunPredictor(programs, mesh, machine).run();
}
