//===- VerifyTransfers.cpp - Transfers between the stages of a pipeline ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ranks of a stage run alike, which tp-verify-collectives has proven, and
// their other collectives are among themselves. So stages can only wait for
// each other in transfers. A transfer is over when both of its stages have
// started it. This doesn't depend on how fast a stage is: if one order of steps
// gets all stages to their ends, every order does. The proof finds one.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Sharding/Uniformity.h"
#include "tp/Transforms/Utils.h"
#include <array>
#include <map>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

/// A start of a transfer, or the wait for it.
struct Event {
  TransferOp op;
  bool isWait;
  /// Its number among those from the same stage to the same stage.
  size_t number;
};

using Channel = std::pair<int64_t, int64_t>;

Channel getChannel(TransferOp op) {
  return {static_cast<int64_t>(op.getFrom()), static_cast<int64_t>(op.getTo())};
}

class TransfersVerifier {
public:
  TransfersVerifier(MeshOp mesh, PipelineOp pipeline)
      : mesh(mesh), pipeline(pipeline),
        uniformity(pipeline->getParentOfType<ModuleOp>(), mesh) {}

  LogicalResult verify(ArrayRef<func::FuncOp> programs) {
    byRank = programs;
    axis = AxisRefAttr::get(mesh.getContext(), pipeline.getAxis());
    numStages = mesh.getAxisSize(axis);
    events.resize(numStages);
    // Of each stage, any program: the others have the same transfers.
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      int64_t stage = mesh.getIndexAlong(rank, axis);
      if (failed(visited.insert(byRank[rank]).second ? collect(byRank[rank])
                                                     : success()))
        return failure();
      if (events[stage].empty())
        events[stage] = found[byRank[rank]];
    }
    if (failed(match()))
      return failure();
    return simulate();
  }

private:
  /// Finds the events of a program, and checks that its other collectives stay
  /// within the stage.
  LogicalResult collect(func::FuncOp program) {
    std::vector<Event> &list = found[program];
    std::map<Channel, size_t> counts;
    DenseMap<Operation *, size_t> numbers;
    WalkResult walked = program.walk([&](CollectiveOpInterface op) {
      auto transfer = dyn_cast<TransferOp>(op.getOperation());
      Operation *outer = isa<StartOp>(op->getParentOp()) ? op->getParentOp()
                                                         : op.getOperation();
      if (!transfer) {
        decidesAnything |= outer->getParentOp() != program;
        if (llvm::none_of(op.getAxes().getAxes(), [&](AxisRefAttr other) {
              return other.getName() == axis.getName();
            }))
          return WalkResult::advance();
        op.emitError("'") << op->getName() << "' is over '" << axis.getName()
                          << "', but the ranks along it run different stages "
                             "of the pipeline; only 'tp.transfer' can be";
        return WalkResult::interrupt();
      }
      if (outer->getParentOp() != program) {
        op.emitError("can't prove that the other stage takes part in a "
                     "transfer in a branch or loop");
        return WalkResult::interrupt();
      }
      numbers[outer] = counts[getChannel(transfer)]++;
      return WalkResult::advance();
    });
    if (walked.wasInterrupted() || failed(checkCalls(program)))
      return failure();
    for (Operation &op : program.getBody().front()) {
      if (auto transfer = dyn_cast<TransferOp>(op)) {
        list.push_back({transfer, false, numbers[&op]});
        list.push_back({transfer, true, numbers[&op]});
      } else if (auto start = dyn_cast<StartOp>(op)) {
        if (auto transfer =
                dyn_cast<TransferOp>(start.getCollective().getOperation()))
          list.push_back({transfer, false, numbers[&op]});
      } else if (auto wait = dyn_cast<WaitOp>(op)) {
        auto start = wait.getPending().getDefiningOp<StartOp>();
        auto transfer =
            start ? dyn_cast<TransferOp>(start.getCollective().getOperation())
                  : TransferOp();
        if (transfer)
          list.push_back({transfer, true, numbers[start]});
      }
    }
    return success();
  }

  /// Fails if a collective is in a function that `program` calls.
  LogicalResult checkCalls(func::FuncOp program) {
    WalkResult walked = program.walk([&](CallOpInterface call) {
      Operation *callee = call.resolveCallableInTable(&symbols);
      if (!callee || !callee
                          ->walk([](CollectiveOpInterface) {
                            return WalkResult::interrupt();
                          })
                          .wasInterrupted())
        return WalkResult::advance();
      call.emitError("calls a function with collectives, in which transfers "
                     "between stages aren't checked; inline the call first");
      return WalkResult::interrupt();
    });
    return failure(walked.wasInterrupted());
  }

  /// The transfers of `rank`'s program over `channel`.
  SmallVector<TransferOp> getTransfers(int64_t rank, Channel channel) {
    SmallVector<TransferOp> transfers;
    for (Event &event : found[byRank[rank]])
      if (!event.isWait && getChannel(event.op) == channel)
        transfers.push_back(event.op);
    return transfers;
  }

  /// Whether what each rank sends is what its partner receives.
  LogicalResult match() {
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      int64_t from = mesh.getIndexAlong(rank, axis);
      SmallVector<int64_t> group = mesh.getGroupOf(rank, axis);
      for (int64_t to = 0; to < numStages; ++to)
        if (to != from && failed(match({from, to}, rank, group[to])))
          return failure();
    }
    return success();
  }

  LogicalResult match(Channel channel, int64_t sender, int64_t receiver) {
    SmallVector<TransferOp> sent = getTransfers(sender, channel);
    SmallVector<TransferOp> received = getTransfers(receiver, channel);
    if (sent.size() != received.size()) {
      bool sendsMore = sent.size() > received.size();
      TransferOp surplus =
          sendsMore ? sent[received.size()] : received[sent.size()];
      InFlightDiagnostic diagnostic =
          surplus.emitError()
          << "rank " << sender << " sends " << sent.size() << " values to rank "
          << receiver << ", which receives " << received.size();
      func::FuncOp other = byRank[sendsMore ? receiver : sender];
      diagnostic.attachNote(other.getLoc()) << "the other program is here";
      return diagnostic;
    }
    for (auto [a, b] : llvm::zip(sent, received)) {
      auto fail = [&](TransferOp at, TransferOp other) {
        InFlightDiagnostic diagnostic = at.emitError();
        diagnostic.attachNote(other.getLoc()) << "the other one is here";
        return diagnostic;
      };
      if (a.getInput().getType() != b.getType())
        return fail(b, a) << "rank " << receiver << " receives a value of type "
                          << b.getType() << ", but rank " << sender
                          << " sends one of type " << a.getInput().getType();
      if (a.getVaryingAttr() != b.getVaryingAttr())
        return fail(b, a) << "sender and receiver say that the value differs "
                             "along different mesh dimensions";
      if (decidesAnything && failed(checkVarying(a)))
        return failure();
    }
    return success();
  }

  /// What a stage decides by relies on where the values that it has received may
  /// differ. Most programs decide nothing, and if collectives are joined, their
  /// values seem to differ along more dimensions than they do.
  LogicalResult checkVarying(TransferOp sent) {
    for (StringRef name : uniformity.getVaryingAxes(sent.getInput())) {
      auto isNamed = [&](AxisRefAttr other) { return other.getName() == name; };
      AxisListAttr varying = sent.getVaryingAttr();
      if (name != axis.getName() &&
          (!varying || llvm::none_of(varying.getAxes(), isNamed)))
        return sent.emitError("sends a value that may differ along '")
               << name << "', which 'varying' doesn't name";
    }
    return success();
  }

  /// Runs each stage up to its end, or until it waits for a start of another.
  LogicalResult simulate() {
    SmallVector<size_t> next(numStages, 0);
    /// The number of transfers that the sender and the receiver have started.
    std::map<Channel, std::array<size_t, 2>> started;
    bool progress = true;
    while (progress) {
      progress = false;
      for (int64_t stage = 0; stage < numStages; ++stage)
        while (next[stage] < events[stage].size()) {
          Event &event = events[stage][next[stage]];
          Channel channel = getChannel(event.op);
          bool isReceiver = channel.second == stage;
          if (!event.isWait)
            ++started[channel][isReceiver];
          else if (started[channel][!isReceiver] <= event.number)
            break;
          ++next[stage];
          progress = true;
        }
    }
    for (int64_t stage = 0; stage < numStages; ++stage)
      if (next[stage] < events[stage].size())
        return reportDeadlock(next);
    return success();
  }

  LogicalResult reportDeadlock(ArrayRef<size_t> next) {
    std::optional<InFlightDiagnostic> diagnostic;
    for (int64_t stage = 0; stage < numStages; ++stage) {
      if (next[stage] == events[stage].size())
        continue;
      TransferOp op = events[stage][next[stage]].op;
      auto [from, to] = getChannel(op);
      if (!diagnostic) {
        diagnostic.emplace(
            op.emitError("the stages of the pipeline would wait for each other "
                         "forever: stage ")
            << stage << " waits here for stage "
            << (from == stage ? to : from));
        continue;
      }
      diagnostic->attachNote(op.getLoc())
          << "stage " << stage << " waits here for stage "
          << (from == stage ? to : from);
    }
    return std::move(*diagnostic);
  }

  MeshOp mesh;
  PipelineOp pipeline;
  Uniformity uniformity;
  SymbolTableCollection symbols;
  ArrayRef<func::FuncOp> byRank;
  AxisRefAttr axis;
  int64_t numStages = 0;
  DenseSet<Operation *> visited;
  DenseMap<Operation *, std::vector<Event>> found;
  /// By stage.
  std::vector<std::vector<Event>> events;
  /// Whether some branch or loop of a stage has collectives.
  bool decidesAnything = false;
};

} // namespace

LogicalResult collectives::verifyTransfers(ArrayRef<func::FuncOp> byRank,
                                           MeshOp mesh, PipelineOp pipeline) {
  return TransfersVerifier(mesh, pipeline).verify(byRank);
}
