//===- TPRTToCalls.cpp - Calls of the runtime -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CallBuffers.h"
#include "CallNumbers.h"
#include "CodeGen/Loops/Buffers.h"
#include "RuntimeABI.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTTPRTTOCALLS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

class ConvertTPRTToCalls
    : public tp::impl::ConvertTPRTToCallsBase<ConvertTPRTToCalls> {
  void runOnOperation() override {
    OpBuilder b(&getContext());
    ptr = LLVM::LLVMPointerType::get(&getContext());
    i32 = b.getI32Type();
    i64 = b.getI64Type();
    if (failed(numbers.extendTables(getOperation())))
      return signalPassFailure();
    for (func::FuncOp program : getProgramFunctions(getOperation()))
      convert(b, program);
    SmallVector<StringRef> texts(numbers.getTexts().begin(),
                                 numbers.getTexts().end());
    if (!getOperation().getOps<gpu::GPUModuleOp>().empty())
      getOperation()->setAttr(kSitesAttr, b.getStrArrayAttr(texts));
    else if (!texts.empty())
      buildTexts(b);
  }

  void convert(OpBuilder &b, func::FuncOp program) {
    (void)program.insertArgument(
        0, ptr,
        b.getDictionaryAttr(b.getNamedAttr(
            kRoleAttr, b.getStringAttr(stringifyRole(Role::Context)))),
        program.getLoc());
    context = program.getArgument(0);
    SmallVector<BlockArgument> arenas = getArguments(program, Role::Arena);
    arena = arenas.empty() ? Value() : arenas.front();
    numbers.setFunction(program);
    buffers.setProgram(b, program, arena);

    // The ops to lower. Calls in loops pass their status out of the loops.
    SmallVector<Operation *> ops;
    size_t numArguments = 0; // of a launch or of a kernel in parts, at most
    program.walk([&](Operation *op) {
      if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
        numArguments =
            std::max<size_t>(numArguments, launch.getNumKernelOperands());
      else if (auto parallel = dyn_cast<tprt::ParallelOp>(op))
        numArguments =
            std::max<size_t>(numArguments, parallel.getArguments().size());
      else if (!isa_and_present<tprt::TPRTDialect>(op->getDialect()))
        return;
      ops.push_back(op);
    });
    if (numArguments > 0)
      reserveArguments(b, program, numArguments);
    Block *exit = new Block;
    exit->addArgument(i32, program.getLoc());
    for (Operation *op : ops) {
      b.setInsertionPoint(op);
      if (auto mark = dyn_cast<tprt::MarkOp>(op)) {
        lower(b, mark);
        op->erase();
        continue;
      }
      if (auto record = dyn_cast<tprt::ErrorRecordOp>(op)) {
        record.replaceAllUsesWith(
            call(b, op->getLoc(), TPRT_FUNCTION(tprt_error_record), {context}));
        op->erase();
        continue;
      }
      if (auto site = dyn_cast<tprt::SiteOp>(op)) {
        site.replaceAllUsesWith(numbers.getSite(b, site));
        op->erase();
        continue;
      }
      Value status =
          TypeSwitch<Operation *, Value>(op)
              .Case<tprt::GemmOp, tprt::CollectiveOp, tprt::CollectiveStartOp,
                    tprt::CollectiveWaitOp, tprt::AttentionOp,
                    tprt::AttentionGradientOp, tprt::AttentionBlockOp,
                    tprt::AttentionBlockGradientOp, tprt::ConvolutionOp,
                    tprt::GroupedGemmOp, tprt::SortOp, tprt::FillOp,
                    gpu::LaunchFuncOp, tprt::ParallelOp, tprt::CheckIndexOp,
                    tprt::CallOp>([&](auto op) { return lower(b, op); });
      op->erase();
      returnUnlessOk(b, carryOut(b, status), exit);
    }
    finish(b, program, exit);
  }

  Value constant(OpBuilder &b, Location loc, Type type, int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }

  /// Calls a function of abi.h. Returns its result, null if it has none.
  template <typename Result, typename... Parameters, size_t n>
  Value call(OpBuilder &b, Location loc,
             RuntimeFunction<Result(Parameters...)> callee,
             const Value (&arguments)[n]) {
    static_assert(n == sizeof...(Parameters));
    ModuleOp module = getOperation();
    auto function = module.lookupSymbol<func::FuncOp>(callee.name);
    if (!function) {
      SmallVector<Type> results;
      if (!std::is_void_v<Result>)
        results.push_back(getRuntimeType<Result>(b));
      OpBuilder atEnd = OpBuilder::atBlockEnd(module.getBody());
      function = func::FuncOp::create(
          atEnd, loc, callee.name,
          b.getFunctionType({getRuntimeType<Parameters>(b)...}, results));
      function.setPrivate();
    }
    auto call = func::CallOp::create(b, loc, function, arguments);
    return std::is_void_v<Result> ? Value() : call.getResult(0);
  }

  /// The address of a constant, shared by all that are equal.
  Value getConstantAddress(OpBuilder &b, Location loc, StringRef prefix,
                           Type type, Attribute value,
                           function_ref<void(OpBuilder &)> buildBody = {}) {
    LLVM::GlobalOp &global = constants[{type, value}];
    if (!global) {
      OpBuilder atStart = OpBuilder::atBlockBegin(getOperation().getBody());
      global = LLVM::GlobalOp::create(
          atStart, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
          (prefix + Twine(constants.size())).str(),
          buildBody ? Attribute() : value, /*alignment=*/8);
      if (buildBody) {
        OpBuilder body(&global.getInitializerRegion().emplaceBlock(),
                       global.getInitializerRegion().front().begin());
        buildBody(body);
      }
    }
    return LLVM::AddressOfOp::create(b, loc, global);
  }

  void lower(OpBuilder &b, tprt::MarkOp op) {
    Location loc = op.getLoc();
    call(b, loc, TPRT_FUNCTION(tprt_mark),
         {context, numbers.getMark(b, loc, op.getIndex())});
  }

  /// Calls the function through one that loads the buffers' addresses.
  Value lower(OpBuilder &b, tprt::CallOp op) {
    Location loc = op.getLoc();
    SmallVector<int64_t> list = buffers.describe(op);
    llvm::append_range(list, numbers.getNumbers(op));
    list.resize(std::max<size_t>(list.size(), 1)); // a global isn't empty
    Value table = getConstantAddress(b, loc, "numbers_",
                                     LLVM::LLVMArrayType::get(i64, list.size()),
                                     b.getI64TensorAttr(list));
    Value rank = arith::IndexCastOp::create(b, loc, i64, op.getRank());
    LLVM::LLVMFuncOp callee =
        declare(b, loc, op.getCallee(), "_call", kCallOfAttr,
                LLVM::LLVMFunctionType::get(i32, {ptr, i64, ptr, ptr}));
    return LLVM::CallOp::create(
               b, loc, callee,
               ValueRange{context, rank, buffers.getTables(), table})
        .getResult();
  }

  template <typename OpT, typename Type>
  Value callOnBuffers(OpBuilder &b, OpT op, RuntimeFunction<Type> callee) {
    Location loc = op.getLoc();
    Value output = getPointer(b, op.getOutput());
    Value input = op.getInput() ? getPointer(b, op.getInput()) : output;
    return call(
        b, loc, callee,
        {context, numbers.getCollective(b, loc, op.getId()), input, output});
  }

  Value lower(OpBuilder &b, tprt::CollectiveOp op) {
    return callOnBuffers(b, op, TPRT_FUNCTION(tprt_collective));
  }

  Value lower(OpBuilder &b, tprt::CollectiveStartOp op) {
    return callOnBuffers(b, op, TPRT_FUNCTION(tprt_collective_start));
  }

  Value lower(OpBuilder &b, tprt::CollectiveWaitOp op) {
    Location loc = op.getLoc();
    return call(b, loc, TPRT_FUNCTION(tprt_collective_wait),
                {context, numbers.getCollective(b, loc, op.getId())});
  }

  Value lower(OpBuilder &b, tprt::FillOp op) {
    Location loc = op.getLoc();
    return call(
        b, loc, TPRT_FUNCTION(tprt_fill),
        {context, getPointer(b, op.getOutput()), getWord(b, loc, op.getValue()),
         constant(b, loc, i32, getElementBytes(op.getValue().getType())),
         constant(b, loc, i64, 1)});
  }

  /// Reserves memory for the arguments of one launch, or one kernel in parts,
  /// at a time: the values, and a table of their addresses.
  void reserveArguments(OpBuilder &b, func::FuncOp program, size_t count) {
    Location loc = program.getLoc();
    b.setInsertionPointToStart(&program.getBody().front());
    auto allocate = [&](Type type) {
      return LLVM::AllocaOp::create(
          b, loc, ptr, type, constant(b, loc, i64, count), /*alignment=*/8);
    };
    argumentValues = allocate(i64);
    argumentTable = allocate(ptr);
    for (size_t i = 0; i < count; ++i)
      LLVM::StoreOp::create(b, loc, getSlot(b, loc, i64, argumentValues, i),
                            getSlot(b, loc, ptr, argumentTable, i));
  }

  Value getSlot(OpBuilder &b, Location loc, Type type, Value table, size_t i) {
    return LLVM::GEPOp::create(b, loc, ptr, type, table,
                               LLVM::GEPArg(static_cast<int32_t>(i)));
  }

  /// The bits of a number, and zeros above them.
  Value getWord(OpBuilder &b, Location loc, Value number) {
    if (number.getType().isIndex())
      return arith::IndexCastOp::create(b, loc, i64, number);
    unsigned width = number.getType().getIntOrFloatBitWidth();
    if (!number.getType().isInteger())
      number =
          arith::BitcastOp::create(b, loc, b.getIntegerType(width), number);
    if (width < 64)
      number = arith::ExtUIOp::create(b, loc, i64, number);
    return number;
  }

  /// Fills whole slots, since readers may not know how wide arguments are.
  void storeArguments(OpBuilder &b, Location loc, ValueRange operands) {
    for (auto [i, operand] : llvm::enumerate(operands)) {
      Value value = operand;
      if (isa<MemRefType>(operand.getType()))
        value = getPointer(b, operand);
      else if (operand.getType().isIntOrIndexOrFloat())
        value = getWord(b, loc, operand);
      LLVM::StoreOp::create(b, loc, value,
                            getSlot(b, loc, i64, argumentValues, i));
    }
  }

  Value lower(OpBuilder &b, tprt::ParallelOp op) {
    Location loc = op.getLoc();
    storeArguments(b, loc, op.getArguments());
    LLVM::LLVMFuncOp range =
        declare(b, loc, op.getKernel(), "_range", kRangeOfAttr,
                getRuntimeType(b, tprt_range_function()));
    Value function = LLVM::AddressOfOp::create(b, loc, range);
    return call(b, loc, TPRT_FUNCTION(tprt_parallel),
                {context, function, argumentValues,
                 constant(b, loc, i64, op.getCount()),
                 constant(b, loc, i64, op.getNanoseconds())});
  }

  /// Declares a function that calls `callee` with arguments that it loads. Its
  /// body consists of LLVM ops; `convert-program-to-llvm` adds it.
  LLVM::LLVMFuncOp declare(OpBuilder &b, Location loc, StringRef callee,
                           StringRef suffix, StringRef attribute,
                           LLVM::LLVMFunctionType type) {
    ModuleOp module = getOperation();
    std::string name = (callee + suffix).str();
    if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
      return function;
    OpBuilder atEnd = OpBuilder::atBlockEnd(module.getBody());
    auto function = LLVM::LLVMFuncOp::create(atEnd, loc, name, type);
    function->setAttr(attribute,
                      FlatSymbolRefAttr::get(b.getContext(), callee));
    return function;
  }

  Value lower(OpBuilder &b, gpu::LaunchFuncOp op) {
    Location loc = op.getLoc();
    storeArguments(b, loc, op.getKernelOperands());
    auto getSize = [](Value size) {
      return static_cast<uint32_t>(*getConstantIntValue(size));
    };
    tprt_launch_args args = {
        .grid = {getSize(op.getGridSizeX()), getSize(op.getGridSizeY()),
                 getSize(op.getGridSizeZ())},
        .block = {getSize(op.getBlockSizeX()), getSize(op.getBlockSizeY()),
                  getSize(op.getBlockSizeZ())},
        .shared_bytes = 0};
    SmallVector<int32_t> fields = getIntegers<int32_t>(args);
    Value address = getConstantAddress(
        b, loc, "launch_args_", LLVM::LLVMArrayType::get(i32, fields.size()),
        b.getI32TensorAttr(fields));
    auto kernels =
        getOperation().lookupSymbol<gpu::GPUModuleOp>(op.getKernelModuleName());
    int32_t number = 0;
    for (auto kernel : kernels.getOps<gpu::GPUFuncOp>()) {
      if (kernel.getName() == op.getKernelName())
        break;
      ++number;
    }
    return call(
        b, loc, TPRT_FUNCTION(tprt_launch),
        {context, constant(b, loc, i32, number), address, argumentTable});
  }

  /// The address of a constant structure: two i32 and then numbers of 64 bits.
  template <typename Args>
  Value getAddress(OpBuilder &b, Location loc, StringRef prefix,
                   const Args &args) {
    static_assert(alignof(Args) == sizeof(int64_t));
    SmallVector<int32_t> head = getIntegers<int32_t>(args);
    head.truncate(2);
    SmallVector<int64_t> fields =
        getIntegers<int64_t>(args, head.size() * sizeof(int32_t));
    auto headType = LLVM::LLVMArrayType::get(i32, head.size());
    auto fieldsType = LLVM::LLVMArrayType::get(i64, fields.size());
    auto type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                                 {headType, fieldsType});
    Attribute headAttr = b.getI32TensorAttr(head),
              fieldsAttr = b.getI64TensorAttr(fields);
    return getConstantAddress(
        b, loc, prefix, type, b.getArrayAttr({headAttr, fieldsAttr}),
        [&](OpBuilder &body) {
          Value value = LLVM::UndefOp::create(body, loc, type);
          value = LLVM::InsertValueOp::create(
              body, loc, value,
              LLVM::ConstantOp::create(body, loc, headType, headAttr),
              ArrayRef<int64_t>{0});
          value = LLVM::InsertValueOp::create(
              body, loc, value,
              LLVM::ConstantOp::create(body, loc, fieldsType, fieldsAttr),
              ArrayRef<int64_t>{1});
          LLVM::ReturnOp::create(body, loc, value);
        });
  }

  Value lower(OpBuilder &b, tprt::GemmOp op) {
    Location loc = op.getLoc();
    return call(
        b, loc, TPRT_FUNCTION(tprt_gemm),
        {context, getAddress(b, loc, "gemm_args_", getRuntimeArguments(op)),
         getPointer(b, op.getA()), getPointer(b, op.getB()),
         getPointer(b, op.getC()), getPointerOrNull(b, loc, op.getBias()),
         getPointerOrNull(b, loc, op.getAddend()),
         getPointerOrNull(b, loc, op.getFactor())});
  }

  Value getPointerOrNull(OpBuilder &b, Location loc, Value buffer) {
    return buffer ? getPointer(b, buffer)
                  : LLVM::ZeroOp::create(b, loc, ptr).getResult();
  }

  Value lower(OpBuilder &b, tprt::AttentionOp op) {
    Location loc = op.getLoc();
    return call(b, loc, TPRT_FUNCTION(tprt_attention),
                {context,
                 getAddress(b, loc, "attention_args_", getRuntimeArguments(op)),
                 getPointer(b, op.getQuery()), getPointer(b, op.getKey()),
                 getPointer(b, op.getValue()),
                 getPointerOrNull(b, loc, op.getMask()),
                 getPointer(b, op.getOutput())});
  }

  Value lower(OpBuilder &b, tprt::AttentionGradientOp op) {
    Location loc = op.getLoc();
    return call(
        b, loc, TPRT_FUNCTION(tprt_attention_gradient),
        {context,
         getAddress(b, loc, "attention_args_", getRuntimeArguments(op)),
         getPointer(b, op.getQuery()), getPointer(b, op.getKey()),
         getPointer(b, op.getValue()), getPointerOrNull(b, loc, op.getMask()),
         getPointer(b, op.getGradient()), getPointer(b, op.getQueryGradient()),
         getPointer(b, op.getKeyGradient()),
         getPointer(b, op.getValueGradient())});
  }

  Value lower(OpBuilder &b, tprt::AttentionBlockOp op) {
    Location loc = op.getLoc();
    return call(b, loc, TPRT_FUNCTION(tprt_attention_block),
                {context,
                 getAddress(b, loc, "attention_args_", getRuntimeArguments(op)),
                 getPointer(b, op.getQuery()), getPointer(b, op.getKey()),
                 getPointer(b, op.getValue()),
                 getPointerOrNull(b, loc, op.getMask()),
                 getPointerOrNull(b, loc, op.getOffset()),
                 getPointer(b, op.getOutput()), getPointer(b, op.getLse())});
  }

  Value lower(OpBuilder &b, tprt::AttentionBlockGradientOp op) {
    Location loc = op.getLoc();
    return call(
        b, loc, TPRT_FUNCTION(tprt_attention_block_gradient),
        {context,
         getAddress(b, loc, "attention_args_", getRuntimeArguments(op)),
         getPointer(b, op.getQuery()), getPointer(b, op.getKey()),
         getPointer(b, op.getValue()), getPointerOrNull(b, loc, op.getMask()),
         getPointerOrNull(b, loc, op.getOffset()),
         getPointer(b, op.getGradient()), getPointer(b, op.getLse()),
         getPointer(b, op.getDelta()), getPointer(b, op.getQueryGradient()),
         getPointer(b, op.getKeyGradient()),
         getPointer(b, op.getValueGradient())});
  }

  Value lower(OpBuilder &b, tprt::ConvolutionOp op) {
    Location loc = op.getLoc();
    return call(
        b, loc, TPRT_FUNCTION(tprt_convolution),
        {context,
         getAddress(b, loc, "convolution_args_", getRuntimeArguments(op)),
         getPointer(b, op.getInput()), getPointer(b, op.getWeight()),
         getPointerOrNull(b, loc, op.getScale()),
         getPointerOrNull(b, loc, op.getBias()),
         getPointerOrNull(b, loc, op.getAddend()),
         getPointer(b, op.getOutput())});
  }

  Value lower(OpBuilder &b, tprt::GroupedGemmOp op) {
    Location loc = op.getLoc();
    return call(
        b, loc, TPRT_FUNCTION(tprt_grouped_gemm),
        {context,
         getAddress(b, loc, "grouped_gemm_args_", getRuntimeArguments(op)),
         getPointer(b, op.getA()), getPointer(b, op.getB()),
         getPointer(b, op.getBounds()), getPointer(b, op.getOutput())});
  }

  Value lower(OpBuilder &b, tprt::SortOp op) {
    Location loc = op.getLoc();
    return call(b, loc, TPRT_FUNCTION(tprt_sort),
                {context,
                 getAddress(b, loc, "sort_args_", getRuntimeArguments(op)),
                 getPointer(b, op.getInput()), getPointer(b, op.getValues()),
                 getPointer(b, op.getIndices())});
  }

  /// The address of a constant text that ends with NUL.
  Value getText(OpBuilder &b, Location loc, StringRef text) {
    std::string whole = text.str();
    whole.push_back('\0');
    return getConstantAddress(
        b, loc, "what_", LLVM::LLVMArrayType::get(b.getI8Type(), whole.size()),
        b.getStringAttr(whole));
  }

  static constexpr StringLiteral kTexts = "texts";

  /// The address of one of the texts that differ between calls of a function.
  Value loadText(OpBuilder &b, Location loc, Value number) {
    Value texts = LLVM::AddressOfOp::create(b, loc, ptr, kTexts);
    Value slot = LLVM::GEPOp::create(b, loc, ptr, ptr, texts,
                                     ArrayRef<LLVM::GEPArg>{number});
    return LLVM::LoadOp::create(b, loc, ptr, slot);
  }

  /// Builds the table of the addresses of these texts.
  void buildTexts(OpBuilder &b) {
    ArrayRef<std::string> texts = numbers.getTexts();
    Location loc = getOperation().getLoc();
    auto type = LLVM::LLVMArrayType::get(ptr, texts.size());
    b.setInsertionPointToStart(getOperation().getBody());
    auto table = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true,
                                        LLVM::Linkage::Internal, kTexts,
                                        /*value=*/Attribute());
    Block &body = table.getInitializerRegion().emplaceBlock();
    b.setInsertionPointToStart(&body);
    Value addresses = LLVM::UndefOp::create(b, loc, type);
    for (auto [i, text] : llvm::enumerate(texts))
      addresses = LLVM::InsertValueOp::create(
          b, loc, addresses, getText(b, loc, text),
          ArrayRef<int64_t>{static_cast<int64_t>(i)});
    LLVM::ReturnOp::create(b, loc, addresses);
  }

  /// Looks for the first index out of range, then reports it. Loops can't end
  /// early, so they run from the last index to the first.
  Value lower(OpBuilder &b, tprt::CheckIndexOp op) {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getIndices().getType());
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value bound = constant(b, loc, i64, op.getBound());
    // An index that is in range stands for "none found".
    SmallVector<Value> found{constant(b, loc, i64, 0),
                             constant(b, loc, b.getI1Type(), 0)};
    SmallVector<Value> ivs;
    SmallVector<scf::ForOp> loops;
    OpBuilder inner = b;
    for (int64_t size : type.getShape()) {
      Value last = arith::ConstantIndexOp::create(inner, loc, size - 1);
      Value end = arith::ConstantIndexOp::create(inner, loc, size);
      auto loop = scf::ForOp::create(
          inner, loc, zero, end, one,
          loops.empty() ? ValueRange(found) : loops.back().getRegionIterArgs());
      if (!loops.empty())
        scf::YieldOp::create(inner, loc, loop.getResults());
      inner.setInsertionPointToStart(loop.getBody());
      ivs.push_back(
          arith::SubIOp::create(inner, loc, last, loop.getInductionVar()));
      loops.push_back(loop);
    }
    Value before0 = loops.empty() ? found[0] : loops.back().getRegionIterArg(0);
    Value before1 = loops.empty() ? found[1] : loops.back().getRegionIterArg(1);
    Value index = memref::LoadOp::create(inner, loc, op.getIndices(), ivs);
    if (type.getElementType() != i64)
      index = arith::ExtSIOp::create(inner, loc, i64, index);
    Value isBad = arith::CmpIOp::create(
        inner, loc, arith::CmpIPredicate::uge, index,
        bound); // negative indices are large as unsigned numbers
    if (op.getIgnored()) {
      Value ignored = constant(inner, loc, i64, *op.getIgnored());
      Value counts = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ne,
                                           index, ignored);
      isBad = arith::AndIOp::create(inner, loc, isBad, counts);
    }
    SmallVector<Value> after{
        arith::SelectOp::create(inner, loc, isBad, index, before0),
        arith::OrIOp::create(inner, loc, isBad, before1)};
    if (!loops.empty()) {
      scf::YieldOp::create(inner, loc, after);
      after.assign(loops.front().result_begin(), loops.front().result_end());
      b.setInsertionPointAfter(loops.front());
    }

    auto report = scf::IfOp::create(b, loc, i32, after[1], /*withElse=*/true);
    OpBuilder then = report.getThenBodyBuilder();
    Value number = numbers.getText(then, op);
    Value what =
        number ? loadText(then, loc, number) : getText(then, loc, op.getWhat());
    Value status = call(then, loc, TPRT_FUNCTION(tprt_index_error),
                        {context, what, after[0], bound});
    scf::YieldOp::create(then, loc, status);
    OpBuilder otherwise = report.getElseBodyBuilder();
    scf::YieldOp::create(otherwise, loc,
                         constant(otherwise, loc, i32, TPRT_OK));
    return report.getResult(0);
  }

  /// Passes the status of a call out of the loops around it: the first status
  /// that isn't TPRT_OK becomes a result of the loops.
  Value carryOut(OpBuilder &b, Value status) {
    b.setInsertionPointAfter(status.getDefiningOp());
    while (auto loop =
               dyn_cast<scf::ForOp>(status.getDefiningOp()->getParentOp())) {
      OpBuilder outside(loop);
      Value ok = constant(outside, loop.getLoc(), i32, TPRT_OK);
      IRRewriter rewriter(b.getContext());
      auto newLoop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
          rewriter, ok, /*replaceInitOperandUsesInLoop=*/false,
          [&](OpBuilder &yieldBuilder, Location loc,
              ArrayRef<BlockArgument> args) {
            Value isFirst = arith::CmpIOp::create(
                yieldBuilder, loc, arith::CmpIPredicate::eq, args.front(),
                constant(yieldBuilder, loc, i32, TPRT_OK));
            return SmallVector<Value>{arith::SelectOp::create(
                yieldBuilder, loc, isFirst, status, args.front())};
          }));
      status = newLoop.getResults().back();
      b.setInsertionPointAfter(newLoop);
    }
    return status;
  }

  void returnUnlessOk(OpBuilder &b, Value status, Block *exit) {
    Location loc = status.getLoc();
    Block *block = b.getInsertionBlock();
    Value failed =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, status,
                              constant(b, loc, i32, TPRT_OK));
    Block *next = block->splitBlock(b.getInsertionPoint());
    b.setInsertionPointToEnd(block);
    cf::CondBranchOp::create(b, loc, failed, exit, ValueRange{status}, next,
                             ValueRange());
  }

  void finish(OpBuilder &b, func::FuncOp program, Block *exit) {
    program.getBody().push_back(exit);
    SmallVector<func::ReturnOp> returns(
        program.getBody().getOps<func::ReturnOp>());
    for (func::ReturnOp op : returns) {
      b.setInsertionPoint(op);
      cf::BranchOp::create(b, op.getLoc(), exit,
                           constant(b, op.getLoc(), i32, TPRT_OK));
      op.erase();
    }
    b.setInsertionPointToEnd(exit);
    func::ReturnOp::create(b, program.getLoc(), exit->getArgument(0));
    program.setType(b.getFunctionType(program.getArgumentTypes(), i32));
    buffers.eraseUnusedArguments(program);
  }

  Type ptr, i32, i64;
  /// Of the function that is converted; the arena may be null.
  Value context, argumentValues, argumentTable, arena;
  CallNumbers numbers;
  CallBuffers buffers;
  DenseMap<std::pair<Type, Attribute>, LLVM::GlobalOp> constants;
};

} // namespace
