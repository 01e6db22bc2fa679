//===- Communicator.cpp - How ranks exchange data ------------------------===//

#include "tprt/Communicator.h"

using namespace tprt;

// Out of line, so that the class has one home for its type information.
Communicator::~Communicator() = default;
