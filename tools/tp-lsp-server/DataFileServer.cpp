//===- DataFileServer.cpp - The server for plans and the like -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DataFileServer.h"
#include "SchemaCompletion.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "tp/Plan/PlanSchema.h"
#include "tp/Plan/Style.h"
#include "tp/Sharding/Cost/MachineModel.h"
#include "tp/Training/TrainingFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/LSP/Protocol.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"

using namespace llvm::lsp;
namespace json = llvm::json;
using llvm::StringRef;

namespace {

enum class FileKind { Plan, Training, Machine };

class Server {
public:
  explicit Server(JSONTransport &transport)
      : context(mlir::MLIRContext::Threading::DISABLED), messages(transport),
        publish(messages.outgoingNotification<PublishDiagnosticsParams>(
            "textDocument/publishDiagnostics")) {
    context.loadDialect<mlir::nn::NNDialect, mlir::tp::TPDialect>();
    messages.method("initialize", this, &Server::initialize);
    messages.notification("initialized", this, &Server::ignore);
    messages.method("shutdown", this, &Server::shutdown);
    messages.notification("textDocument/didOpen", this, &Server::open);
    messages.notification("textDocument/didChange", this, &Server::change);
    messages.notification("textDocument/didClose", this, &Server::close);
    messages.method("textDocument/completion", this, &Server::complete);
  }

  bool run(JSONTransport &transport) {
    llvm::Error error = transport.run(messages);
    if (error)
      Logger::error("Transport error: {0}", error);
    llvm::consumeError(std::move(error));
    return isShutDown;
  }

private:
  void initialize(const InitializeParams &, Callback<json::Value> reply) {
    constexpr int kWholeText = 1;
    json::Object sync{
        {"openClose", true}, {"change", kWholeText}, {"save", false}};
    json::Object completion{{"triggerCharacters", json::Array{" ", ":", "{"}}};
    reply(json::Object{
        {"capabilities",
         json::Object{{"textDocumentSync", std::move(sync)},
                      {"completionProvider", std::move(completion)}}},
        {"serverInfo", json::Object{{"name", "tp-lsp-server"},
                                    {"version", TP_MLIR_VERSION}}}});
  }
  void ignore(const InitializedParams &) {}
  void shutdown(const NoParams &, Callback<std::nullptr_t> reply) {
    isShutDown = true;
    reply(nullptr);
  }

  void open(const DidOpenTextDocumentParams &params) {
    const TextDocumentItem &document = params.textDocument;
    texts[document.uri.uri()] = document.text;
    check(document.uri, document.version);
  }
  void change(const DidChangeTextDocumentParams &params) {
    auto it = texts.find(params.textDocument.uri.uri());
    if (it == texts.end() ||
        mlir::failed(TextDocumentContentChangeEvent::applyTo(
            params.contentChanges, it->second)))
      return;
    check(params.textDocument.uri, params.textDocument.version);
  }
  void close(const DidCloseTextDocumentParams &params) {
    texts.erase(params.textDocument.uri.uri());
    publish(PublishDiagnosticsParams(params.textDocument.uri, /*version=*/0));
  }

  /// The kind that a comment about the schema, the keys or the name of a file
  /// says; nullopt if none of them does.
  static std::optional<FileKind> findKind(StringRef text, StringRef path) {
    llvm::SmallVector<StringRef> found;
    if (llvm::Regex("[$]schema=.*(plan|training|machine)[.]schema[.]json")
            .match(text, &found))
      return found[1] == "plan"       ? FileKind::Plan
             : found[1] == "training" ? FileKind::Training
                                      : FileKind::Machine;
    // In other files, these may be names of something else further inside.
    StringRef before = text.ltrim().starts_with("{") ? "[{,\n] *" : "(^|\n)";
    auto hasKey = [&](StringRef keys) {
      return llvm::Regex((before + "[\"']?(" + keys + ")[\"']? *:").str())
          .match(text);
    };
    if (hasKey("mesh|plan|parallelize|data_parallel|context_parallel"))
      return FileKind::Plan;
    if (hasKey("loss|optimizer"))
      return FileKind::Training;
    if (hasKey("device|links"))
      return FileKind::Machine;
    StringRef name = path.rsplit('/').second;
    if (name.contains("plan"))
      return FileKind::Plan;
    if (name.contains("train"))
      return FileKind::Training;
    return name.contains("machine") ? std::optional(FileKind::Machine)
                                    : std::nullopt;
  }

  void read(FileKind kind, StringRef text, StringRef path) {
    switch (kind) {
    case FileKind::Plan: {
      mlir::tp::plan::PlanFile file;
      (void)mlir::tp::plan::parsePlan(text, path, &context, file);
      (void)mlir::tp::plan::checkStyles(file, &context);
      return;
    }
    case FileKind::Training:
      (void)mlir::tp::parseTrainingFile(text, path, &context);
      return;
    case FileKind::Machine:
      (void)mlir::tp::parseMachine(text, path, &context);
      return;
    }
  }

  const json::Value &getSchema(FileKind kind) {
    std::optional<json::Value> &schema = schemas[kind];
    if (!schema)
      schema = kind == FileKind::Plan ? mlir::tp::plan::getPlanSchema(&context)
               : kind == FileKind::Training ? mlir::tp::getTrainingSchema()
                                            : mlir::tp::getMachineSchema();
    return *schema;
  }

  /// The word at a place of `text`, whose lines and columns begin at 1.
  static Range getRange(StringRef text, unsigned line, unsigned column) {
    for (unsigned i = 1; i < line; ++i)
      text = text.split('\n').second;
    text = text.split('\n').first.drop_front(
        std::min<size_t>(column - 1, text.split('\n').first.size()));
    size_t length = std::max<size_t>(text.find_first_of(" ,:{}[]"), 1);
    Position begin(line - 1, column - 1);
    return Range(
        begin,
        Position(begin.line, begin.character + std::min(length, text.size())));
  }

  void check(const URIForFile &uri, int64_t version) {
    const std::string &text = texts[uri.uri()];
    PublishDiagnosticsParams params(uri, version);
    if (std::optional<FileKind> kind = findKind(text, uri.file())) {
      mlir::ScopedDiagnosticHandler handler(
          &context, [&](mlir::Diagnostic &found) {
            auto loc =
                found.getLocation()->findInstanceOf<mlir::FileLineColLoc>();
            Diagnostic diagnostic;
            if (loc)
              diagnostic.range = getRange(text, loc.getLine(), loc.getColumn());
            diagnostic.severity =
                found.getSeverity() == mlir::DiagnosticSeverity::Error
                    ? DiagnosticSeverity::Error
                : found.getSeverity() == mlir::DiagnosticSeverity::Warning
                    ? DiagnosticSeverity::Warning
                    : DiagnosticSeverity::Information;
            diagnostic.source = "tp-mlir";
            diagnostic.message = found.str();
            params.diagnostics.push_back(std::move(diagnostic));
          });
      read(*kind, text, uri.file());
    }
    publish(params);
  }

  void complete(const CompletionParams &params,
                Callback<CompletionList> reply) {
    CompletionList list;
    auto it = texts.find(params.textDocument.uri.uri());
    if (it != texts.end()) {
      StringRef text = it->second;
      size_t offset = 0;
      for (int i = 0; i < params.position.line && offset < text.size(); ++i)
        offset = std::min(text.find('\n', offset), text.size() - 1) + 1;
      offset =
          std::min<size_t>(offset + params.position.character, text.size());
      if (auto kind = findKind(text, params.textDocument.uri.file())) {
        YamlPlace place = findPlace(text.take_front(offset));
        for (auto &[label, description] :
             propose(*getSchema(*kind).getAsObject(), place)) {
          CompletionItem item(label, place.isValue
                                         ? CompletionItemKind::EnumMember
                                         : CompletionItemKind::Property);
          item.detail = description;
          list.items.push_back(std::move(item));
        }
      }
    }
    reply(list);
  }

  mlir::MLIRContext context;
  MessageHandler messages;
  OutgoingNotification<PublishDiagnosticsParams> publish;
  llvm::StringMap<std::string> texts;
  std::map<FileKind, std::optional<json::Value>> schemas;
  bool isShutDown = false;
};

} // namespace

int serveDataFiles(JSONStreamStyle style, bool isPretty) {
  llvm::sys::ChangeStdinToBinary();
  JSONTransport transport(stdin, llvm::outs(), style, isPretty);
  return Server(transport).run(transport) ? 0 : 1;
}
