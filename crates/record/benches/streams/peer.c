/* The peer: batches of an LTTng-UST tracepoint with two fields, on demand.
 *
 * For each line on standard input, a number of events, it emits them and answers with the nanoseconds they took. So
 * its batches can alternate with those of the benchmark that runs it.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "peer.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(void) {
    uint64_t count;
    while (scanf("%" SCNu64, &count) == 1) {
        int64_t began = now_ns();
        for (uint64_t event = 0; event < count; event++) {
            lttng_ust_tracepoint(talea_peer, two_fields, event, ~event);
        }
        printf("%" PRId64 "\n", now_ns() - began);
        fflush(stdout);
    }
    return 0;
}
