#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER talea_peer

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./peer.h"

#if !defined(TALEA_PEER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TALEA_PEER_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    talea_peer, two_fields,
    LTTNG_UST_TP_ARGS(uint64_t, first, uint64_t, second),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, first, first)
                        lttng_ust_field_integer(uint64_t, second, second)))

#endif

#include <lttng/tracepoint-event.h>
