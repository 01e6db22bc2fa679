//===- ProgramToLLVM.cpp - The LLVM dialect and the exported entry --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CallBuffers.h"
#include "CodeGen/Loops/BFloat16Bits.h"
#include "RuntimeABI.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/Programs.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include <map>

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTPROGRAMTOLLVM
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// A program before it is lowered; kept for the entry that calls it.
struct Program {
  std::string name;
  SmallVector<int64_t> ranks;
  /// The arguments: what each is, and its place in the table of such buffers.
  SmallVector<std::pair<Role, int64_t>> arguments;
};

/// What the arguments of `program` are; fails if that isn't known of one.
FailureOr<SmallVector<std::pair<Role, int64_t>>>
describeArguments(func::FuncOp program) {
  SmallVector<std::pair<Role, int64_t>> arguments;
  std::map<Role, int64_t> counts;
  for (unsigned i = 0; i < program.getNumArguments(); ++i) {
    std::optional<Role> role = getRole(program, i);
    if (!role || *role == Role::Numbers)
      return program.emitError("argument ")
             << i << " has no '" << kRoleAttr << "' of a program's argument";
    int64_t place = counts[*role]++;
    if (auto attr = program.getArgAttrOfType<IntegerAttr>(i, kPlaceAttr))
      place = attr.getInt();
    arguments.push_back({*role, place});
  }
  return arguments;
}

/// LLVM's attributes of a function that isn't optimized.
ArrayAttr getUnoptimized(Builder &b) {
  return b.getStrArrayAttr({"noinline", "optnone"});
}

/// The program's tpx_main_fn(ctx, rank, inputs, parameters, outputs, arena):
/// calls the rank's program with the buffers' addresses, read out of the tables.
class EntryBuilder {
public:
  EntryBuilder(ModuleOp module)
      : module(module), b(OpBuilder::atBlockEnd(module.getBody())),
        ptr(LLVM::LLVMPointerType::get(b.getContext())) {}

  void build(ArrayRef<Program> programs) {
    Location loc = module.getLoc();
    entry = LLVM::LLVMFuncOp::create(b, loc, TPRT_ENTRY_SYMBOL,
                                     getRuntimeType(b, tpx_main_fn()));
    entry.setPassthroughAttr(getUnoptimized(b));
    Block *start = entry.addEntryBlock(b);
    SmallVector<Block *> calls, cases;
    SmallVector<APInt> values;
    for (const Program &program : programs) {
      calls.push_back(buildCall(program));
      for (int64_t rank : program.ranks) {
        values.push_back(APInt(64, rank));
        cases.push_back(calls.back());
      }
    }
    b.setInsertionPointToEnd(start);
    if (calls.size() == 1) {
      LLVM::BrOp::create(b, loc, calls.front());
      return;
    }
    // There are no other ranks, so any program may be the default.
    LLVM::SwitchOp::create(b, loc, entry.getArgument(1), calls.front(),
                           ValueRange(), values, cases,
                           SmallVector<ValueRange>(cases.size()));
  }

private:
  Block *buildCall(const Program &program) {
    auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(program.name);
    Block *block = b.createBlock(&entry.getBody(), entry.getBody().end());
    SmallVector<Value> arguments;
    for (auto [role, place] : program.arguments)
      arguments.push_back(buildArgument(role, place));
    Value status =
        LLVM::CallOp::create(b, callee.getLoc(), callee, arguments).getResult();
    LLVM::ReturnOp::create(b, callee.getLoc(), status);
    return block;
  }

  Value buildArgument(Role role, int64_t place) {
    switch (role) {
    case Role::Context:
      return entry.getArgument(0);
    case Role::Rank:
      return entry.getArgument(1);
    case Role::Tables:
      return buildTables();
    case Role::Input:
      return load(entry.getArgument(2), place);
    case Role::Parameter:
      return load(entry.getArgument(3), place);
    case Role::Output:
      return load(entry.getArgument(4), place);
    case Role::Arena:
      return entry.getArgument(5);
    case Role::Numbers:
      break;
    }
    llvm_unreachable("no argument of a program");
  }

  /// The addresses of the tables, as AddressTable numbers them.
  Value buildTables() {
    Location loc = entry.getLoc();
    Value count = LLVM::ConstantOp::create(
        b, loc, b.getI64IntegerAttr(kNumAddressTables));
    Value tables =
        LLVM::AllocaOp::create(b, loc, ptr, ptr, count, /*alignment=*/8);
    for (auto [table, argument] : {std::pair(AddressTable::Inputs, 2),
                                   std::pair(AddressTable::Parameters, 3),
                                   std::pair(AddressTable::Outputs, 4)})
      LLVM::StoreOp::create(b, loc, entry.getArgument(argument),
                            getSlot(tables, static_cast<int32_t>(table)));
    return tables;
  }

  Value getSlot(Value table, int32_t place) {
    return LLVM::GEPOp::create(b, entry.getLoc(), ptr, ptr, table,
                               LLVM::GEPArg(place));
  }

  Value load(Value table, int64_t place) {
    return LLVM::LoadOp::create(b, entry.getLoc(), ptr,
                                getSlot(table, static_cast<int32_t>(place)));
  }

  ModuleOp module;
  OpBuilder b;
  Type ptr;
  LLVM::LLVMFuncOp entry;
};

/// Makes the declaration `function` a definition of this file, and returns the
/// function that its attribute `name` refers to, which it is to call.
LLVM::LLVMFuncOp beginCallerOf(LLVM::LLVMFuncOp function, StringRef name) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      function, function->getAttrOfType<FlatSymbolRefAttr>(name));
  function->removeAttr(name);
  function.setLinkage(LLVM::Linkage::Internal);
  return callee;
}

/// void kernel_range(arguments, begin, end): calls the kernel with the
/// arguments, read out of the table, and the range.
void buildRangeFunction(LLVM::LLVMFuncOp function) {
  LLVM::LLVMFuncOp kernel = beginCallerOf(function, kRangeOfAttr);
  Location loc = function.getLoc();
  OpBuilder b(function.getContext());
  Block *body = function.addEntryBlock(b);
  b.setInsertionPointToStart(body);
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Value> arguments;
  for (auto [i, type] :
       llvm::enumerate(kernel.getArgumentTypes().drop_back(2))) {
    Value slot =
        LLVM::GEPOp::create(b, loc, ptr, b.getI64Type(), body->getArgument(0),
                            LLVM::GEPArg(static_cast<int32_t>(i)));
    arguments.push_back(LLVM::LoadOp::create(b, loc, type, slot));
  }
  llvm::append_range(arguments, body->getArguments().drop_front());
  LLVM::CallOp::create(b, loc, kernel, arguments);
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

/// i32 layer_call(context, rank, tables, numbers): calls the layer with the
/// addresses that the numbers describe (CallBuffers.h), and the rest of these.
void buildCallFunction(LLVM::LLVMFuncOp function) {
  LLVM::LLVMFuncOp layer = beginCallerOf(function, kCallOfAttr);
  Location loc = function.getLoc();
  OpBuilder b(function.getContext());
  function.setPassthroughAttr(b.getStrArrayAttr({"noinline"}));
  Block *body = function.addEntryBlock(b);
  b.setInsertionPointToStart(body);
  Value tables = body->getArgument(2), numbers = body->getArgument(3);
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  auto getAddress = [&](Type element, Value base, LLVM::GEPArg index) {
    return LLVM::GEPOp::create(b, loc, ptr, element, base, index);
  };
  auto load = [&](Type type, Value base, LLVM::GEPArg index) {
    return LLVM::LoadOp::create(b, loc, type, getAddress(type, base, index));
  };
  SmallVector<Value> arguments(body->getArguments().take_front(2));
  int32_t next = 0;
  while (arguments.size() + 1 < layer.getNumArguments()) {
    Value table = load(i64, numbers, next),
          place = load(i64, numbers, next + 1),
          bytes = load(i64, numbers, next + 2);
    Value base = load(ptr, load(ptr, tables, table), place);
    arguments.push_back(getAddress(b.getI8Type(), base, bytes));
    next += kNumbersPerBuffer;
  }
  arguments.push_back(getAddress(i64, numbers, next));
  Value status = LLVM::CallOp::create(b, loc, layer, arguments).getResult();
  LLVM::ReturnOp::create(b, loc, status);
}

class ConvertProgramToLLVM
    : public tp::impl::ConvertProgramToLLVMBase<ConvertProgramToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Program> programs;
    for (func::FuncOp program : getEntryPrograms(module)) {
      auto ranks = program->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr);
      auto arguments = describeArguments(program);
      if (failed(arguments))
        return signalPassFailure();
      programs.push_back(
          {program.getName().str(),
           ranks ? llvm::to_vector(ranks.asArrayRef()) : SmallVector<int64_t>(),
           std::move(*arguments)});
    }
    if (programs.empty()) {
      module.emitError("there is no function '@main'");
      return signalPassFailure();
    }
    prepareFunctions();

    MLIRContext *context = &getContext();
    RewritePatternSet expand(context);
    memref::populateExpandStridedMetadataPatterns(expand);
    if (failed(applyPatternsGreedily(module, std::move(expand))))
      return signalPassFailure();
    // The offsets of views are affine.
    RewritePatternSet affine(context);
    populateAffineToStdConversionPatterns(affine);
    if (failed(applyPatternsGreedily(module, std::move(affine))))
      return signalPassFailure();

    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    LLVMConversionTarget target(*context);
    target.addLegalOp<ModuleOp, gpu::GPUModuleOp>();
    target.markOpRecursivelyLegal<gpu::GPUModuleOp>();
    RewritePatternSet patterns(context);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    // Use the C library only where LLVM has no intrinsic.
    populateMathToLLVMConversionPatterns(converter, patterns,
                                         /*approximateLog1p=*/false,
                                         /*benefit=*/2);
    populateMathToLibmConversionPatterns(patterns, /*benefit=*/1);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    if (failed(applyFullConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    replaceBFloat16ByBits(module);
    for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
      if (function->hasAttr(kRangeOfAttr))
        buildRangeFunction(function);
      if (function->hasAttr(kCallOfAttr))
        buildCallFunction(function);
    }
    EntryBuilder(module).build(programs);
  }

  /// Makes all functions with bodies internal. None is inlined: that would only
  /// repeat what programs call in every layer. Programs only call, so they
  /// aren't optimized, which would take long where they are.
  void prepareFunctions() {
    Builder b(&getContext());
    SmallVector<func::FuncOp> programs = getEntryPrograms(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      function->setAttr(
          "llvm.linkage",
          LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal));
      bool isProgram = llvm::is_contained(programs, function);
      function->setAttr("passthrough", isProgram
                                           ? getUnoptimized(b)
                                           : b.getStrArrayAttr({"noinline"}));
      function->removeAttr(tprt::kRepeatedAttr);
      SmallVector<DictionaryAttr> attributes;
      for (unsigned i = 0; i < function.getNumArguments(); ++i) {
        NamedAttrList named(function.getArgAttrDict(i));
        for (StringRef name : {kRoleAttr, kPlaceAttr, kNameAttr})
          named.erase(name);
        attributes.push_back(named.getDictionary(&getContext()));
      }
      function.setAllArgAttrs(attributes);
    }
    for (func::FuncOp program : programs) {
      for (StringRef name : {kRanksAttr, kCopyOfAttr, kStageAttr, kStageOfAttr})
        program->removeAttr(name);
    }
  }
};

} // namespace
