//===- MinSum.cpp - Cheapest assignment of many variables -----------------===//

#include "tp/Analysis/MinSum.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include <queue>

using namespace mlir::tp;

constexpr size_t kManyFactors = 64;

unsigned MinSum::addVariable(unsigned domainSize) {
  domains.push_back(domainSize);
  given.emplace_back();
  return domains.size() - 1;
}

TableId MinSum::addTable(llvm::ArrayRef<unsigned> dims,
                         std::vector<CommunicationCost> costs) {
  return intern({llvm::SmallVector<unsigned>(dims), std::move(costs)});
}

void MinSum::addFactor(TableId table, llvm::ArrayRef<unsigned> scope) {
  // What has one value only is no variable.
  Factor factor{table, {}};
  llvm::SmallVector<unsigned> dims;
  for (unsigned variable : scope) {
    if (domains[variable] == 1)
      continue;
    factor.scope.push_back(variable);
    dims.push_back(domains[variable]);
    given[variable].push_back(factors.size());
  }
  if (dims.size() < scope.size()) {
    auto [it, inserted] = squeezed.try_emplace(table, 0);
    if (inserted)
      it->second = intern({dims, tables[table]->costs});
    factor.table = it->second;
  }
  factors.push_back(std::move(factor));
}

TableId MinSum::intern(Table table) {
  size_t hash = llvm::hash_combine_range(table.dims.begin(), table.dims.end());
  for (const CommunicationCost &cost : table.costs)
    hash = llvm::hash_combine(hash, cost.asTuple());
  auto [begin, end] = tablesByHash.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (tables[it->second]->dims == table.dims &&
        tables[it->second]->costs == table.costs)
      return it->second;
  tables.push_back(std::make_unique<Table>(std::move(table)));
  tablesByHash.insert({hash, tables.size() - 1});
  return tables.size() - 1;
}

CommunicationCost MinSum::lookUp(const Factor &factor,
                                 llvm::ArrayRef<unsigned> values) const {
  const Table &table = *tables[factor.table];
  size_t index = 0;
  for (auto [variable, size] : llvm::zip(factor.scope, table.dims))
    index = index * size + values[variable];
  return table.costs[index];
}

//===----------------------------------------------------------------------===//
// Elimination
//===----------------------------------------------------------------------===//

/// The sum of `parts` over `scope`, minimised over `variable`, which isn't in
/// it.
MinSum::Message MinSum::eliminate(unsigned variable,
                                  llvm::ArrayRef<unsigned> parts,
                                  llvm::ArrayRef<unsigned> scope) {
  // Variables by their place in the scope; the eliminated one stands last.
  auto getPlace = [&](unsigned other) -> unsigned {
    return llvm::find(scope, other) - scope.begin();
  };
  llvm::SmallVector<unsigned, 16> key;
  for (unsigned part : parts) {
    key.push_back(factors[part].table);
    for (unsigned other : factors[part].scope)
      key.push_back(getPlace(other));
  }
  key.push_back(~0u);
  for (unsigned other : scope)
    key.push_back(domains[other]);
  key.push_back(domains[variable]);
  auto [it, inserted] = messages.try_emplace(std::move(key));
  if (!inserted)
    return it->second;

  size_t numPlaces = scope.size(), numValues = domains[variable];
  Table result;
  size_t numEntries = 1;
  for (unsigned other : scope) {
    result.dims.push_back(domains[other]);
    numEntries *= domains[other];
  }
  // How far a step of each place, and of the variable, leads in each part.
  struct Part {
    const CommunicationCost *costs;
    llvm::SmallVector<size_t> strides;
    size_t base = 0;
  };
  llvm::SmallVector<Part> operands;
  for (unsigned part : parts) {
    const Table &table = *tables[factors[part].table];
    Part &operand = operands.emplace_back();
    operand.costs = table.costs.data();
    operand.strides.assign(numPlaces + 1, 0);
    size_t stride = 1;
    for (size_t i = table.dims.size(); i-- > 0; stride *= table.dims[i])
      operand.strides[getPlace(factors[part].scope[i])] = stride;
  }
  result.costs.reserve(numEntries);
  llvm::SmallVector<unsigned> place(numPlaces, 0);
  CommunicationCost least = CommunicationCost::infinite();
  for (size_t entry = 0; entry < numEntries; ++entry) {
    CommunicationCost best = CommunicationCost::infinite();
    for (size_t value = 0; value < numValues; ++value) {
      CommunicationCost sum;
      for (const Part &part : operands)
        sum += part.costs[part.base + value * part.strides[numPlaces]];
      best = std::min(best, sum);
    }
    result.costs.push_back(best);
    least = std::min(least, best);
    for (size_t i = numPlaces; i-- > 0;) {
      bool carries = ++place[i] == domains[scope[i]];
      for (Part &part : operands)
        part.base += carries ? -part.strides[i] * (domains[scope[i]] - 1)
                             : part.strides[i];
      if (!carries)
        break;
      place[i] = 0;
    }
  }
  if (!least.isInfinite())
    for (CommunicationCost &cost : result.costs)
      cost = cost - least;
  Message message{intern(std::move(result)), least};
  it->second = message;
  return message;
}

MinSum::Solution MinSum::solve(size_t maxEntries) {
  size_t numGiven = factors.size();
  // The factors that count, by variable: given ones and messages.
  auto active = given;
  std::vector<char> isActive(numGiven, true);
  std::vector<llvm::SmallVector<unsigned, 4>> buckets(domains.size());
  std::vector<unsigned> order;
  std::vector<char> isDone(domains.size(), false);
  CommunicationCost bound;
  bool isExact = true;

  auto getScope = [&](unsigned variable, llvm::ArrayRef<unsigned> bucket) {
    llvm::SmallVector<unsigned, 8> scope;
    for (unsigned factor : bucket)
      for (unsigned other : factors[factor].scope)
        if (other != variable && !llvm::is_contained(scope, other))
          scope.push_back(other);
    return scope;
  };
  auto getNumEntries = [&](llvm::ArrayRef<unsigned> scope) {
    double entries = 1;
    for (unsigned other : scope)
      entries *= domains[other];
    return entries;
  };
  auto prune = [&](unsigned variable) -> llvm::SmallVector<unsigned, 4> & {
    auto &bucket = active[variable];
    llvm::erase_if(bucket, [&](unsigned factor) { return !isActive[factor]; });
    return bucket;
  };

  // The variable whose elimination leaves the smallest table goes first; of
  // equal ones the first, so that equal parts of a graph fall alike.
  using Entry = std::pair<double, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  auto getPriority = [&](unsigned variable) {
    return getNumEntries(getScope(variable, prune(variable)));
  };
  for (unsigned variable = 0; variable < domains.size(); ++variable)
    queue.push({getPriority(variable), variable});
  while (!queue.empty()) {
    auto [priority, variable] = queue.top();
    queue.pop();
    if (isDone[variable])
      continue;
    double now = getPriority(variable);
    if (now > priority) {
      queue.push({now, variable});
      continue;
    }
    isDone[variable] = true;
    order.push_back(variable);
    llvm::SmallVector<unsigned, 4> bucket = prune(variable);
    buckets[variable] = bucket;

    // One bucket where it fits, else several.
    llvm::SmallVector<llvm::SmallVector<unsigned, 4>> parts;
    for (unsigned factor : bucket) {
      auto fits = [&](llvm::SmallVector<unsigned, 4> part) {
        part.push_back(factor);
        return getNumEntries(getScope(variable, part)) * domains[variable] <=
               static_cast<double>(maxEntries);
      };
      auto *part = llvm::find_if(parts, fits);
      if (part == parts.end()) {
        isExact &= parts.empty();
        parts.emplace_back().push_back(factor);
      } else {
        part->push_back(factor);
      }
    }
    if (parts.empty())
      parts.emplace_back();
    llvm::SmallVector<unsigned, 8> touched;
    for (const auto &part : parts) {
      auto scope = getScope(variable, part);
      Message message = eliminate(variable, part, scope);
      bound += message.constant;
      for (unsigned factor : part)
        isActive[factor] = false;
      llvm::append_range(touched, scope);
      if (scope.empty())
        continue;
      for (unsigned other : scope)
        active[other].push_back(factors.size());
      factors.push_back({message.table, {scope.begin(), scope.end()}});
      isActive.push_back(true);
    }
    // The priority of what many factors meet in is looked at when its turn
    // comes.
    for (unsigned other : touched)
      if (active[other].size() < kManyFactors)
        queue.push({getPriority(other), other});
  }

  Solution solution;
  solution.values.assign(domains.size(), 0);
  for (unsigned variable : llvm::reverse(order))
    solution.values[variable] =
        choose(variable, buckets[variable], solution.values);
  factors.resize(numGiven);
  if (!isExact)
    improve(solution.values);
  solution.cost = evaluate(solution.values);
  if (!isExact)
    if (Solution greedy = solveGreedily(); greedy.cost < solution.cost)
      solution = std::move(greedy);
  solution.lowerBound = isExact ? solution.cost : bound;
  return solution;
}

//===----------------------------------------------------------------------===//
// Assignments
//===----------------------------------------------------------------------===//

MinSum::Measure MinSum::measure(llvm::ArrayRef<unsigned> of,
                                llvm::ArrayRef<unsigned> values) const {
  Measure measure;
  for (unsigned factor : of) {
    CommunicationCost cost = lookUp(factors[factor], values);
    if (cost.isInfinite())
      ++measure.first;
    else
      measure.second += cost;
  }
  return measure;
}

unsigned MinSum::choose(unsigned variable, llvm::ArrayRef<unsigned> bucket,
                        std::vector<unsigned> &values) const {
  unsigned best = 0;
  Measure least;
  for (unsigned value = 0; value < domains[variable]; ++value) {
    values[variable] = value;
    Measure own = measure(bucket, values);
    if (value == 0 || own < least) {
      best = value;
      least = own;
    }
  }
  return best;
}

CommunicationCost MinSum::evaluate(llvm::ArrayRef<unsigned> values) const {
  CommunicationCost cost;
  for (const Factor &factor : factors)
    cost += lookUp(factor, values);
  return cost;
}

void MinSum::improve(std::vector<unsigned> &values) const {
  // Each round makes the sum smaller or is the last.
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned variable = 0; variable < domains.size(); ++variable) {
      unsigned before = values[variable];
      Measure old = measure(given[variable], values);
      values[variable] = choose(variable, given[variable], values);
      if (measure(given[variable], values) < old)
        changed = true;
      else
        values[variable] = before;
    }
  }
}

MinSum::Solution MinSum::solveGreedily() {
  Solution solution;
  solution.values.assign(domains.size(), 0);
  for (unsigned variable = 0; variable < domains.size(); ++variable) {
    // Factors over what is decided already.
    llvm::SmallVector<unsigned> decided;
    llvm::copy_if(
        given[variable], std::back_inserter(decided), [&](unsigned factor) {
          return llvm::all_of(factors[factor].scope, [&](unsigned other) {
            return other <= variable;
          });
        });
    solution.values[variable] = choose(variable, decided, solution.values);
  }
  improve(solution.values);
  solution.cost = evaluate(solution.values);
  return solution;
}

std::vector<CommunicationCost>
MinSum::getCosts(llvm::ArrayRef<unsigned> variables,
                 llvm::ArrayRef<unsigned> values) const {
  llvm::SmallSetVector<unsigned, 16> touched;
  for (unsigned variable : variables)
    touched.insert(given[variable].begin(), given[variable].end());
  std::vector<CommunicationCost> costs;
  for (unsigned value = 0; value < domains[variables.front()]; ++value) {
    std::vector<unsigned> assignment = values.vec();
    assignment[variables.front()] = value;
    for (unsigned variable : variables.drop_front())
      assignment[variable] = choose(variable, given[variable], assignment);
    CommunicationCost &cost = costs.emplace_back();
    for (unsigned factor : touched)
      cost += lookUp(factors[factor], assignment);
  }
  return costs;
}
