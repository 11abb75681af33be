/*
 * libibshift: what Open MPI's component and the program `ibshift` are shells around. It includes no
 * header of Open MPI. Six parts:
 *
 *     plan     what each rank does in a collective, step by step
 *     choose   which plan a call gets, by its price
 *     net      messages between processes: over libibverbs, through shared memory, or over both
 *     exec     runs a plan over a net, or the tape of one
 *     fabric   hosts, routes, and the order in which all-to-alls go along them
 *     group    ranks that do collectives together; before it job/, what the user has set and what the
 *              processes tell each other, and device/, memory of devices that compute
 */
#ifndef IBSHIFT_LIBRARY_H
#define IBSHIFT_LIBRARY_H

#include "plan/alg.h"
#include "plan/neighbors.h"
#include "plan/nodes.h"
#include "plan/print.h"
#include "plan/walk.h"

#include "choose/choose.h"
#include "choose/crowd.h"
#include "choose/digest.h"
#include "choose/padded.h"
#include "choose/pace.h"
#include "choose/rules.h"
#include "choose/size.h"
#include "choose/tuned.h"
#include "choose/words.h"

#include "net/by_peer.h"
#include "net/ledger.h"
#include "net/net.h"
#include "net/node/node.h"
#include "net/verbs/blob.h"
#include "net/verbs/verbs.h"

#include "exec/badge.h"
#include "exec/engine.h"
#include "exec/gaps.h"
#include "exec/mixed.h"
#include "exec/op.h"
#include "exec/opening.h"
#include "exec/standing.h"
#include "exec/tape.h"

#include "fabric/table/found.h"
#include "job/fabric_file.h"

#include "group/choose.h"
#include "group/endpoint.h"
#include "group/group.h"
#include "group/multicast.h"
#include "group/order.h"
#include "group/repeat.h"
#include "group/report.h"

#include "job/cards.h"
#include "job/say.h"
#include "job/params.h"

#include "device/device.h"

#endif
